"""Qwen 3: norms on queries and keys."""

from . import effects, like

FAMILY = like(
    "llama",
    shape={"ff_bias": None},
    defaults={"kv_heads": 32, "head_dim": 128, "positions": 32768},
    effects=effects(step="sliding_window layer_types use_sliding_window max_window_layers"),
    nullable=("num_key_value_heads",),
    flags={"qk_norm": True},
    network=("hf_llama", "HFLlama"),
    attentions=("sdpa", "eager", "flash_attention_2"),
    own_network=("tiny_llama", "TinyLlama"),
    windows="some",
    proven="texts adapters prompt zero3 fsdp_trainer tensor_parallel context_parallel pipeline",
    tables={"heads": ("all", "shared", "single"), "beside": ("adapters", "loops", "fsdp")},
    lora_targets=("q", "v"),
    ia3_targets=("q", "v", "down"),
)
