"""A step that is computed otherwise: all kept, written out, at once, with temporaries; or not."""

from __future__ import annotations

from ...run import Run
from ..case import Case, holding, of_run
from .cause import LINES, OFTEN, SELDOM, SOMETIMES, Cause
from .turns import as_changed, run_with

CHECKPOINTING = "print(model.is_gradient_checkpointing)"
COMMAND = f"{CHECKPOINTING}, model.training, and look at the command's flags"
HELPERS = f"{CHECKPOINTING}; trainers and PEFT's helpers turn it on"
ATTENTION = "print(model.config._attn_implementation)"
QUARTER = f"{ATTENTION}; or halve T: does the gap fall to a quarter?"
HALF = "halve B: does the gap halve? look for [B, T, V] among the live tensors"
LOSS = "print(type(trainer).__name__, trainer.args.use_liger_kernel); look for [B, T, V]"
FLOAT = "look for .float() before the loss; print(logits.dtype)"
OUTPUT = "del the model's output before backward: does the peak fall?"
FOREACH = "AdamW(..., foreach=False): does the peak fall?"
DEFAULTS = "print(optimizer.defaults)"
HOOK = "look for register_post_accumulate_grad_hook"
GONE = "look for del out, or a loop inside a function that returns loss.item()"
SAVED = "look for save_on_cpu, or activation offloading among the trainer's flags"
ON_HOST = "print({v.device for s in optimizer.state.values() for v in s.values()})"
LIGER, TORCH = "Liger Kernel's loss in chunks", "torch's loss in chunks"


@of_run
def _foreach(run: Run) -> Run | None:
    return None if run.optimizer_loop == "foreach" else run.replace(optimizer_impl="foreach")


@of_run
def _unchecked(run: Run) -> Run | None:
    return None if run.checkpointing == "none" else run.replace(checkpoint="none")


def _checkpointed(case: Case) -> Case | None:
    """Not beside zero bubble, where a rank holds more with checkpoints, and nobody wants them."""
    there = case.run.checkpointing == "block" or case.run.devices.schedule.splits_backward
    return None if there else as_changed("block checkpointing")(case)


@of_run
def _own_chunks(run: Run) -> Run | None:
    return run.replace(loss="chunked") if run.implementation == "memlab" else None


@of_run
def _fused_head(run: Run) -> Run | None:
    return run.replace(loss="fused_head") if run.implementation == "transformers" else None


@of_run
def _one_by_one(run: Run) -> Run | None:
    return None if run.optimizer_loop == "forloop" else run.replace(optimizer_impl="forloop")


@of_run
def _let_go(run: Run) -> Run | None:
    return run.replace(loop="plain") if run.loop == "keeps-outputs" else None


@of_run
def _saved_away(run: Run) -> Run:
    return run.replace(offload=(*run.offload, "saved"))


MORE = (
    Cause("no checkpointing", OFTEN, "checkpoint", _unchecked, COMMAND),
    Cause("eager attention", OFTEN, "attention", run_with(attention="eager"), QUARTER),
    Cause(
        "the loss not in chunks", SOMETIMES, "loss", run_with(loss="plain", loss_chunks=None), HALF
    ),
    Cause("the logits cast to fp32", SOMETIMES, "loss", holding("wide_logits"), FLOAT),
    Cause("the logits held during backward", SOMETIMES, "output", holding("output"), OUTPUT),
    Cause("AdamW's foreach temporaries", SOMETIMES, "foreach", _foreach, FOREACH),
)
LESS = (
    Cause("blocks are checkpointed", OFTEN, "checkpoint", _checkpointed, HELPERS),
    Cause("SDPA, not eager attention", OFTEN, "attention", as_changed("SDPA attention"), ATTENTION),
    Cause("Liger Kernel's loss: the logits in chunks", SOMETIMES, "loss", as_changed(LIGER), LOSS),
    Cause("TRL's fused head: the logits in tiles", SOMETIMES, "loss", _fused_head, LOSS),
    Cause(TORCH, SELDOM, "loss", as_changed(TORCH), LOSS),
    Cause("the loss in chunks", SOMETIMES, "loss", _own_chunks, LOSS),
    Cause(
        "fused AdamW, without temporaries",
        OFTEN,  # Trainer's default
        "foreach",
        as_changed("fused AdamW"),
        DEFAULTS,
    ),
    Cause(
        "one weight after the other in the optimizer's step",
        SELDOM,
        "foreach",
        _one_by_one,
        DEFAULTS,
    ),
    Cause(
        "the optimizer steps inside backward",
        SELDOM,
        "inside",
        as_changed("a step inside backward"),
        HOOK,
    ),
    Cause(
        "the model's output let go before the next forward pass", SOMETIMES, "output", _let_go, GONE
    ),
    Cause("what was told to be held is not there", SOMETIMES, "holds", run_with(holds=()), LINES),
    Cause("saved tensors wait on the host", SELDOM, "offload", _saved_away, SAVED),
    Cause(
        "the optimizer's states on the host",
        SELDOM,
        "offload",
        as_changed("states on the host"),
        ON_HOST,
    ),
)
