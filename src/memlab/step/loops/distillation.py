"""TRL's DistillationTrainer: a student's logits against its teacher's, by the reverse divergence.

C tokens of each completion that are learned · N = B C of them

Source      trl, trainer/distillation_trainer.py: _compute_loss
Leaves out  the numbers that are logged: a few bytes for a moment
"""

from __future__ import annotations

from ..core.graph import Grads, Tensor
from ..core.setting import Setting
from ..core.storage_log import Dim
from ..ops import Ops
from .divergence import divergence

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from .programs import Program


def loss(program: Program, batch: list[Tensor]) -> Tensor:
    """The reverse KL divergence of a micro-batch, in tiles, from both bodies' last states.

    The bodies are called past the models' own forward, and so past accelerate's autocast.
    """
    f, s, student, teacher = program.f, program.setting, program.policy, program.reference
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
    mean = f.over(total, items)
    del mask, count, entropy, summed
    return mean


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
