"""Shapes of well-known models, and of two small ones that train on a CPU in seconds.

Letters: L layers, D model width, F feed-forward width, N query heads, K key/value heads, H head
width, V vocabulary; X experts, k of them for each token, M the width of one, S that of the shared.
"""

from __future__ import annotations

from .latent import Latent

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

SIZES = ("layers", "d_model", "d_ff", "heads", "kv_heads", "vocab", "positions")
LETTERS = {"H": "head_dim", "X": "experts", "M": "expert_ff", "k": "experts_per_token"}
LETTERS["S"] = "shared_ff"
# Made for the notebooks: bytes as tokens (V=256), sized so that norms and biases stay below the
# 4,096 values under which 8-bit and 4-bit optimizers keep fp32, and matrices do not.
TINY: dict[str, Any] = {"layers": 4, "d_model": 128, "heads": 4, "vocab": 256, "positions": 256}
PRESETS: dict[str, dict[str, Any]] = {
    "tiny-gpt": {"family": "gpt2", "d_ff": 512} | TINY,
    "tiny-llama": {"family": "llama", "d_ff": 352, "kv_heads": 2} | TINY,
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
# What a repository, in small letters, is called here.
HUB: dict[str, str] = {}

# Family by family: name, repository, format of the published weights, L D F N K V positions, and
# what else shapes it. Source: https://huggingface.co/REPOSITORY/blob/main/config.json; the format
# is its torch_dtype (dtype), which from_pretrained() of transformers 5 takes. -: it says float32
# (gemma-2, OLMo-2) or nothing (gpt2), or it is not known here: fp32, as of a config without one.
# gpt-oss names no dtype; what is no mxfp4 in its checkpoint is bf16. Of llama4_text it is the text
# of models that see pictures, too; deepseek_v3 is without the module that predicts one token more,
# which the class does not build.
_TABLE = """
gpt2:
gpt2 openai-community/gpt2 - 12 768 3072 12 12 50257 1024
gpt2-medium openai-community/gpt2-medium - 24 1024 4096 16 16 50257 1024
gpt2-large openai-community/gpt2-large - 36 1280 5120 20 20 50257 1024
gpt2-xl openai-community/gpt2-xl - 48 1600 6400 25 25 50257 1024
opt:
opt-125m facebook/opt-125m fp16 12 768 3072 12 12 50272 2048
opt-1.3b facebook/opt-1.3b fp16 24 2048 8192 32 32 50272 2048
opt-6.7b facebook/opt-6.7b fp16 32 4096 16384 32 32 50272 2048
gpt_neox:
pythia-160m EleutherAI/pythia-160m fp16 12 768 3072 12 12 50304 2048
pythia-1.4b EleutherAI/pythia-1.4b fp16 24 2048 8192 16 16 50304 2048
pythia-6.9b EleutherAI/pythia-6.9b fp16 32 4096 16384 32 32 50432 2048
pythia-12b EleutherAI/pythia-12b fp16 36 5120 20480 40 40 50688 2048
llama:
tinyllama-1.1b TinyLlama/TinyLlama_v1.1 - 22 2048 5632 32 4 32000 2048
llama-3-8b meta-llama/Meta-Llama-3-8B bf16 32 4096 14336 32 8 128256 8192
smollm2-135m HuggingFaceTB/SmolLM2-135M bf16 30 576 1536 9 3 49152 8192 tied
smollm2-360m HuggingFaceTB/SmolLM2-360M bf16 32 960 2560 15 5 49152 8192 tied
smollm2-1.7b HuggingFaceTB/SmolLM2-1.7B bf16 24 2048 8192 32 32 49152 8192 tied
llama-2-7b meta-llama/Llama-2-7b-hf fp16 32 4096 11008 32 32 32000 4096
llama-2-13b meta-llama/Llama-2-13b-hf fp16 40 5120 13824 40 40 32000 4096
llama-2-70b meta-llama/Llama-2-70b-hf fp16 80 8192 28672 64 8 32000 4096
llama-3-70b meta-llama/Meta-Llama-3-70B bf16 80 8192 28672 64 8 128256 8192
llama-3.1-8b meta-llama/Llama-3.1-8B bf16 32 4096 14336 32 8 128256 131072
llama-3.1-70b meta-llama/Llama-3.1-70B bf16 80 8192 28672 64 8 128256 131072
llama-3.1-405b meta-llama/Llama-3.1-405B bf16 126 16384 53248 128 8 128256 131072
llama-3.2-1b meta-llama/Llama-3.2-1B bf16 16 2048 8192 32 8 128256 131072 tied
llama-3.2-3b meta-llama/Llama-3.2-3B bf16 28 3072 8192 24 8 128256 131072 tied
mistral:
mistral-7b-v0.1 mistralai/Mistral-7B-v0.1 bf16 32 4096 14336 32 8 32000 32768
mistral-7b-v0.3 mistralai/Mistral-7B-v0.3 bf16 32 4096 14336 32 8 32768 32768
mistral-nemo-12b mistralai/Mistral-Nemo-Base-2407 bf16 40 5120 14336 32 8 131072 131072 H=128
mistral-small-24b mistralai/Mistral-Small-24B-Base-2501 bf16 40 5120 32768 32 8 131072 32768 H=128
qwen2:
qwen2.5-0.5b Qwen/Qwen2.5-0.5B bf16 24 896 4864 14 2 151936 32768 tied
qwen2.5-1.5b Qwen/Qwen2.5-1.5B bf16 28 1536 8960 12 2 151936 131072 tied
qwen2.5-3b Qwen/Qwen2.5-3B bf16 36 2048 11008 16 2 151936 32768 tied
qwen2.5-7b Qwen/Qwen2.5-7B bf16 28 3584 18944 28 4 152064 131072
qwen2.5-14b Qwen/Qwen2.5-14B bf16 48 5120 13824 40 8 152064 131072
qwen2.5-32b Qwen/Qwen2.5-32B bf16 64 5120 27648 40 8 152064 131072
qwen2.5-72b Qwen/Qwen2.5-72B bf16 80 8192 29568 64 8 152064 131072
qwen3:
qwen3-0.6b Qwen/Qwen3-0.6B bf16 28 1024 3072 16 8 151936 40960 tied H=128
qwen3-4b Qwen/Qwen3-4B bf16 36 2560 9728 32 8 151936 40960 tied H=128
qwen3-1.7b Qwen/Qwen3-1.7B bf16 28 2048 6144 16 8 151936 40960 tied H=128
qwen3-8b Qwen/Qwen3-8B bf16 36 4096 12288 32 8 151936 40960 H=128
qwen3-14b Qwen/Qwen3-14B bf16 40 5120 17408 40 8 151936 40960 H=128
qwen3-32b Qwen/Qwen3-32B bf16 64 5120 25600 64 8 151936 40960 H=128
gemma:
gemma-2b google/gemma-2b bf16 18 2048 16384 8 1 256000 8192 H=256
gemma-7b google/gemma-7b bf16 28 3072 24576 16 16 256000 8192 H=256
gemma2:
gemma-2-2b google/gemma-2-2b - 26 2304 9216 8 4 256000 8192 H=256
gemma-2-9b google/gemma-2-9b - 42 3584 14336 16 8 256000 8192 H=256
gemma-2-27b google/gemma-2-27b - 46 4608 36864 32 16 256000 8192 H=128
gemma3_text:
gemma-3-1b google/gemma-3-1b-pt bf16 26 1152 6912 4 1 262144 32768 H=256
phi3:
phi-3-mini-4k microsoft/Phi-3-mini-4k-instruct bf16 32 3072 8192 32 32 32064 4096
phi-4 microsoft/phi-4 bf16 40 5120 17920 40 10 100352 16384
olmo2:
olmo-2-1b allenai/OLMo-2-0425-1B - 16 2048 8192 16 16 100352 4096
olmo-2-7b allenai/OLMo-2-1124-7B - 32 4096 11008 32 32 100352 4096
olmo-2-13b allenai/OLMo-2-1124-13B - 40 5120 13824 40 40 100352 4096
smollm3:
smollm3-3b HuggingFaceTB/SmolLM3-3B bf16 36 2048 11008 16 4 128256 65536 tied
glm4:
glm-4-9b zai-org/GLM-4-9B-0414 bf16 40 4096 13696 32 2 151552 32768 H=128
starcoder2:
starcoder2-3b bigcode/starcoder2-3b - 30 3072 12288 24 2 49152 16384 tied
cohere2:
command-r7b CohereLabs/c4ai-command-r7b-12-2024 bf16 32 4096 14336 32 8 256000 132096 tied
mixtral:
mixtral-8x7b mistralai/Mixtral-8x7B-v0.1 bf16 32 4096 14336 32 8 32000 32768 X=8 M=14336 k=2
mixtral-8x22b mistralai/Mixtral-8x22B-v0.1 bf16 56 6144 16384 48 8 32000 65536 X=8 M=16384 k=2
qwen2_moe:
qwen1.5-moe-a2.7b Qwen/Qwen1.5-MoE-A2.7B bf16 24 2048 5632 16 16 151936 8192 X=60 M=1408 k=4 S=5632
qwen3_moe:
qwen3-30b-a3b Qwen/Qwen3-30B-A3B bf16 48 2048 6144 32 4 151936 40960 H=128 X=128 M=768 k=8
qwen3-235b-a22b Qwen/Qwen3-235B-A22B bf16 94 4096 12288 64 4 151936 40960 H=128 X=128 M=1536 k=8
olmoe:
olmoe-1b-7b allenai/OLMoE-1B-7B-0924 bf16 16 2048 1024 16 16 50304 4096 X=64 M=1024 k=8
gpt_oss:
gpt-oss-20b openai/gpt-oss-20b bf16 24 2880 2880 64 8 201088 131072 H=64 X=32 M=2880 k=4
gpt-oss-120b openai/gpt-oss-120b bf16 36 2880 2880 64 8 201088 131072 H=64 X=128 M=2880 k=4
deepseek_v2:
deepseek-v2-lite deepseek-ai/DeepSeek-V2-Lite bf16 \
    27 2048 10944 16 16 102400 163840 X=64 M=1408 k=6 S=2816
deepseek-v2 deepseek-ai/DeepSeek-V2 bf16 60 5120 12288 128 128 102400 163840 X=160 M=1536 k=6 S=3072
deepseek_v3:
deepseek-v3 deepseek-ai/DeepSeek-V3 bf16 61 7168 18432 128 128 129280 163840 X=256 M=2048 k=8 S=2048
llama4_text:
llama-4-scout meta-llama/Llama-4-Scout-17B-16E bf16 \
    48 5120 16384 40 8 202048 10485760 H=128 X=16 M=8192 k=1 S=8192
llama-4-maverick meta-llama/Llama-4-Maverick-17B-128E bf16 \
    48 5120 16384 40 8 202048 1048576 H=128 X=128 M=8192 k=1 S=8192
"""


def _add(family: str, words: list[str]) -> None:
    name, repository, published = words[:3]
    made: dict[str, Any] = {"family": family}
    for field, size in zip(SIZES, words[3:10]):  # noqa: B905  MicroPython's is never strict
        made[field] = int(size)
    for word in words[10:]:
        letter, _, size = word.partition("=")
        made[LETTERS.get(letter, letter)] = int(size) if size else True
    if published != "-":
        made["published"] = published
    PRESETS[name], HUB[repository.lower()] = made, name


_family = ""
for _line in _TABLE.split("\n"):
    _words = _line.split()
    if len(_words) > 1:
        _add(_family, _words)
    elif _words:
        _family = _words[0][:-1]


def _latent(q_rank: int) -> dict[str, Any]:
    """The latent attention of DeepSeek, whose models differ in the latent of the queries alone."""
    return {"latent": Latent(q_rank=q_rank, kv_rank=512, nope=128, rope=64, value=128)}


LIMITED = {"n_group": 8, "topk_group": 3, "topk_method": "group_limited_greedy"}
NO_WINDOW = {"config": {"model_type": "mistral", "sliding_window": None}}
# What is no size.
for _name, _more in (
    ("mistral-7b-v0.3", NO_WINDOW),
    ("mistral-nemo-12b", NO_WINDOW),
    ("mistral-small-24b", NO_WINDOW),
    ("phi-3-mini-4k", {"config": {"model_type": "phi3", "sliding_window": 2047}}),
    ("gemma-3-1b", {"config": {"model_type": "gemma3_text", "sliding_window": 512}}),
    ("deepseek-v2-lite", _latent(0) | {"dense_layers": (0,)}),
    ("deepseek-v2", _latent(1536) | {"dense_layers": (0,)}),
    ("deepseek-v2", {"config": {"model_type": "deepseek_v2"} | LIMITED}),
    ("deepseek-v3", _latent(1536) | {"dense_layers": (0, 1, 2)}),
    ("llama-4-maverick", {"dense_layers": tuple(range(0, 48, 2))}),
    ("llama-4-maverick", {"config": {"model_type": "llama4_text", "use_qk_norm": False}}),
):
    PRESETS[_name].update(_more)
