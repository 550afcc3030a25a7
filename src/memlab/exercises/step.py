"""Exercises of the step and its peak."""

from typing import Any

from ..fit import limit_of
from ..model import Model
from ..run import Run
from ..step import Step, simulate
from ..step.core.moments import hills
from ..units import GB, GiB
from . import exercise

PARTS = (1, 2, 4, 8, 16, 32)


def _llama(**how: Any) -> Step:
    gpu = Run(batch=1, tokens=8192)
    return simulate(Model.preset("llama-3-8b"), "bf16", gpu.replace(**how))


def _loss(step: Step, without: str = "") -> int:
    """The loss phase at its highest, without one of its rows."""
    return sum(row.derived or 0 for row in hills(step)["loss"].rows if row.term != without)


def _gradients() -> int:
    return _llama().rows["gradients"]


def _smallest(gradients: bool = True, room: int | None = None) -> int:
    """The fewest micro-batches of 32 sequences of 512 tokens whose loss fits on the H100."""
    room = limit_of("H100 80GB")[0] if room is None else room
    for parts in PARTS:
        summed = parts if gradients else 1
        how = {"tokens": 512, "optimizer_impl": "fused", "micro_batches": summed}
        if _loss(_llama(batch=32 // parts, **how)) <= room:
            return parts
    raise AssertionError("none fits")


def _checkpointed(inputs: int = 1, gradients: bool = True) -> int:
    """The highest moment of backward of the sketch with checkpointed layers."""
    step, layers = _llama(), 32
    rows = step.rows
    resident = rows["weights"] + rows["optimizer"] + (rows["gradients"] if gradients else 0)
    return resident + rows["activations"] // layers + inputs * 2**26


exercise(
    "ex-step-1",
    answer=_checkpointed,
    hint="The gradients grow by a layer each time, so the highest moment is in the last layer: all "
    "gradients, one layer's saved tensors, one input.",
    wrong={
        lambda: _checkpointed(32): "The inputs of the layers that are done were freed.",
        lambda: _checkpointed(0): "The input of the last layer is still in memory.",
        lambda: _checkpointed(gradients=False): "Each layer leaves its gradients behind.",
    },
)

exercise(
    "ex-step-2",
    answer=_gradients,
    hint="Which row is in memory during the forward pass now, and was not before?",
    wrong={
        lambda: 2 * _gradients(): "Gradients are in bf16: two bytes for each parameter.",
        lambda: _llama().rows["optimizer"]: "Those are the states, which stay with either line.",
        lambda: 0: "`set_to_none=False` fills the gradients with zeros and keeps them in memory.",
        lambda: (
            _llama().peak.bytes + _gradients()
        ): "That is the new peak. By how much did it rise?",
    },
)

exercise(
    "ex-step-3",
    answer=_gradients,
    hint="Which row exists in this phase alone? It is as large as all gradients.",
    wrong={
        lambda: _llama(checkpoint="block").peak.bytes: "That is the height of its top over zero.",
        lambda: _llama().rows["optimizer"]: "Those are the states, which are below it.",
        lambda: 2 * _gradients(): "`foreach` makes one temporary for each parameter.",
    },
)

exercise(
    "ex-step-4",
    answer=_smallest,
    hint="For each number k: the loss phase of 32 / k sequences, and the gradients under it.",
    unit="micro-batches",
    wrong={
        lambda: _smallest(gradients=False): "From the second micro-batch on, gradients are there.",
        lambda: _smallest(room=80 * GB - 5 * GiB): "That fits, but half as many do as well.",
        lambda: 1: "In one batch the loss phase needs more than twice what the H100 has.",
    },
)
