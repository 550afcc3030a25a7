"""A step that is computed otherwise than was told, and holds less at once."""

from __future__ import annotations

from ...run import Run
from ..case import Case, of_run
from ..causes.cause import OFTEN, SELDOM, SOMETIMES, Cause
from .turns import as_changed

LOSS = "print(type(trainer).__name__, trainer.args.use_liger_kernel); look for [B, T, V]"


def _own_chunks(run: Run) -> Run | None:
    return run.replace(loss="chunked") if run.implementation == "memlab" else None


def _fused_head(run: Run) -> Run | None:
    return run.replace(loss="fused_head") if run.implementation == "transformers" else None


def _one_by_one(run: Run) -> Run | None:
    return None if run.optimizer_loop == "forloop" else run.replace(optimizer_impl="forloop")


def _checkpointed(case: Case) -> Case | None:
    """Not beside zero bubble, where a rank holds more with checkpoints, and nobody wants them."""
    turned = as_changed("block checkpointing")
    there = case.run.checkpointing == "block" or case.run.devices.splits_backward
    return None if there else turned(case)


STEP = (
    Cause(
        "blocks are checkpointed",
        OFTEN,
        "checkpoint",
        _checkpointed,
        "print(model.is_gradient_checkpointing); trainers and PEFT's helpers turn it on",
    ),
    Cause(
        "SDPA, not eager attention",
        OFTEN,
        "attention",
        as_changed("SDPA attention"),
        "print(model.config._attn_implementation)",
    ),
    Cause(
        "Liger Kernel's loss: the logits in chunks",
        SOMETIMES,
        "loss",
        as_changed("Liger Kernel's loss in chunks"),
        LOSS,
    ),
    Cause("TRL's fused head: the logits in tiles", SOMETIMES, "loss", of_run(_fused_head), LOSS),
    Cause("torch's loss in chunks", SELDOM, "loss", as_changed("torch's loss in chunks"), LOSS),
    Cause("the loss in chunks", SOMETIMES, "loss", of_run(_own_chunks), LOSS),
    Cause(
        "fused AdamW, without temporaries",
        OFTEN,  # Trainer's default
        "foreach",
        as_changed("fused AdamW"),
        "print(optimizer.defaults)",
    ),
    Cause(
        "one weight after the other in the optimizer's step",
        SELDOM,
        "foreach",
        of_run(_one_by_one),
        "print(optimizer.defaults)",
    ),
    Cause(
        "the optimizer steps inside backward",
        SELDOM,
        "inside",
        as_changed("a step inside backward"),
        "look for register_post_accumulate_grad_hook",
    ),
    Cause(
        "the model's output let go before the next forward pass",
        SOMETIMES,
        "output",
        of_run(lambda run: run.replace(loop="plain") if run.loop == "keeps-outputs" else None),
        "look for del out, or a loop inside a function that returns loss.item()",
    ),
    Cause(
        "what was told to be held is not there",
        SOMETIMES,
        "holds",
        of_run(lambda run: run.replace(holds=())),
        "with memlab.explain() as live: two or three steps; print(live)",
    ),
    Cause(
        "saved tensors wait on the host",
        SELDOM,
        "offload",
        of_run(lambda run: run.replace(offload=(*run.offload, "saved"))),
        "look for save_on_cpu, or activation offloading among the trainer's flags",
    ),
    Cause(
        "the optimizer's states on the host",
        SELDOM,
        "offload",
        as_changed("states on the host"),
        "print({v.device for s in optimizer.state.values() for v in s.values()})",
    ),
)
