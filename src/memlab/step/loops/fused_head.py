"""TRL's fused output head: log-probabilities of the next tokens, never all logits at once.

On CUDA the head computes the positions that have a label alone; without Triton, as on a CPU, all.

Source      trl, trainer/utils.py: add_fused_lm_head; trainer/sft_trainer.py: compute_loss
Leaves out  a bias of the head; what one indexing kernel takes for a moment; logits with a soft cap
            on a CPU, which `memlab.step.supported` refuses
"""

from __future__ import annotations

from ..core.graph import Grads, Tensor
from ..core.setting import Setting
from ..core.storage_log import Dim
from ..ops import Ops
from .fused_tiles import log_probs

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Sequence


class Output:
    """FusedCausalLMOutput: what a call of the model gives back, and so what its caller holds.

    found       one number for each next token, [B, T-1]: log-probabilities, entropies, ...
    """

    def __init__(self, loss: Tensor, found: Sequence[Tensor], mask: Tensor) -> None:
        self.loss, self.found, self.mask = loss, found, mask


def fused_head(f: Ops, s: Setting, x: Tensor, head: Tensor) -> Output:
    """What a model with the fused head returns for its last hidden states x."""
    short = Dim("(T-1)", s.T - 1)
    told = (s.B, short)
    hidden = f.part_of(x, s.B, short, x.shape[2])
    mask = f.new("ne", told, "bool")
    found = _scored(f, s, hidden, head, mask)
    if f.backend == "cuda":
        found = [_scattered(f, each, mask, told) for each in found]
    else:
        found = [_filled(f, each, told) for each in found]
    return Output(_own_loss(f, found[0]), found, mask)


def sft_loss(f: Ops, output: Output) -> Tensor:
    """SFTTrainer's: the negative log-probability of each next token, by their number."""
    negative = f.neg(output.found[0])
    count = f.new("sum", (), "int64")
    return _divided(f, f.total_of(negative), count)


def _scored(f: Ops, s: Setting, hidden: Tensor, head: Tensor, mask: Tensor) -> list[Tensor]:
    """The kernel's numbers: on CUDA for each position that has a label, else for all."""
    if f.backend == "cuda":
        rows = _compact(f, s, hidden, mask)
        targets = f.new("index", rows.shape[:1], "int64")
    else:
        flat = Dim("N", hidden.shape[0] * hidden.shape[1])
        rows = f.view(hidden if s.B == 1 else f.copy(hidden), flat, hidden.shape[2])
        targets = f.new("clamp", mask.shape, "int64")
    return log_probs(f, rows, head, targets, s.fused_head)


def _compact(f: Ops, s: Setting, hidden: Tensor, mask: Tensor) -> Tensor:
    """hidden[mask]: the positions that have a label."""
    N = Dim("N", s.B * s.learned)
    rows = f.new("index", (N, hidden.shape[2]), hidden.dtype)
    shape = hidden.shape

    def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
        return [f.new("index_backward", shape, grads[0].dtype)]

    f.apply("index", [hidden], [rows], run, [("indices", mask)])
    return rows


def _filled(f: Ops, x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """x.view(mask.shape).masked_fill(~mask, 0)."""
    absent = f.new("bitwise_not", shape, "bool")
    seen = f.view(x, *shape)
    out = f.new("masked_fill", shape, x.dtype)

    def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
        return [f.new("masked_fill", shape, grads[0].dtype)]

    f.apply("masked_fill", [seen], [out], run, [("mask", absent)])
    return out


def _scattered(f: Ops, x: Tensor, mask: Tensor, shape: tuple[int, ...]) -> Tensor:
    """x.new_zeros(mask.shape).masked_scatter(mask, x)."""
    zeros = f.new("new_zeros", shape, x.dtype)
    out = f.new("masked_scatter", shape, x.dtype)
    del zeros
    size = x.shape

    def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
        return [f.new("masked_scatter_backward", size, grads[0].dtype)]

    f.apply("masked_scatter", [x], [out], run, [("mask", mask)])
    return out


def _own_loss(f: Ops, chosen: Tensor) -> Tensor:
    """The loss that the model's forward gives back beside its log-probabilities; nobody uses it."""
    total = f.total_of(chosen)
    negative = f.neg(total)
    count = f.new("sum", (), "int64")
    clamped = f.new("clamp", (), "int64")
    del count
    return _divided(f, negative, clamped)


def _divided(f: Ops, x: Tensor, count: Tensor) -> Tensor:
    """A number over how many there are."""
    out = f.new("div", (), x.dtype)

    def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
        return [f.new("div", (), grads[0].dtype)]

    f.apply("div", [x], [out], run, [("other", count)])
    return out
