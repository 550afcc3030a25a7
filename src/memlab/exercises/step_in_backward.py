"""Exercises of the step inside backward."""

from typing import Any

from ..model import Model
from ..run import Run
from . import exercise


def _peak(name: str, **how: Any) -> int:
    from ..step.simulate import simulate  # only who asks for this answer needs it

    return simulate(Model.preset(name), "bf16", Run(batch=1, **how)).peak.bytes


def _qwen(**how: Any) -> int:
    return _peak("qwen3-4b", tokens=4096, optimizer_impl="fused", checkpoint="block", **how)


def _llama(**how: Any) -> int:
    return _peak("llama-3-8b", tokens=8192, checkpoint="block", **how)


def _gradients(name: str, bytes: int = 2) -> int:
    return bytes * Model.preset(name).parameter_count


exercise(
    "ex-step-in-backward-1",
    answer=lambda: _gradients("tiny-llama", 4),
    hint="What is in memory after the first of two micro-batches, when no weight has been updated?",
    wrong={
        lambda: 4 * max(t.count // t.copies for t in Model.preset("tiny-llama").tensors()): (
            "That is the largest gradient: what the machine has without accumulation."
        ),
        lambda: _gradients("tiny-llama", 8): "A micro-batch adds to the gradients in place.",
        lambda: _gradients("tiny-llama"): "The gradients of TinyLlama are in fp32 here.",
    },
)

exercise(
    "ex-step-in-backward-2",
    answer=lambda: _gradients("llama-3-8b"),
    hint="Which row is in memory at the loss now, and was not before?",
    wrong={
        lambda: 0: "A tensor of zeros is as large as any other.",
        lambda: (
            _llama() - _llama(step_in_backward=True)
        ): "That is what the step inside backward had brought. Which row is in memory again?",
        lambda: (
            _llama(step_in_backward=True) + _gradients("llama-3-8b")
        ): "That is the new peak. By how much did it rise?",
        lambda: _gradients("llama-3-8b", 4): "Gradients are in bf16: two bytes for each parameter.",
    },
)

exercise(
    "ex-step-in-backward-3",
    answer=lambda: 3 * 4,
    hint="The hook runs in every backward pass. How many of them are there in 3 steps?",
    unit="updates",
    wrong={
        lambda: 3: "The hook knows nothing of micro-batches: each backward pass is a step.",
        lambda: 0: "The norm is 0 because no gradient is left to measure; the loss does fall.",
        lambda: 4: "That is one step. The log shows three.",
    },
)

exercise(
    "ex-step-in-backward-4",
    answer=lambda: _qwen() - _qwen(step_in_backward=True),
    hint="Twice simulate(qwen, 'bf16', Run(…, checkpoint='block', optimizer_impl='fused')), once "
    "with step_in_backward=True.",
    wrong={
        lambda: _gradients("qwen3-4b"): "That is all gradients; the peak falls only to the next "
        "phase.",
        lambda: 0: "The peak was late in backward, where the gradients are.",
    },
)
