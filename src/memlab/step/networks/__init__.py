"""Networks as their implementations run them, operator by operator: one file each.

A network is a class with

    __init__(f, setting)    makes its parameters, in the order in which the real module registers
                            them, each layer's inside `for _ in f.each_layer(L)`, and its buffers
    forward(ids)            does what the real forward does and returns the loss; each layer inside
                            `for i in f.each_layer(L)`, followed by `x = f.boundary(x, i, L)`;
                            `f.begin_loss()` stands before the output head

on the operators of `f`, a `memlab.step.ops.Ops`. The rules that make the bytes equal a real step's:
a Python variable keeps a tensor alive exactly as in the real code, so write the same variables and
nest the same calls (`call` is for modules: their arguments live until they return); never assign
to an argument; `f.view` for views and free reshapes, `f.copy` where torch really copies.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

LLAMAS = ("llama", "mistral", "qwen2", "qwen3")
# Mixtures of experts that are written as a llama.
MIXED = (
    *("qwen3_moe", "mixtral", "olmoe", "qwen2_moe", "gpt_oss"),
    *("glm4_moe", "deepseek_v2", "deepseek_v3"),
)
THREE = ("sdpa", "eager", "flash_attention_2")

# (implementation, family): module and class, imported when asked for, and the attention kernels
# that it describes.
NETWORKS: dict[tuple[str, str], tuple[str, str, tuple[str, ...]]] = {
    ("memlab", "gpt2"): ("tiny_gpt", "TinyGPT", ("sdpa",)),
    **{("memlab", family): ("tiny_llama", "TinyLlama", ("sdpa",)) for family in LLAMAS},
    **{("transformers", family): ("hf_llama", "HFLlama", THREE) for family in LLAMAS},
    ("transformers", "gemma"): ("gemma", "Gemma", ("sdpa", "eager")),
    ("transformers", "phi3"): ("phi3", "Phi3", ("sdpa", "eager")),
    ("transformers", "olmo"): ("olmo", "Olmo", ("sdpa", "eager")),
    ("transformers", "olmo2"): ("olmo2", "Olmo2", ("sdpa", "eager")),
    ("transformers", "smollm3"): ("smollm3", "SmolLM3", ("sdpa", "eager")),
    ("transformers", "granite"): ("granite", "Granite", ("sdpa", "eager")),
    ("transformers", "starcoder2"): ("starcoder2", "Starcoder2", ("sdpa", "eager")),
    ("transformers", "glm4"): ("glm4", "Glm4", ("sdpa", "eager")),
    ("transformers", "gemma2"): ("gemma2", "Gemma2", ("eager",)),
    ("transformers", "gemma3_text"): ("gemma3", "Gemma3", ("sdpa", "eager")),
    ("transformers", "cohere2"): ("cohere2", "Cohere2", ("sdpa", "eager")),
    ("transformers", "qwen3_moe"): ("experts", "Qwen3Moe", ("sdpa", "eager")),
    ("transformers", "mixtral"): ("experts", "Mixtral", ("sdpa", "eager")),
    ("transformers", "olmoe"): ("experts", "Olmoe", ("sdpa", "eager")),
    ("transformers", "qwen2_moe"): ("qwen2_moe", "Qwen2Moe", ("sdpa", "eager")),
    ("transformers", "glm4_moe"): ("glm4_moe", "Glm4Moe", ("sdpa", "eager")),
    ("transformers", "deepseek_v2"): ("deepseek_v2", "DeepseekV2", ("sdpa", "eager")),
    ("transformers", "deepseek_v3"): ("deepseek_v3", "DeepseekV3", ("sdpa", "eager")),
    ("transformers", "llama4_text"): ("llama4", "Llama4", ("sdpa", "eager")),
    ("transformers", "gpt_oss"): ("gpt_oss", "GptOss", ("eager",)),
    ("transformers", "seed_oss"): ("seed_oss", "SeedOss", ("sdpa", "eager")),
    ("transformers", "ministral"): ("gemma2", "Ministral", ("sdpa", "eager")),
    ("transformers", "gpt2"): ("gpt2", "GPT2", ("sdpa", "eager")),
    ("transformers", "opt"): ("opt", "OPT", ("sdpa", "eager")),
    ("transformers", "gpt_neox"): ("gpt_neox", "GPTNeoX", ("sdpa", "eager")),
}

# Those whose dropout is described too. TinyLlama has none.
DROPOUT = [key for key in NETWORKS if NETWORKS[key][1] != "TinyLlama"]


def network(implementation: str, family: str) -> Any:
    """The class that describes a family as an implementation runs it.

    implementation  or "divided": transformers' on a rank that has a part of each matrix; or
                    "zero3": under DeepSpeed's stage 3; or "stage": some layers of a pipeline
    """
    if implementation == "stage":
        stage = importlib.import_module(".llama_stage", __name__)
        return stage.of_family(network("transformers", family))  # devices.check_pipelined knows it
    if implementation == "zero3":
        zero3 = importlib.import_module(".llama_zero3", __name__)
        return zero3.of_family(network("transformers", family))  # deepspeed_checks knows it
    if implementation == "divided":
        if family in MIXED:  # devices.check_divided saw to it
            divided = importlib.import_module(".experts_divided", __name__)
            return divided.of_family(network("transformers", family))
        assert family in LLAMAS
        return importlib.import_module(".llama_divided", __name__).LlamaDivided
    module, name, _ = NETWORKS[implementation, family]
    return getattr(importlib.import_module(f".{module}", __name__), name)
