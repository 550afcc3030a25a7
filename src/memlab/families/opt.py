"""OPT: learned positions, from the third row of their table on."""

from . import CLASSIC, EVERY, REQUIRED, SIZES, Family, effects

FAMILY = Family(
    shape=SIZES
    | {
        "d_ff": ("ffn_dim", REQUIRED),
        "embed_dim": ("word_embed_proj_dim", None),
        "qkv_bias": ("enable_bias", True),
        "out_bias": ("enable_bias", True),
        "ff_bias": ("enable_bias", True),
        "norm_affine": ("layer_norm_elementwise_affine", True),
        "final_norm": ("do_layer_norm_before", True),
        "tied": ("tie_word_embeddings", True),
        "positions": ("max_position_embeddings", 2048),
    },
    # activation_dropout is of old configs; the model has none.
    effects=EVERY
    | effects(
        shape="_remove_final_layer_norm",
        step="activation_function dropout attention_dropout do_layer_norm_before",
        nothing="activation_dropout init_std",
        only="layerdrop",
    ),
    dropouts={"attention_dropout": ("attention", 0.0), "dropout": ("residual", 0.1)},
    padding=1,
    flags=CLASSIC | {"tied": True, "learned_positions": True, "position_offset": 2},
    layers_path="model.decoder.layers",
    modules={"out": "self_attn.out_proj", "up": "fc1", "down": "fc2"},
    embedding_path="model.decoder.embed_tokens",
    network=("opt", "OPT"),
    activation=("", ()),
    proven="texts adapters",
    tables={
        "heads": ("all",),
        "ties": ("tied",),
        "dropouts": (None, 0.0, 0.1),
        "config": {"activation_function": "relu", "do_layer_norm_before": True, "layerdrop": 0},
        "trainer": False,
    },
    lora_targets=("q", "v"),
    ia3_targets=("q", "k", "down"),
)
