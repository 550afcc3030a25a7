"""An evaluation between two steps, as transformers' Trainer makes one at eval_steps.

Gradients are gone and optimizer states are there. Every batch is read as in training, its loss
included, but without a graph, without dropout and without checkpoints. With compute_metrics the
logits of all batches stay on the device until eval_accumulation_steps, or until the end: each new
batch is joined to those before it, so that for a moment all of them are there twice.

Source      transformers, trainer.py: evaluation_loop, prediction_step; trainer_pt_utils.py:
            EvalLoopContainer, nested_concat, nested_numpify; accelerate, accelerator.py:
            prepare_model, whose ConvertOutputsToFp32 makes fp32 logits of those of autocast
Leaves out  preprocess_logits_for_metrics; eval_do_concat_batches=False; other processes, whose
            logits are padded and gathered; the losses of batches that are not simulated, one number
            a sequence
"""

from __future__ import annotations

from ...base.frozen import replace
from ...run import Run
from ..core.graph import Tensor
from ..core.setting import Setting
from ..ops import Ops
from .inputs import kinds_of

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

BATCHES = 2  # whose logits nobody gathers: the others are like these


def evaluate(f: Ops, setting: Setting, policy: Any, run: Run) -> None:
    """All batches of one evaluation, or those between two times that logits go to the host."""
    assert run.eval_batch is not None
    still: Any = {f"{part}_dropout": 0.0 for part in ("attention", "residual", "embedding")}
    s = replace(setting, batch=run.eval_batch, checkpoint=False, keeps_output=True, **still)
    first = len(f.log.events)
    f.part, f.grad, policy.setting = "", False, s
    _loop(f, s, policy, run)
    f.grad, policy.setting = True, setting
    del f.log.marks["loss"]
    for record, *_ in f.log.events[first:]:
        if record is not None and record.category == "other":
            record.category = "activations"


def _loop(f: Ops, s: Setting, policy: Any, run: Run) -> None:
    """evaluation_loop: its variables live until the next batch has others."""
    count = run.eval_logits or BATCHES
    inputs: list[Tensor] = []
    coming = [_batch(f, s, run)]
    logits = losses = labels = None
    every: dict[str, Tensor | None] = dict.fromkeys(("losses", "logits", "labels"))
    for number in range(1, count + 1):
        if run.backend == "cpu" and number < count:  # the loader is one batch ahead
            coming.append(_batch(f, s, run))
        elif number > 1 and run.backend != "cpu":
            coming.append(_batch(f, s, run))
        inputs = coming.pop(0)
        if number in (1, count):  # those between hold less
            made = _read(f, policy, inputs[0])
        else:
            made = f.new("lm_head", (s.B, s.T, s.V), _format(f, s))
        losses = f.new("repeat", (s.B,), "fp32")
        every["losses"] = _joined(f, every["losses"], losses)
        if run.eval_logits:
            logits, labels = made, inputs[1]
            every["logits"] = _joined(f, every["logits"], logits)
            every["labels"] = _joined(f, every["labels"], labels)
        del made
    if run.backend == "cpu" and (whole := every["logits"]) is not None:
        every["logits"] = f.to(whole, "fp32")  # numpy has no bfloat16
        del whole
    every.clear()
    del inputs, coming, logits, losses, labels


def _batch(f: Ops, s: Setting, run: Run) -> list[Tensor]:
    return [f.new(kind, (s.B, s.T), "int64", "inputs") for kind in kinds_of(run)]


def _format(f: Ops, s: Setting) -> str:
    """That of the logits that the model returns: under autocast they are made fp32 again."""
    return "fp32" if f.autocast else s.dtype


def _read(f: Ops, policy: Any, ids: Tensor) -> Tensor:
    """prediction_step: the model's logits, its loss beside them."""
    items = f.new("items", (), "fp32")  # labels of the batch
    loss = policy.forward(ids)
    (logits,), f.output = f.output, ()
    f.end_autocast()
    wide = f.to(logits, "fp32") if f.autocast else logits
    del logits, loss, items
    return wide


def _joined(f: Ops, before: Tensor | None, new: Tensor) -> Tensor:
    """What EvalLoopContainer has after one batch more: the first is kept as it is."""
    if before is None:
        return new
    rows, *rest = before.shape
    return f.new("cat", (rows + new.shape[0], *rest), new.dtype)
