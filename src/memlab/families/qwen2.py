"""Qwen 2 and 2.5: queries, keys and values have biases, and some layers may have a window."""

from . import effects, like

FAMILY = like(
    "mistral",
    defaults={"kv_heads": 32, "positions": 32768},
    effects=effects(step="layer_types use_sliding_window max_window_layers"),
    nullable=("num_key_value_heads",),
    null_head_dim=False,
    flags={"qkv_bias": True},
    network=("hf_llama", "HFLlama"),
    attentions=("sdpa", "eager", "flash_attention_2"),
    own_network=("tiny_llama", "TinyLlama"),
    windows="some",
    proven="texts adapters prompt zero3 fsdp_trainer tensor_parallel context_parallel pipeline",
    tables={"heads": ("all", "shared", "single"), "beside": ("adapters", "loops", "fsdp")},
    lora_targets=("q", "v"),
    ia3_targets=("q", "v", "down"),
)
