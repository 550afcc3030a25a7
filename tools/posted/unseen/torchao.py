"""torchao's tables of quantization: generate.py, and a small Llama that is trained from scratch.

Size        every weight but the embedding, as torchao packs the linear layers, the head too:
            int8 with a bf16 scale a row, 4 bits with a bf16 scale and zero for each group of 64
Peak        max_memory_reserved of a generation of 200 tokens: weights, embedding and a cache of as
            many tokens, which are there before the call; what a token holds beside them is that of
            a decode
Compile     generate.py compiles the reading of one token into graphs; asked without
Training    Llama's layers in torchao's own code, in bf16, each checkpointed, with logits in fp32;
            torchao's AdamW. memlab.lab's code is asked; the counter that is not named is taken for
            max_memory_allocated
Refused     packings that choose layer by layer or have codes of other widths; training under
            torch.compile, and with weights in int8
Source      pytorch/ao at a3827529c: torchao/_models/llama/generate.py, model.py; at 9acc9a4de:
            benchmarks/quantized_training/pretrain_llama2.py
"""

from typing import Any

from memlab import Model, Recipe, Run
from memlab.terms.workspaces import cublas_workspaces

from .. import packed
from ..described import Described, Refused, capability

MODELS = {"Llama-2-7B": "llama-2-7b", "Llama-3-8B": "llama-3-8b"}
BF16 = Recipe.named("bf16")
SMALL: dict[str, Any] = {"layers": 24, "d_model": 1536, "d_ff": 6144, "heads": 24, "vocab": 32000}
KINDS = {
    "bf16": "bf16",
    "int8wo": "int8",
    "int8dq": "int8",
    "int4wo-64": "int4",
    "int4wo-64-GPTQ": "int4",
}


def describe(reading):
    """See the module.

    Raises      Refused
    """
    what = reading.what
    if reading.group != "inference":
        return trained(reading)
    kind = KINDS.get(what["precision"])
    if kind is None:
        raise Refused("a packing of torchao that has no description")
    model = Model.preset(MODELS[what["model"]])
    sizes = weights(model, kind)
    embedding = 2 * model.vocab * model.d_model
    if reading.id.endswith("/size"):
        return Described(model, BF16, Run(), "nothing", more=(("weights", sum(sizes)),))
    run = Run(phase="decode", batch=what["batch"], tokens=what["new"] - 1)
    held = packed.allocated([embedding, *sizes])
    instead = ("packed weights", held - 2 * model.parameter_count)
    workspace = cublas_workspaces(capability(reading.device), threads=1)
    more = (instead, ("cuBLAS workspace", workspace))
    return Described(model, BF16, run, "peak", more=more)


def weights(model, kind):
    """Bytes of every tensor but the embedding."""
    sizes = []
    for tensor in model.tensors():
        if tensor.component == "embedding":
            continue
        own = [2 * tensor.numel]
        if tensor.linear and kind != "bf16":
            rows, columns = tensor.shape
            own = [rows * columns, 2 * rows]
            if kind == "int4":
                own = [rows * columns // 2, 2 * 2 * rows * (columns // 64)]
        times = model.layers if tensor.name.startswith("layers.") else 1
        sizes += [size for _ in range(times) for size in own]
    return sizes


def trained(reading):
    """The step of a small Llama.

    Raises      Refused
    """
    what = reading.what
    if what.get("compile"):
        raise Refused("torch.compile")
    if what.get("quantized"):
        raise Refused("weights that are trained in int8")
    run = Run(
        batch=what["batch"],
        tokens=what["tokens"],
        checkpoint="block",
        implementation="memlab",
    )
    model = Model(family="llama", name=what["model"], tied=False, **SMALL)
    more = (("cuBLAS workspaces", cublas_workspaces(8)),)  # Ada, by the card's name
    return Described(model, BF16, run, "peak", more=more)
