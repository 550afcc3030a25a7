"""torch.distributed.tensor.parallel.loss_parallel: the loss of logits that are divided by words.

What goes round is a number a row: the largest logit, the sum of the exponentials, and the label's
own log-probability, of which all ranks but one have a zero.

Source      torch, torch/distributed/tensor/parallel/loss.py; placement_types.py: _MaskPartial
"""

from __future__ import annotations

from ..core.graph import Grads, Tensor
from ..ops import Ops


class LossParallel(Ops):
    """All operators, with the cross-entropy of a rank that has some of the words."""

    def own_words(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Which of these words other ranks have, and where the own ones stand here.

        Source      _MaskPartial._mask_tensor in placement_types.py
        """
        below, above = self.new("lt", ids.shape, "bool"), self.new("ge", ids.shape, "bool")
        mask = self.new("or", ids.shape, "bool")
        del below, above
        copy = self.new("clone", ids.shape, "int64")
        mine = self.new("sub", ids.shape, "int64")
        del copy
        zero = self.new("lift_fresh", (), "int64")
        del zero
        return mask, mine

    def cross_entropy(self, logits: Tensor, labels: Tensor) -> Tensor:
        """loss_parallel's: logits [rows, V / t], labels [rows]; the mean, a scalar.

        Source      torch/distributed/tensor/parallel/loss.py
        """
        logp = self._log_softmax(logits)

        def passed(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            return [grads[0]]

        self.apply("log_softmax", [logits], [logp], passed, [("result", logp)])
        loss, weight = self._nll_loss(logp)
        shape, dtype = logp.shape, logp.dtype

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            return [self._nll_loss_backward(shape, dtype)]

        kept = [("self", logp), ("target", labels), ("total_weight", weight)]
        self.apply("nll_loss", [logp], [loss], run, kept)
        return loss

    def _log_softmax(self, x: Tensor) -> Tensor:
        rows, dtype = (x.shape[0], 1), x.dtype
        part = self.new("amax", rows, dtype)
        largest = self.new("all_reduce", rows, dtype)
        del part
        shifted = self.new("sub", x.shape, dtype)
        powers = self.new("exp", x.shape, dtype)
        part = self.new("sum", rows, dtype)
        del powers
        total = self.new("all_reduce", rows, dtype)
        del part
        log = self.new("log", rows, dtype)
        result = self.new("sub", x.shape, dtype)
        del largest, shifted, total, log
        return result

    def _safe(self, labels: tuple[int, ...]) -> Tensor:
        """torch.where(target != ignore_index, target, 0)."""
        wanted = self.new("ne", labels, "bool")
        safe = self.new("where", labels, "int64")
        del wanted
        return safe

    def _nll_loss(self, logp: Tensor) -> tuple[Tensor, Tensor]:
        rows, dtype = logp.shape[:1], logp.dtype
        safe = self._safe(rows)
        mask, mine = self.own_words(safe)
        part = self.new("gather", rows, dtype)
        zero = self.new("lift_fresh", (), dtype)
        del zero, mask
        total = self.new("all_reduce", rows, dtype)
        negative = self.new("neg", rows, dtype)
        wanted = self.new("ne", rows, "bool")
        result = self.new("where", rows, dtype)
        del wanted, negative
        wanted = self.new("ne", rows, "bool")
        count = self.new("sum", (), "int64")
        del wanted
        weight = self.new("to", (), dtype)
        del count
        summed = self.new("sum", (), dtype)
        loss = self.new("div", (), dtype)
        del summed, result, safe, mine, part, total
        return loss, weight

    def _nll_loss_backward(self, shape: tuple[int, ...], dtype: str) -> Tensor:
        """Of both operators at once: (grad_input + exp(log-probabilities)) · grad_output."""
        rows = shape[:1]
        scale = self.new("div", (), dtype)
        safe = self._safe(rows)
        grad = self.new("zeros_like", shape, dtype)
        mask, mine = self.own_words(safe)
        wide = self.new("to", rows, dtype)
        update = self.new("sub", rows, dtype)
        del wide
        places = self.new("arange", rows, "int64")
        wanted = self.new("ne", rows, "bool")
        scaled = self.new("where", rows, dtype)
        del wanted, scale
        powers = self.new("exp", shape, dtype)
        both = self.new("add", shape, dtype)
        del powers
        out = self.new("mul", shape, dtype)
        del both, safe, grad, mask, mine, update, places, scaled
        return out
