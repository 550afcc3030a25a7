"""GPTQ-for-LLaMa: a text of 2,048 tokens is read token by token.

Recipe      fp16, or GPTQ with 4 or 3 bits, in groups of 128 or one group for each row; or NF4 and
            FP4 of bitsandbytes, whose scales are in fp32 for 64 values each, or doubly quantized
Cache       the old one is dropped layer by layer (clear_past), so one stands beside the logits of
            one token in fp16 and in fp32
Tables      transformers 4.28 has angles of 2,048 positions in each layer, in fp32
Counter     memory_allocated after each token, the most of them: no peak inside a call. Of the
            second table the program is not there, and it is read the same way
Source      qwopqwop200/GPTQ-for-LLaMa, llama.py: benchmark; quant/quant_linear.py
"""

from typing import Any

from memlab import Model, Recipe, Run
from memlab.terms.workspaces import cublas_workspaces

from .. import packed
from ..described import Described, capability

POSITIONS = 2048
FP16 = Recipe.named("bf16")  # whose bytes are those of fp16
SECOND = 256  # scales under one scale of scales


def describe(reading):
    """See the module."""
    what = reading.what
    model = shape(what["model"])
    run = Run(phase="decode", tokens=what["tokens"] - 1, attention="eager")
    more = (
        ("weights", packed.allocated(weights(model, what["precision"], what["group"]))),
        ("tables", model.layers * 2 * 4 * POSITIONS * model.head_dim),
        ("logits", (2 + 4) * model.vocab),
        ("cuBLAS workspace", cublas_workspaces(capability(reading.device), threads=1)),
    )
    return Described(model, FP16, run, "cache", more=more)


def weights(model, kind, group):
    """Bytes of every tensor of the weights, tensor by tensor."""
    sizes = []
    for tensor in model.tensors():
        times = model.layers if tensor.name.startswith("layers.") else 1
        packs = tensor.linear and tensor.component in ("attention", "feed_forward")
        own = layer(kind, group, *tensor.shape) if packs else [2 * tensor.numel]
        sizes += [size for _ in range(times) for size in own]
    return sizes


def layer(kind, group, rows, columns):
    """The tensors of one packed layer, in bytes."""
    count = rows * columns
    if kind == "fp16":
        return [2 * count]
    if kind.startswith("gptq"):
        bits, groups = int(kind[-1]), -(-columns // (group or columns))
        return [count * bits // 8, groups * rows * bits // 8, 2 * groups * rows, 4 * columns]
    scales = count // 64
    if kind == "nf4-double":
        return [count // 2, scales, 4 * (scales // SECOND)]
    return [count // 2, 4 * scales]


def shape(name):
    """The model of a row; the first Llamas have the second ones' shapes."""
    if name == "LLaMA-33B":
        told: dict[str, Any] = {
            "layers": 60,
            "d_model": 6656,
            "d_ff": 17920,
            "heads": 52,
            "vocab": 32000,
        }
        return Model(family="llama", name=name, tied=False, **told)
    return Model.preset({"LLaMA-7B": "llama-2-7b", "LLaMA-13B": "llama-2-13b"}[name])
