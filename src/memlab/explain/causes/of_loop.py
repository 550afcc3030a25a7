"""What a loop holds beside its steps, from one to the next, and how it fills its rows."""

from __future__ import annotations

from ...run import Run
from ..case import holding, of_run
from ..evaluations import gathered, gathers
from .cause import OFTEN, SELDOM, SOMETIMES, Cause

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable


def _texts(kind: str) -> Callable[[Run], Run | None]:
    return lambda run: run.replace(texts=kind) if run.texts == "full" else None


LOOP = (
    Cause(
        "the gradients of the last step still there",
        SOMETIMES,
        "gradients kept",
        holding("gradients"),
        "call zero_grad(set_to_none=True) before the forward pass",
    ),
    Cause(
        "losses kept with their graphs",
        OFTEN,
        "graphs",
        holding("graph"),
        "does memory grow with every step? loss.item(), or torch.no_grad()",
        counted=True,
    ),
    Cause(
        "logits of every step collected",
        SOMETIMES,
        "collected",
        holding("logits"),
        "does memory grow by [B, T, V] with every step? keep argmax(-1), or .cpu(), instead",
        counted=True,
    ),
    Cause(
        "data kept on the device, batch by batch",
        SELDOM,
        "cache",
        holding("batch"),
        "print(next(iter(loader))['input_ids'].device); what caches batches? keep them on the host",
        counted=True,
    ),
    Cause(
        "the model's output kept until the next one is there",
        OFTEN,  # out = model(...); out.loss.backward(): the name lives on
        "output",
        of_run(lambda run: run.replace(loop="keeps-outputs") if run.loop == "plain" else None),
        "del out after backward, or take out.loss alone: does the peak fall?",
    ),
    Cause(
        "padding: a mask, kept in every layer",
        SOMETIMES,
        "texts",
        of_run(_texts("padded")),
        "print(batch['attention_mask'].all()); pad nothing: does the peak fall?",
    ),
    Cause(
        "texts packed into one row, without flash attention",
        SELDOM,
        "texts",
        of_run(_texts("packed")),
        "print(batch['input_ids'].shape, 'position_ids' in batch)",
    ),
    Cause(
        "logits of an evaluation gathered on the device",
        SOMETIMES,
        "evaluation",
        gathers,
        "TrainingArguments(eval_accumulation_steps=1), or no compute_metrics: does the peak fall?",
        sized=gathered,
    ),
)
