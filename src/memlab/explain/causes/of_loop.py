"""What a loop holds beside its steps, from one to the next, and how it fills its rows."""

from __future__ import annotations

from ...run import Run
from ..case import holding, of_run
from ..evaluations import gathered, gathers
from .cause import OFTEN, SELDOM, SOMETIMES, Cause

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from .turns import Turn

ZERO_GRAD = "call zero_grad(set_to_none=True) before the forward pass"
GROWS = "does memory grow with every step? loss.item(), or torch.no_grad()"
GROWS_BY = "does memory grow by [B, T, V] with every step? keep argmax(-1), or .cpu(), instead"
LOADER = "print(next(iter(loader))['input_ids'].device); what caches batches? keep them on the host"
DEL = "del out after backward, or take out.loss alone: does the peak fall?"
MASK = "print(batch['attention_mask'].all()); pad nothing: does the peak fall?"
PACKED = "print(batch['input_ids'].shape, 'position_ids' in batch)"
COMPUTE = "TrainingArguments(eval_accumulation_steps=1), or no compute_metrics: does the peak fall?"


@of_run
def _output_kept(run: Run) -> Run | None:
    return run.replace(loop="keeps-outputs") if run.loop == "plain" else None


def _texts(kind: str) -> Turn:
    return of_run(lambda run: run.replace(texts=kind) if run.texts == "full" else None)


MORE = (
    Cause(
        "the gradients of the last step still there",
        SOMETIMES,
        "gradients kept",
        holding("gradients"),
        ZERO_GRAD,
    ),
    Cause("losses kept with their graphs", OFTEN, "graphs", holding("graph"), GROWS, counted=True),
    Cause(
        "logits of every step collected",
        SOMETIMES,
        "collected",
        holding("logits"),
        GROWS_BY,
        counted=True,
    ),
    Cause(
        "data kept on the device, batch by batch",
        SELDOM,
        "cache",
        holding("batch"),
        LOADER,
        counted=True,
    ),
    # out = model(...); out.loss.backward(): the name lives on.
    Cause(
        "the model's output kept until the next one is there", OFTEN, "output", _output_kept, DEL
    ),
    Cause("padding: a mask, kept in every layer", SOMETIMES, "texts", _texts("padded"), MASK),
    Cause(
        "texts packed into one row, without flash attention",
        SELDOM,
        "texts",
        _texts("packed"),
        PACKED,
    ),
    Cause(
        "logits of an evaluation gathered on the device",
        SOMETIMES,
        "evaluation",
        gathers,
        COMPUTE,
        sized=gathered,
    ),
)
