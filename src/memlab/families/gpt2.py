"""GPT-2: learned positions, one matrix for q, k and v, stored [inputs, outputs]."""

from . import CLASSIC, EVERY, REQUIRED, Family, effects

FAMILY = Family(
    shape={
        "layers": ("n_layer", REQUIRED),
        "d_model": ("n_embd", REQUIRED),
        "heads": ("n_head", REQUIRED),
        "vocab": ("vocab_size", REQUIRED),
        "d_ff": ("n_inner", None),
        "positions": ("n_positions", 1024),
        "tied": ("tie_word_embeddings", True),
    },
    effects=EVERY
    | effects(
        step="activation_function resid_pdrop embd_pdrop attn_pdrop",
        nothing="layer_norm_epsilon summary_type summary_use_proj summary_activation "
        "summary_proj_to_labels summary_first_dropout scale_attn_weights "
        "scale_attn_by_inverse_layer_idx n_ctx",
        only="reorder_and_upcast_attn",
    ),
    # Source      PreTrainedConfig.attribute_map: they are set after the family's own
    other_names={
        "n_layer": "num_hidden_layers",
        "n_embd": "hidden_size",
        "n_head": "num_attention_heads",
        "n_positions": "max_position_embeddings",
    },
    dropouts={
        "attn_pdrop": ("attention", 0.1),
        "resid_pdrop": ("residual", 0.1),
        "embd_pdrop": ("embedding", 0.1),
    },
    padding_row=False,
    flags=CLASSIC | {"tied": True, "fused_qkv": True, "conv1d": True, "learned_positions": True},
    layers_path="transformer.h",
    modules={"qkv": "attn.c_attn", "out": "attn.c_proj", "up": "mlp.c_fc", "down": "mlp.c_proj"},
    embedding_path="transformer.wte",
    network=("gpt2", "GPT2"),
    own_network=("tiny_gpt", "TinyGPT"),
    activation=("", ()),
    proven="texts adapters prompt zero3 fsdp_trainer",
    tables={
        "heads": ("all",),
        "ties": ("tied",),
        "dropouts": (None, 0.0, 0.1),
        "config": {"activation_function": "gelu_new", "reorder_and_upcast_attn": False},
    },
    lora_targets=("qkv",),
    ia3_targets=("qkv", "down"),
)
