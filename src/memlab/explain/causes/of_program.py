"""What a program has beside its steps: copies of the model, the allocator, the CUDA context."""

from __future__ import annotations

from ..case import Case, beside, holding
from .cause import CONTEXTS, LINES, OFTEN, SELDOM, SOMETIMES, Cause


def _wide_average(case: Case) -> Case | None:
    """Beside weights in fp32 a second model is the same."""
    return None if case.recipe.weights == "fp32" else holding("fp32_model")(case)


MORE = (
    Cause(
        "old and new copies while loading",
        SOMETIMES,
        "loading",
        beside("loading"),
        "read max_memory_allocated before the first step",
    ),
    Cause(
        "the checkpoint's state dict kept",
        SOMETIMES,
        "copy",
        holding("state_dict"),
        "del the state dict after load_state_dict: does the peak fall?",
    ),
    Cause(
        "a second model (averaged weights, a reference)", SELDOM, "copy", holding("model"), LINES
    ),
    Cause("weights averaged in fp32", SELDOM, "copy", _wide_average, LINES),
    Cause(
        "fragmentation and rounding",
        OFTEN,
        "allocator",
        beside("allocator"),
        "max_memory_reserved − max_memory_allocated; PYTORCH_ALLOC_CONF=expandable_segments:True",
        level="reserved",
        always=True,
    ),
    Cause(
        "the CUDA context",
        OFTEN,
        "context",
        beside("context"),
        "nvidia-smi beside memory_reserved, with one small tensor",
        level="device",
        always=True,
        between=(min(CONTEXTS), max(CONTEXTS)),
    ),
)
