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

from ...families import NAMES, record_of

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

# Whose code it is: a field of memlab.families.Family, which names module and class.
IMPLEMENTATIONS = {"memlab": "own_network", "transformers": "network"}


def families(implementation: str) -> list[str]:
    """The families that are described as this implementation runs them."""
    field = IMPLEMENTATIONS[implementation]
    return [name for name in NAMES if getattr(record_of(name), field)]


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
        if record_of(family).mixture:  # devices.check_divided saw to it
            divided = importlib.import_module(".tensor_parallel_mixture", __name__)
            return divided.of_family(network("transformers", family))
        return importlib.import_module(".llama_tensor_parallel", __name__).LlamaDivided
    known = record_of(family)
    if known.recorded is not None:
        return importlib.import_module(".recorded", __name__).of_family(family)
    module, name = getattr(known, IMPLEMENTATIONS[implementation])
    return getattr(importlib.import_module(f".{module}", __name__), name)
