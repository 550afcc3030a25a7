"""The losses of TRL's two trainers that distil: a student's logits against its teacher's.

C tokens of each completion that are learned · N = B C of them

Source      trl 1.16, trainer/distillation_trainer.py: _compute_loss; experimental/gkd/
            gkd_trainer.py: compute_loss, generalized_jsd_loss
Leaves out  the numbers that are logged: a few bytes for a moment
"""

from __future__ import annotations

from .divergence import divergence
from .graph import Grads, Tensor, call
from .jensen_shannon import generalized_jsd
from .ops import Ops
from .setting import Setting
from .storage_log import Dim
from .teacher import logits_of, widened

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    from .teacher import Judge


def distillation_loss(f: Ops, s: Setting, student: Any, teacher: Judge) -> Tensor:
    """DistillationTrainer's: the reverse KL divergence, in tiles, from both bodies' last states.

    The bodies are called past the models' own forward, and so past accelerate's autocast.
    """
    number = f.new("clamp", (), "fp32")
    items = f.new("div", (), "fp32")  # how many tokens all micro-batches have
    del number
    ids = f.new("cat", (s.B, s.T), "int64")
    mask = f.new("cat", (s.B, s.T), "int64")
    mine = _completion(f, s, student.body(ids))
    theirs = teacher.hidden(ids)
    f.begin_loss()
    valid = f.new("ne", (Dim("N", s.B * s.learned),), "bool")
    count = f.new("sum", (), "int64")
    rows, others = _rows(f, s, mine), _rows(f, s, theirs)
    if f.backend == "cuda":
        rows, others = _indexed(f, rows, valid), _indexed(f, others, valid)
    each, entropy = divergence(f, (rows, student.lm_head), (others, teacher.network.lm_head))
    if f.backend != "cuda":
        each, entropy = _filled(f, each, valid), _filled(f, entropy, valid)
    total = f.total_of(each)
    summed = f.new("sum", (), "fp32")
    loss = f.over(total, items)
    del mask, count, entropy, summed
    return loss


def gkd_loss(f: Ops, s: Setting, student: Any, teacher: Judge, ids: Tensor) -> Tensor:
    """GKDTrainer's: of all logits of both models. The teacher leaves a cache of keys and values.

    It is called in evaluation mode and not told use_cache=False, so what it returns has one, which
    lives as long as its logits: until the loss is there.
    """
    hidden = call(student.body, ids)
    f.begin_loss()
    mine = logits_of(f, student, hidden)
    del hidden
    f.end_autocast()
    mine = widened(f, mine)
    theirs, cache = teacher.answered(ids)
    loss = generalized_jsd(f, s, mine, theirs)
    teacher.forget(cache)
    return loss


def _completion(f: Ops, s: Setting, hidden: Tensor) -> Tensor:
    """The states before each token that is learned: without the last one, then the last C."""
    short = Dim("(T-1)", s.T - 1)
    hidden = f.part_of(hidden, s.B, short, hidden.shape[2])
    if s.learned == short:
        return hidden
    return f.part_of(hidden, s.B, s.learned, hidden.shape[2])


def _rows(f: Ops, s: Setting, hidden: Tensor) -> Tensor:
    """hidden.reshape(-1, D), which copies where the rows of several texts are cut."""
    shape = (s.B, s.learned, hidden.shape[2])
    flat = Dim("N", s.B * s.learned)
    part = hidden if s.B == 1 else f.copy(hidden, *shape)
    return f.view(part, flat, hidden.shape[2])


def _indexed(f: Ops, x: Tensor, valid: Tensor) -> Tensor:
    """x[valid]: on a GPU with Triton, the rows that count."""
    out = f.new("index", x.shape, x.dtype)
    shape = x.shape

    def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
        return [f.new("index_backward", shape, grads[0].dtype)]

    f.apply("index", [x], [out], run, [("indices", valid)])
    return out


def _filled(f: Ops, x: Tensor, valid: Tensor) -> Tensor:
    """x.masked_fill(~valid, 0)."""
    absent = f.new("bitwise_not", valid.shape, "bool")
    out = f.new("masked_fill", x.shape, x.dtype)

    def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
        return [f.new("masked_fill", grads[0].shape, grads[0].dtype)]

    f.apply("masked_fill", [x], [out], run, [("mask", absent)])
    return out
