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

from typing import Any

from .hf_llama import HFLlama
from .tiny_gpt import TinyGPT
from .tiny_llama import TinyLlama

LLAMAS = ("llama", "mistral", "qwen2", "qwen3")

# (implementation, family): the class, and the attention kernels that it describes.
NETWORKS: dict[tuple[str, str], tuple[type[Any], tuple[str, ...]]] = {
    ("memlab", "gpt2"): (TinyGPT, ("sdpa",)),
    **{("memlab", family): (TinyLlama, ("sdpa",)) for family in LLAMAS},
    **{("transformers", family): (HFLlama, ("sdpa", "eager")) for family in (*LLAMAS, "gemma")},
}
