"""GPT-NeoX and Pythia: a quarter of a head turns, attention and feed-forward side by side."""

from . import CLASSIC, EVERY, ROTARY, SIZES, Family, effects

FAMILY = Family(
    shape=SIZES
    | {
        "qkv_bias": ("attention_bias", True),
        "out_bias": ("attention_bias", True),
        "tied": ("tie_word_embeddings", False),
        "positions": ("max_position_embeddings", 2048),
    },
    effects=EVERY
    | ROTARY
    | effects(
        step="partial_rotary_factor hidden_act attention_dropout hidden_dropout "
        "use_parallel_residual rotary_pct",
        nothing="classifier_dropout layer_norm_eps rotary_emb_base",
        only="head_dim",
    ),
    dropouts={"attention_dropout": ("attention", 0.0), "hidden_dropout": ("residual", 0.0)},
    padding_row=False,
    divides_width=True,
    flags=CLASSIC | {"fused_qkv": True},
    layers_path="gpt_neox.layers",
    modules={
        "qkv": "attention.query_key_value",
        "out": "attention.dense",
        "up": "mlp.dense_h_to_4h",
        "down": "mlp.dense_4h_to_h",
    },
    embedding_path="gpt_neox.embed_in",
    network=("gpt_neox", "GPTNeoX"),
    activation=("", ()),
    turned=0.25,
    proven="texts adapters fsdp_trainer",
    tables={
        "heads": ("all",),
        "dropouts": (None, 0.0, 0.1),
        "config": {"hidden_act": "gelu", "use_parallel_residual": True, "rotary_pct": 0.25},
    },
    lora_targets=("qkv",),
    ia3_targets=("qkv", "down"),
)
