"""Shapes of well-known models, and of two small ones that train on a CPU in seconds.

Letters: L layers, D model width, F feed-forward width, N query heads, K key/value heads,
V vocabulary. Long, because it is a table with a row for each model.
"""

from __future__ import annotations

from .latent import Latent

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

_OWN: dict[str, dict[str, Any]] = {
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

TIED: dict[str, Any] = {"tied": True}
WIDE: dict[str, Any] = {"head_dim": 128}  # N heads of it are not D wide
NO_WINDOW: dict[str, Any] = {"config": {"model_type": "mistral", "sliding_window": None}}


def experts(many: int, *, of: int, per_token: int) -> dict[str, Any]:
    """So many experts of this width in each layer, and how many of them a token meets."""
    return {"experts": many, "expert_ff": of, "experts_per_token": per_token}


LIMITED = {"topk_method": "group_limited_greedy"}


def latent(q_rank: int) -> dict[str, Any]:
    """The latent attention of DeepSeek, whose models differ in the latent of the queries alone."""
    return {"latent": Latent(q_rank=q_rank, kv_rank=512, nope=128, rope=64, value=128)}


SIZES = ("layers", "d_model", "d_ff", "heads", "kv_heads", "vocab", "positions")
# Name, repository, family, (L, D, F, N, K, V, positions), and what else shapes it. The source of
# each is https://huggingface.co/REPOSITORY/blob/main/config.json
_ROWS: tuple[tuple[str, str, str, tuple[int, ...], dict[str, Any]], ...] = (
    (
        "gpt2-medium",
        "openai-community/gpt2-medium",
        "gpt2",
        (24, 1024, 4096, 16, 16, 50257, 1024),
        {},
    ),
    (
        "gpt2-large",
        "openai-community/gpt2-large",
        "gpt2",
        (36, 1280, 5120, 20, 20, 50257, 1024),
        {},
    ),
    ("gpt2-xl", "openai-community/gpt2-xl", "gpt2", (48, 1600, 6400, 25, 25, 50257, 1024), {}),
    ("opt-125m", "facebook/opt-125m", "opt", (12, 768, 3072, 12, 12, 50272, 2048), {}),
    ("opt-1.3b", "facebook/opt-1.3b", "opt", (24, 2048, 8192, 32, 32, 50272, 2048), {}),
    ("opt-6.7b", "facebook/opt-6.7b", "opt", (32, 4096, 16384, 32, 32, 50272, 2048), {}),
    ("pythia-160m", "EleutherAI/pythia-160m", "gpt_neox", (12, 768, 3072, 12, 12, 50304, 2048), {}),
    (
        "pythia-1.4b",
        "EleutherAI/pythia-1.4b",
        "gpt_neox",
        (24, 2048, 8192, 16, 16, 50304, 2048),
        {},
    ),
    (
        "pythia-6.9b",
        "EleutherAI/pythia-6.9b",
        "gpt_neox",
        (32, 4096, 16384, 32, 32, 50432, 2048),
        {},
    ),
    ("pythia-12b", "EleutherAI/pythia-12b", "gpt_neox", (36, 5120, 20480, 40, 40, 50688, 2048), {}),
    (
        "smollm2-135m",
        "HuggingFaceTB/SmolLM2-135M",
        "llama",
        (30, 576, 1536, 9, 3, 49152, 8192),
        TIED,
    ),
    (
        "smollm2-360m",
        "HuggingFaceTB/SmolLM2-360M",
        "llama",
        (32, 960, 2560, 15, 5, 49152, 8192),
        TIED,
    ),
    (
        "smollm2-1.7b",
        "HuggingFaceTB/SmolLM2-1.7B",
        "llama",
        (24, 2048, 8192, 32, 32, 49152, 8192),
        TIED,
    ),
    ("llama-2-7b", "meta-llama/Llama-2-7b-hf", "llama", (32, 4096, 11008, 32, 32, 32000, 4096), {}),
    (
        "llama-2-13b",
        "meta-llama/Llama-2-13b-hf",
        "llama",
        (40, 5120, 13824, 40, 40, 32000, 4096),
        {},
    ),
    (
        "llama-2-70b",
        "meta-llama/Llama-2-70b-hf",
        "llama",
        (80, 8192, 28672, 64, 8, 32000, 4096),
        {},
    ),
    (
        "llama-3-70b",
        "meta-llama/Meta-Llama-3-70B",
        "llama",
        (80, 8192, 28672, 64, 8, 128256, 8192),
        {},
    ),
    (
        "llama-3.1-8b",
        "meta-llama/Llama-3.1-8B",
        "llama",
        (32, 4096, 14336, 32, 8, 128256, 131072),
        {},
    ),
    (
        "llama-3.1-70b",
        "meta-llama/Llama-3.1-70B",
        "llama",
        (80, 8192, 28672, 64, 8, 128256, 131072),
        {},
    ),
    (
        "llama-3.1-405b",
        "meta-llama/Llama-3.1-405B",
        "llama",
        (126, 16384, 53248, 128, 8, 128256, 131072),
        {},
    ),
    (
        "llama-3.2-1b",
        "meta-llama/Llama-3.2-1B",
        "llama",
        (16, 2048, 8192, 32, 8, 128256, 131072),
        TIED,
    ),
    (
        "llama-3.2-3b",
        "meta-llama/Llama-3.2-3B",
        "llama",
        (28, 3072, 8192, 24, 8, 128256, 131072),
        TIED,
    ),
    (
        "mistral-7b-v0.1",
        "mistralai/Mistral-7B-v0.1",
        "mistral",
        (32, 4096, 14336, 32, 8, 32000, 32768),
        {},
    ),
    (
        "mistral-7b-v0.3",
        "mistralai/Mistral-7B-v0.3",
        "mistral",
        (32, 4096, 14336, 32, 8, 32768, 32768),
        NO_WINDOW,
    ),
    (
        "mistral-nemo-12b",
        "mistralai/Mistral-Nemo-Base-2407",
        "mistral",
        (40, 5120, 14336, 32, 8, 131072, 131072),
        NO_WINDOW | WIDE,
    ),
    (
        "mistral-small-24b",
        "mistralai/Mistral-Small-24B-Base-2501",
        "mistral",
        (40, 5120, 32768, 32, 8, 131072, 32768),
        NO_WINDOW | WIDE,
    ),
    ("qwen2.5-0.5b", "Qwen/Qwen2.5-0.5B", "qwen2", (24, 896, 4864, 14, 2, 151936, 32768), TIED),
    ("qwen2.5-1.5b", "Qwen/Qwen2.5-1.5B", "qwen2", (28, 1536, 8960, 12, 2, 151936, 131072), TIED),
    ("qwen2.5-3b", "Qwen/Qwen2.5-3B", "qwen2", (36, 2048, 11008, 16, 2, 151936, 32768), TIED),
    ("qwen2.5-7b", "Qwen/Qwen2.5-7B", "qwen2", (28, 3584, 18944, 28, 4, 152064, 131072), {}),
    ("qwen2.5-14b", "Qwen/Qwen2.5-14B", "qwen2", (48, 5120, 13824, 40, 8, 152064, 131072), {}),
    ("qwen2.5-32b", "Qwen/Qwen2.5-32B", "qwen2", (64, 5120, 27648, 40, 8, 152064, 131072), {}),
    ("qwen2.5-72b", "Qwen/Qwen2.5-72B", "qwen2", (80, 8192, 29568, 64, 8, 152064, 131072), {}),
    ("qwen3-1.7b", "Qwen/Qwen3-1.7B", "qwen3", (28, 2048, 6144, 16, 8, 151936, 40960), TIED | WIDE),
    ("qwen3-8b", "Qwen/Qwen3-8B", "qwen3", (36, 4096, 12288, 32, 8, 151936, 40960), WIDE),
    ("qwen3-14b", "Qwen/Qwen3-14B", "qwen3", (40, 5120, 17408, 40, 8, 151936, 40960), WIDE),
    ("qwen3-32b", "Qwen/Qwen3-32B", "qwen3", (64, 5120, 25600, 64, 8, 151936, 40960), WIDE),
    (
        "gemma-2b",
        "google/gemma-2b",
        "gemma",
        (18, 2048, 16384, 8, 1, 256000, 8192),
        {"head_dim": 256},
    ),
    (
        "gemma-7b",
        "google/gemma-7b",
        "gemma",
        (28, 3072, 24576, 16, 16, 256000, 8192),
        {"head_dim": 256},
    ),
    (
        "phi-3-mini-4k",
        "microsoft/Phi-3-mini-4k-instruct",
        "phi3",
        (32, 3072, 8192, 32, 32, 32064, 4096),
        {"config": {"model_type": "phi3", "sliding_window": 2047}},
    ),
    ("phi-4", "microsoft/phi-4", "phi3", (40, 5120, 17920, 40, 10, 100352, 16384), {}),
    ("olmo-2-1b", "allenai/OLMo-2-0425-1B", "olmo2", (16, 2048, 8192, 16, 16, 100352, 4096), {}),
    ("olmo-2-7b", "allenai/OLMo-2-1124-7B", "olmo2", (32, 4096, 11008, 32, 32, 100352, 4096), {}),
    ("olmo-2-13b", "allenai/OLMo-2-1124-13B", "olmo2", (40, 5120, 13824, 40, 40, 100352, 4096), {}),
    (
        "smollm3-3b",
        "HuggingFaceTB/SmolLM3-3B",
        "smollm3",
        (36, 2048, 11008, 16, 4, 128256, 65536),
        TIED,
    ),
    ("glm-4-9b", "zai-org/GLM-4-9B-0414", "glm4", (40, 4096, 13696, 32, 2, 151552, 32768), WIDE),
    (
        "starcoder2-3b",
        "bigcode/starcoder2-3b",
        "starcoder2",
        (30, 3072, 12288, 24, 2, 49152, 16384),
        TIED,
    ),
    (
        "gemma-2-2b",
        "google/gemma-2-2b",
        "gemma2",
        (26, 2304, 9216, 8, 4, 256000, 8192),
        {"head_dim": 256},
    ),
    (
        "gemma-2-9b",
        "google/gemma-2-9b",
        "gemma2",
        (42, 3584, 14336, 16, 8, 256000, 8192),
        {"head_dim": 256},
    ),
    ("gemma-2-27b", "google/gemma-2-27b", "gemma2", (46, 4608, 36864, 32, 16, 256000, 8192), WIDE),
    (
        "gemma-3-1b",
        "google/gemma-3-1b-pt",
        "gemma3_text",
        (26, 1152, 6912, 4, 1, 262144, 32768),
        {"head_dim": 256} | {"config": {"model_type": "gemma3_text", "sliding_window": 512}},
    ),
    (
        "command-r7b",
        "CohereLabs/c4ai-command-r7b-12-2024",
        "cohere2",
        (32, 4096, 14336, 32, 8, 256000, 132096),
        TIED,
    ),
    (
        "mixtral-8x7b",
        "mistralai/Mixtral-8x7B-v0.1",
        "mixtral",
        (32, 4096, 14336, 32, 8, 32000, 32768),
        experts(8, of=14336, per_token=2),
    ),
    (
        "mixtral-8x22b",
        "mistralai/Mixtral-8x22B-v0.1",
        "mixtral",
        (56, 6144, 16384, 48, 8, 32000, 65536),
        experts(8, of=16384, per_token=2),
    ),
    (
        "qwen1.5-moe-a2.7b",
        "Qwen/Qwen1.5-MoE-A2.7B",
        "qwen2_moe",
        (24, 2048, 5632, 16, 16, 151936, 8192),
        experts(60, of=1408, per_token=4) | {"shared_ff": 5632},
    ),
    (
        "qwen3-30b-a3b",
        "Qwen/Qwen3-30B-A3B",
        "qwen3_moe",
        (48, 2048, 6144, 32, 4, 151936, 40960),
        WIDE | experts(128, of=768, per_token=8),
    ),
    (
        "qwen3-235b-a22b",
        "Qwen/Qwen3-235B-A22B",
        "qwen3_moe",
        (94, 4096, 12288, 64, 4, 151936, 40960),
        WIDE | experts(128, of=1536, per_token=8),
    ),
    (
        "olmoe-1b-7b",
        "allenai/OLMoE-1B-7B-0924",
        "olmoe",
        (16, 2048, 1024, 16, 16, 50304, 4096),
        experts(64, of=1024, per_token=8),
    ),
    (
        "gpt-oss-20b",
        "openai/gpt-oss-20b",
        "gpt_oss",
        (24, 2880, 2880, 64, 8, 201088, 131072),
        {"head_dim": 64} | experts(32, of=2880, per_token=4),
    ),
    (
        "gpt-oss-120b",
        "openai/gpt-oss-120b",
        "gpt_oss",
        (36, 2880, 2880, 64, 8, 201088, 131072),
        {"head_dim": 64} | experts(128, of=2880, per_token=4),
    ),
    (
        "deepseek-v2-lite",
        "deepseek-ai/DeepSeek-V2-Lite",
        "deepseek_v2",
        (27, 2048, 10944, 16, 16, 102400, 163840),
        latent(0)
        | experts(64, of=1408, per_token=6)
        | {"shared_ff": 2 * 1408, "dense_layers": (0,)},
    ),
    (
        "deepseek-v2",
        "deepseek-ai/DeepSeek-V2",
        "deepseek_v2",
        (60, 5120, 12288, 128, 128, 102400, 163840),
        latent(1536)
        | experts(160, of=1536, per_token=6)
        | {"shared_ff": 2 * 1536, "dense_layers": (0,)}
        | {"config": {"model_type": "deepseek_v2", "n_group": 8, "topk_group": 3} | LIMITED},
    ),
    # The text of models that see pictures, too.
    (
        "llama-4-scout",
        "meta-llama/Llama-4-Scout-17B-16E",
        "llama4_text",
        (48, 5120, 16384, 40, 8, 202048, 10485760),
        WIDE | experts(16, of=8192, per_token=1) | {"shared_ff": 8192},
    ),
    (
        "llama-4-maverick",
        "meta-llama/Llama-4-Maverick-17B-128E",
        "llama4_text",
        (48, 5120, 16384, 40, 8, 202048, 1048576),
        WIDE
        | experts(128, of=8192, per_token=1)
        | {"shared_ff": 8192, "dense_layers": tuple(range(0, 48, 2))}
        | {"config": {"model_type": "llama4_text", "use_qk_norm": False}},
    ),
    # Without the module that predicts one token more, which the class does not build.
    (
        "deepseek-v3",
        "deepseek-ai/DeepSeek-V3",
        "deepseek_v3",
        (61, 7168, 18432, 128, 128, 129280, 163840),
        latent(1536)
        | experts(256, of=2048, per_token=8)
        | {"shared_ff": 2048, "dense_layers": (0, 1, 2)},
    ),
)

PRESETS: dict[str, dict[str, Any]] = _OWN | {
    # MicroPython's zip is never strict.
    name: {"family": family} | dict(zip(SIZES, sizes)) | more  # noqa: B905
    for name, _, family, sizes, more in _ROWS
}
# torch_dtype (dtype) of the published config.json, which from_pretrained() of transformers 5 takes.
# It says float32 of the base models of gemma-2 and OLMo-2, and nothing of gpt2 and of memlab's own.
# gpt-oss names no dtype; what is no mxfp4 in its checkpoint is bf16. Of starcoder2-3b and
# tinyllama-1.1b it is not known here, and none is taken: fp32, as of a config without one.
_BF16 = """
llama-3-8b llama-3-70b llama-3.1-8b llama-3.1-70b llama-3.1-405b llama-3.2-1b llama-3.2-3b
llama-4-scout llama-4-maverick smollm2-135m smollm2-360m smollm2-1.7b smollm3-3b mistral-7b-v0.1
mistral-7b-v0.3 mistral-nemo-12b mistral-small-24b mixtral-8x7b mixtral-8x22b qwen1.5-moe-a2.7b
qwen2.5-0.5b qwen2.5-1.5b qwen2.5-3b qwen2.5-7b qwen2.5-14b qwen2.5-32b qwen2.5-72b qwen3-0.6b
qwen3-1.7b qwen3-4b qwen3-8b qwen3-14b qwen3-32b qwen3-30b-a3b qwen3-235b-a22b gemma-2b gemma-7b
gemma-3-1b phi-3-mini-4k phi-4 glm-4-9b command-r7b olmoe-1b-7b gpt-oss-20b gpt-oss-120b
deepseek-v2-lite deepseek-v2 deepseek-v3
"""
_FP16 = """
opt-125m opt-1.3b opt-6.7b pythia-160m pythia-1.4b pythia-6.9b pythia-12b llama-2-7b llama-2-13b
llama-2-70b
"""
for _format, _names in (("bf16", _BF16), ("fp16", _FP16)):
    for _name in _names.split():
        PRESETS[_name] = PRESETS[_name] | {"published": _format}
# What a repository, in small letters, is called here.
HUB = {
    "openai-community/gpt2": "gpt2",
    "tinyllama/tinyllama_v1.1": "tinyllama-1.1b",
    "meta-llama/meta-llama-3-8b": "llama-3-8b",
    "qwen/qwen3-0.6b": "qwen3-0.6b",
    "qwen/qwen3-4b": "qwen3-4b",
} | {row[1].lower(): row[0] for row in _ROWS}
