"""Mistral: a llama without biases, whose layers all have a sliding window."""

from . import effects, like

FAMILY = like(
    "llama",
    shape={"qkv_bias": None, "out_bias": None, "ff_bias": None},
    defaults={"kv_heads": 8, "positions": 131072},
    effects=effects(step="sliding_window"),
    network=("hf_llama", "HFLlama"),
    attentions=("sdpa", "eager", "flash_attention_2"),
    own_network=("tiny_llama", "TinyLlama"),
    windows="run",
    proven="texts adapters prompt zero3 fsdp_trainer tensor_parallel context_parallel pipeline",
    # Below its window it is a llama.
    tables={"attentions": ("windowed", "padded"), "beside": ("adapters",)},
    lora_targets=("q", "v"),
    ia3_targets=("k", "v", "down"),
)
