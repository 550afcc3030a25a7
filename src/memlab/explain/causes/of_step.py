"""A step that is computed otherwise: all kept, written out, at once, with temporaries."""

from __future__ import annotations

from ...run import Run
from ..case import holding, of_run
from .cause import OFTEN, SOMETIMES, Cause


def _foreach(run: Run) -> Run | None:
    return None if run.optimizer_loop == "foreach" else run.replace(optimizer_impl="foreach")


def _unchecked(run: Run) -> Run | None:
    return None if run.checkpointing == "none" else run.replace(checkpoint="none")


STEP = (
    Cause(
        "no checkpointing",
        OFTEN,
        "checkpoint",
        of_run(_unchecked),
        "print(model.is_gradient_checkpointing), model.training, and look at the command's flags",
    ),
    Cause(
        "eager attention",
        OFTEN,
        "attention",
        of_run(lambda run: run.replace(attention="eager")),
        "print(model.config._attn_implementation); or halve T: does the gap fall to a quarter?",
    ),
    Cause(
        "the loss not in chunks",
        SOMETIMES,
        "loss",
        of_run(lambda run: run.replace(loss="plain", loss_chunks=None)),
        "halve B: does the gap halve? look for [B, T, V] among the live tensors",
    ),
    Cause(
        "the logits cast to fp32",
        SOMETIMES,
        "loss",
        holding("wide_logits"),
        "look for .float() before the loss; print(logits.dtype)",
    ),
    Cause(
        "the logits held during backward",
        SOMETIMES,
        "output",
        holding("output"),
        "del the model's output before backward: does the peak fall?",
    ),
    Cause(
        "AdamW's foreach temporaries",
        SOMETIMES,
        "foreach",
        of_run(_foreach),
        "AdamW(..., foreach=False): does the peak fall?",
    ),
)
