"""TRL's DPOTrainer: the loss of a batch of pairs from a policy and its reference.

S = 2·B sequences: the chosen ones, then the rejected ones

Source      trl, trainer/dpo_trainer.py: _compute_loss, with loss_type="sigmoid" and reverse
            KL divergence, which are the defaults
Leaves out  the numbers that are logged: no more than a few bytes for each token, for a moment
"""

from __future__ import annotations

from ..core.graph import Grads, Tensor
from ..core.setting import Setting
from ..ops import Ops
from .fused_head import Output

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable

    from .programs import Program

    Forward = Callable[[], Output]

WANTED = ("log_probs", "entropy", "mean_logits", "is_top1")


def loss(program: Program, batch: list[Tensor]) -> Tensor:
    """The loss of one micro-batch, divided as Trainer divides it.

    Without a reference its log-probabilities came with the batch, precomputed.
    """
    f, ids = program.f, program.ids(batch)
    reference = None if program.reference is None else lambda: program.judged(ids)
    mean = _of_pairs(f, program.setting, lambda: program.forward(program.policy, ids), reference)
    return f.scale(mean, "div")  # by the micro-batches, of which there may be one


def _of_pairs(f: Ops, s: Setting, policy: Forward, reference: Forward | None) -> Tensor:
    prompt = f.new("eq", (s.B, s.T), "bool")
    labels = f.new("masked_fill", (s.B, s.T), "int64")
    del prompt
    output = policy()
    chosen, rejected = _halves(f, output)
    expected: tuple[Tensor, Tensor] | None = None
    if reference is not None:
        f.grad = False
        other = reference()
        expected = _halves(f, other)
        f.grad = True
    half = chosen.shape
    known = expected or (Tensor(half, "fp32", labels.storage),) * 2
    ratios = [f.sub(mine, theirs) for mine, theirs in zip((chosen, rejected), known, strict=True)]
    difference = f.sub(*ratios)
    each = f.neg(_log_sigmoid(f, f.scale(difference)))
    return f.shift(f.scale(_mean(f, each)))


def _halves(f: Ops, output: Output) -> tuple[Tensor, Tensor]:
    """The log-probability of each text, of the chosen ones and of the rejected ones."""
    per_token = output.found[0]
    totals = _row_sums(f, f.part_of(per_token, *per_token.shape))
    half = totals.shape[0] // 2
    chosen, rejected = f.split(totals, half, half)
    return chosen, rejected


def _row_sums(f: Ops, x: Tensor) -> Tensor:
    """x.sum(dim=1), whose gradient is a view."""
    out = f.new("sum", x.shape[:1], x.dtype)
    shape = x.shape

    def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
        return [f.view(grads[0], *shape)]

    f.apply("sum", [x], [out], run)
    return out


def _log_sigmoid(f: Ops, x: Tensor) -> Tensor:
    """Keeps its input and on a CPU what it has of the exponential."""
    out = f.new("log_sigmoid", x.shape, x.dtype)
    buffer = f.new("log_sigmoid", x.shape if f.backend == "cpu" else (0,), x.dtype)

    def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
        return [f.new("log_sigmoid_backward", grads[0].shape, grads[0].dtype)]

    f.apply("log_sigmoid", [x], [out], run, [("self", x), ("buffer", buffer)])
    return out


def _mean(f: Ops, x: Tensor) -> Tensor:
    """The mean of all values, a scalar."""
    out = f.new("mean", (), x.dtype)
    shape = x.shape

    def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
        return [f.new("div", shape, grads[0].dtype)]

    f.apply("mean", [x], [out], run)
    return out
