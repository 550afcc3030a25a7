"""What a question that has no answer can choose instead: one value of the form that gives it one.

Each is what a reader then has, and what it sets; the page shows a button beside the refusal.
"""

from __future__ import annotations

from ..engines.apple import macs
from ..recipe import Recipe
from ..run import Run
from .controls import checked
from .serve_controls import LLAMA_CPP, SERVE

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    Ways = list[tuple[str, dict[str, Any]]]

ON_APPLE = "Inference with llama.cpp, which runs on Apple's GPUs"
NO_COPY_OF_WEIGHTS = (
    "DeepSpeed updates an fp32 master copy of the weights, and this precision has none"
)
WITH_A_COPY = "Mixed precision with bf16 weights and an fp32 master copy, which DeepSpeed updates"


def of_refused(given: Any) -> Ways:
    """For a state that was refused; whatever it is."""
    try:
        state = checked(given)
    except (ValueError, TypeError):
        return []
    if state["card"] not in [each.name for each in macs()]:
        return []
    if state["use"] == SERVE and state["engine"] == LLAMA_CPP:
        return []  # something else is wrong
    return [(ON_APPLE, {"use": SERVE, "engine": LLAMA_CPP})]


def of_step(recipe: Recipe, run: Run) -> Ways:
    """For a step of which no peak is known: of DeepSpeed's, one that it makes."""
    master = recipe.master if recipe.weights == "bf16" else recipe.weights
    if not run.devices.deepspeed or (master == "fp32" and not recipe.autocast):
        return []
    return [(WITH_A_COPY, {"precision": "zero"})]
