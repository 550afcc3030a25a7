"""GKDTrainer's loss: the Jensen-Shannon divergence of two models, from all logits of both.

N = B (T-1) rows of V words, all of them there at once. Nothing is cut to the completion before the
last moment, so the prompt's rows cost what the others do. With beta=0.5, the default, at the sum
of both divergences 15 tensors of N V values are alive beside the logits of both models, and one
where both distributions stand one above the other.

Source      trl, experimental/gkd/gkd_trainer.py: compute_loss, generalized_jsd_loss; torch
            2.13: torch/nn/functional.py, kl_div; tools/autograd/derivatives.yaml, logsumexp
Leaves out  what logsumexp has inside: the largest of each pair and their distances, 3 N V values
            that are gone before the highest moment
"""

from __future__ import annotations

from ..core.graph import Grads, Tensor, call
from ..core.setting import Setting
from ..core.storage_log import Dim
from ..ops import Ops
from .teacher import logits_of, widened

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from .programs import Program


def loss(program: Program, batch: list[Tensor]) -> Tensor:
    """The loss of a micro-batch, of all logits of both. The teacher leaves a cache of keys, values.

    It is called in evaluation mode and not told use_cache=False, so what it returns has one, which
    lives as long as its logits: until the loss is there.
    """
    f, s, student, teacher = program.f, program.setting, program.policy, program.reference
    ids = program.ids(batch)
    hidden = call(student.body, ids)
    f.begin_loss()
    mine = logits_of(f, student, hidden)
    del hidden
    f.end_autocast()
    mine = widened(f, mine)
    theirs, cache = teacher.answered(ids)
    divergence = generalized_jsd(f, s, mine, theirs)
    teacher.forget(cache)
    return divergence


def generalized_jsd(f: Ops, s: Setting, student: Tensor, teacher: Tensor) -> Tensor:
    """The loss of one micro-batch; it is divided by the tokens of all, whose number is there.

    Shapes      logits of both [B, T, V]; a scalar
    """
    shape = (s.B, Dim("(T-1)", s.T - 1), student.shape[2])
    mine, theirs = (f.part_of(each, *shape) for each in (student, teacher))
    mine, theirs = f.scale(mine, "div"), f.scale(theirs, "div")  # by the temperature, even by 1
    own, told = _log_softmax(f, mine), _log_softmax(f, theirs)
    beta = f.new("lift_fresh", (), own.dtype)
    mixture = _log_sum(f, _stacked(f, f.shift(own), f.shift(told)))
    of_teacher = _divergence(f, mixture, told)
    of_student = _divergence(f, mixture, own)
    each = _both(f, of_teacher, of_student, beta)
    mask = f.new("ne", shape[:2], "bool")
    chosen = _chosen(f, each, mask, Dim("N", s.B * s.learned))
    del each
    return _over_items(f, f.total_of(chosen))


def _both(f: Ops, of_teacher: Tensor, of_student: Tensor, beta: Tensor) -> Tensor:
    """beta * kl_teacher + (1 - beta) * kl_student."""
    first = _times(f, beta, of_teacher)
    rest = f.new("rsub", (), beta.dtype)
    return f.add(first, _times(f, rest, of_student))


def _log_softmax(f: Ops, x: Tensor) -> Tensor:
    """Keeps its result."""
    out = f.new("log_softmax", x.shape, x.dtype)

    def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
        return [f.new("log_softmax_backward", grads[0].shape, grads[0].dtype)]

    f.apply("log_softmax", [x], [out], run, [("result", out)])
    return out


def _stacked(f: Ops, a: Tensor, b: Tensor) -> Tensor:
    """torch.stack: both in a new tensor, whose gradient is cut into views."""
    shape = a.shape
    out = f.new("stack", (2, *shape), a.dtype)

    def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
        return [f.view(grads[0], *shape) if need else None for need in needs]

    f.apply("stack", [a, b], [out], run)
    return out


def _log_sum(f: Ops, x: Tensor) -> Tensor:
    """torch.logsumexp over the two; keeps what it read and what it made."""
    out = f.new("logsumexp", x.shape[1:], x.dtype)
    shape, dtype = x.shape, x.dtype

    def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
        apart = f.new("sub", shape, dtype)
        e = f.new("exp", shape, dtype)
        made = f.new("mul", shape, dtype)
        del apart, e
        return [made]

    f.apply("logsumexp", [x], [out], run, [("self", x), ("result", out)])
    return out


def _divergence(f: Ops, mixture: Tensor, target: Tensor) -> Tensor:
    """F.kl_div(mixture, target, log_target=True): exp(target) * (target - mixture)."""
    apart = f.sub(target, mixture)
    return f.mul(f.exp(target), apart)


def _times(f: Ops, number: Tensor, x: Tensor) -> Tensor:
    """A number that is a tensor, times x; the number is kept."""
    out = f.new("mul", x.shape, x.dtype)

    def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
        return [f.new("mul", grads[0].shape, grads[0].dtype)]

    f.apply("mul", [x], [out], run, [("self", number)])
    return out


def _chosen(f: Ops, x: Tensor, mask: Tensor, rows: Dim) -> Tensor:
    """x[mask], whose gradient is written into zeros.

    A dispatch mode makes autograd write it into a copy of them instead, a tensor more for a moment.
    """
    out = f.new("index", (rows, x.shape[2]), x.dtype)
    shape = x.shape

    def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
        return [f.new("index_backward", shape, grads[0].dtype)]

    f.apply("index", [x], [out], run, [("indices", mask)])
    return out


def _over_items(f: Ops, x: Tensor) -> Tensor:
    """A sum over the number of tokens, which is in fp32 and makes the loss so."""
    out = f.new("div", (), "fp32")
    dtype = x.dtype

    def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
        made = f.new("div", (), "fp32")
        return [made if dtype == "fp32" else f.new("to", (), dtype)]

    f.apply("div", [x], [out], run)
    return out
