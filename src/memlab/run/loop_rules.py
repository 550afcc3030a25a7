"""What each loop can be asked, and what it keeps beside a step."""

from __future__ import annotations

from ..base.message import Message
from .loops import JUDGED, LOOPS, TAUGHT, TRAINERS, TRL

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from .run import Run


def keeps_output(run: Run) -> bool:
    """Whether what the model returns lives until the next forward pass is over.

    A loop that `holds` its output is the same program as loop="keeps-outputs".
    """
    held = "output" in run.holds and run.implementation == "transformers"
    return held or LOOPS[run.loop].keeps_output


def reference_model(run: Run) -> str:
    """What judges beside the policy: "model", "adapters off", or nothing that is called.

    Source      trl, trainer/dpo_trainer.py and grpo_trainer.py: __init__
    """
    if run.loop == "grpo" and run.reference is not None:
        return "model" if run.lora is None else "adapters off"
    if run.loop != "dpo" or run.reference == "precomputed":
        return ""
    return run.reference or ("model" if run.lora is None else "adapters off")


def check(run: Run) -> None:
    """Refuse what no such program does.

    Raises      ValueError that names the field, its value and what would be right
    """
    loop = run.loop
    if run.fused_head and run.implementation != "transformers":
        raise ValueError("loss='fused_head' is TRL's, for models of transformers")
    if LOOPS[loop].called and run.implementation != "transformers":
        raise ValueError(f"loop={loop!r} runs models of transformers, not memlab's")
    if LOOPS[loop].keeps_output and (run.in_chunks or run.fused_head):
        raise ValueError(
            f"loop={loop!r} with loss={run.loss!r}: all logits are never there at once"
        )
    if loop in TRAINERS and run.clip is False:
        raise ValueError(
            f"clip=False with loop={loop!r}: without a bound it takes the gradients' norm as well"
        )
    if loop in JUDGED and run.in_chunks:
        raise ValueError(f"loop={loop!r} with loss={run.loss!r}: its loss is the fused head's")
    if run.library_loss:
        _check_library_loss(run)
    usual = (run.loop, run.texts, run.devices.ranks, run.adapter) == ("plain", "full", 1, None)
    if run.loss == "cross_entropy" and not usual:
        raise ValueError(
            "loss='cross_entropy' is described with loop='plain', texts='full' and LoRA at most, "
            "on one device"
        )
    if run.teacher is not None or LOOPS[loop].taught:
        from . import teacher  # only who has one needs it

        teacher.check(run, TAUGHT)
    if run.reference is not None and loop not in JUDGED:
        raise ValueError(
            f"reference={run.reference!r} is for loop={' or '.join(map(repr, JUDGED))}; this is "
            f"{loop!r}"
        )
    if loop == "grpo" and run.reference == "precomputed":
        raise ValueError("reference='precomputed' is for loop='dpo'; a rollout is new to grpo's")
    if run.completion is not None:
        _check_completion(run)
    _check_texts(run)
    _check_evaluation(run)


def _check_library_loss(run: Run) -> None:
    """Where torch's chunked loss and Liger's are described: one device, a loop of one's own."""
    loss = run.library_loss
    if run.implementation != "transformers":
        raise ValueError(f"loss={loss!r} is described for models of transformers, not memlab's")
    if run.loop != "plain":
        ranks = run.devices.ranks
        where = f", on {ranks:,} devices" if ranks > 1 else ""
        raise ValueError(
            f"loss={loss!r} is described with loop='plain' on one device; this is "
            f"loop={run.loop!r}{where}"
        )
    if run.devices.ranks > 1:
        raise ValueError(Message("loss={loss} is supported on one GPU only", loss=loss))
    if loss == "liger" and run.backend == "cpu":
        raise ValueError("loss='liger': its kernels are Triton's, for a GPU; backend='cuda' is")


def _check_texts(run: Run) -> None:
    if run.texts == "full":
        return
    if run.texts not in LOOPS[run.loop].texts:
        raise ValueError(f"texts={run.texts!r} with loop={run.loop!r} is not described")
    if run.in_chunks:
        raise ValueError(
            f"texts={run.texts!r} with loss={run.loss!r} is not described; with loop='sft' it is"
        )
    if run.texts == "packed" and run.completion is not None:
        raise ValueError(f"completion={run.completion} with texts='packed' is not described")


def _check_evaluation(run: Run) -> None:
    """An evaluation is Trainer's: one in a loop of one's own is a call without gradients."""
    if run.eval_batch is None and run.eval_logits:
        raise ValueError(f"eval_logits={run.eval_logits} without eval_batch")
    if run.eval_batch is not None and run.loop not in TRAINERS:
        raise ValueError(f"eval_batch={run.eval_batch} is for loop='trainer'; this is {run.loop!r}")


def _check_completion(run: Run) -> None:
    if run.loop not in TRL:
        raise ValueError(
            f"completion={run.completion} is for loop={', '.join(map(repr, TRL))}; in "
            f"{run.loop!r} every token is learned"
        )
    if run.tokens is not None and not 1 <= run.completion < run.tokens:  # type: ignore[operator]
        pattern = "completion={completion}; of {tokens} tokens 1 to {most} can be the completion"
        most = run.tokens - 1
        raise ValueError(Message(pattern, completion=run.completion, tokens=run.tokens, most=most))
