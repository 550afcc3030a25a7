"""Shapes of well-known models, and of two small ones that train on a CPU in seconds."""

from __future__ import annotations

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

PRESETS: dict[str, dict[str, Any]] = {
    # Made for the notebooks: bytes as tokens (V=256), sized so that norms and biases stay below
    # the 4,096 values under which 8-bit and 4-bit optimizers keep fp32, and matrices do not.
    "tiny-gpt": {
        "family": "gpt2",
        "layers": 4,
        "d_model": 128,
        "d_ff": 512,
        "heads": 4,
        "vocab": 256,
        "positions": 256,
    },
    "tiny-llama": {
        "family": "llama",
        "layers": 4,
        "d_model": 128,
        "d_ff": 352,
        "heads": 4,
        "kv_heads": 2,
        "vocab": 256,
        "positions": 256,
    },
    # https://huggingface.co/openai-community/gpt2/blob/main/config.json
    "gpt2": {
        "family": "gpt2",
        "layers": 12,
        "d_model": 768,
        "d_ff": 3072,
        "heads": 12,
        "vocab": 50257,
        "positions": 1024,
    },
    # https://huggingface.co/TinyLlama/TinyLlama_v1.1/blob/main/config.json
    "tinyllama-1.1b": {
        "family": "llama",
        "layers": 22,
        "d_model": 2048,
        "d_ff": 5632,
        "heads": 32,
        "kv_heads": 4,
        "vocab": 32000,
        "positions": 2048,
    },
    # https://huggingface.co/meta-llama/Meta-Llama-3-8B/blob/main/config.json
    "llama-3-8b": {
        "family": "llama",
        "layers": 32,
        "d_model": 4096,
        "d_ff": 14336,
        "heads": 32,
        "kv_heads": 8,
        "vocab": 128256,
        "positions": 8192,
    },
    # https://huggingface.co/Qwen/Qwen3-0.6B/blob/main/config.json
    "qwen3-0.6b": {
        "family": "qwen3",
        "layers": 28,
        "d_model": 1024,
        "d_ff": 3072,
        "heads": 16,
        "kv_heads": 8,
        "head_dim": 128,
        "vocab": 151936,
        "positions": 40960,
        "tied": True,
    },
    # https://huggingface.co/Qwen/Qwen3-4B/blob/main/config.json
    "qwen3-4b": {
        "family": "qwen3",
        "layers": 36,
        "d_model": 2560,
        "d_ff": 9728,
        "heads": 32,
        "kv_heads": 8,
        "head_dim": 128,
        "vocab": 151936,
        "positions": 40960,
        "tied": True,
    },
    # https://github.com/karpathy/nanochat/blob/master/scripts/base_train.py: width = 64 · depth,
    # rounded up to heads of 128; nanochat/gpt.py: as many key/value heads, F = 4 · D.
    "nanochat-d26": {
        "family": "nanochat",
        "layers": 26,
        "d_model": 1664,
        "d_ff": 6656,
        "heads": 13,
        "vocab": 32768,
        "positions": 2048,
    },
}
