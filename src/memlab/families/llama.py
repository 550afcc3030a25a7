"""Llama 1 to 3, and all that has its block: what most families are a twist of."""

from . import EVERY, ROTARY, SIZES, Family, effects

FAMILY = Family(
    shape=SIZES
    | {
        "kv_heads": ("num_key_value_heads", None),
        "head_dim": ("head_dim", None),
        "tied": ("tie_word_embeddings", False),
        "qkv_bias": ("attention_bias", False),
        "out_bias": ("attention_bias", False),
        "ff_bias": ("mlp_bias", False),
        "positions": ("max_position_embeddings", 2048),
    },
    effects=EVERY | ROTARY | effects(step="hidden_act attention_dropout", nothing="rms_norm_eps"),
    dropouts={"attention_dropout": ("attention", 0.0)},
    divides_width=True,
    network=("hf_llama", "HFLlama"),
    attentions=("sdpa", "eager", "flash_attention_2"),
    own_network=("tiny_llama", "TinyLlama"),
    proven="texts adapters prompt zero3 fsdp_trainer tensor_parallel context_parallel pipeline",
    tables={"heads": ("all", "shared", "single"), "beside": ("adapters", "loops", "fsdp")},
    lora_targets=("q", "v"),
    ia3_targets=("k", "v", "down"),
)
