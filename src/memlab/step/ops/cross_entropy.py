"""The loss."""

from __future__ import annotations

from ..core.graph import Grads, Tensor
from .elementwise import Elementwise


class CrossEntropy(Elementwise):
    """Cross-entropy, as torch computes it in two operators."""

    def cross_entropy(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Shapes: logits [rows, V], labels [rows]; the mean, a scalar."""
        logp = self.new("log_softmax", logits.shape, logits.dtype)

        def softmax_run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            return [self.new("log_softmax_backward", grads[0].shape, grads[0].dtype)]

        self.apply("log_softmax", [logits], [logp], softmax_run, [("result", logp)])
        loss = self.new("nll_loss", (), logp.dtype)
        weight = self.new("nll_loss", (), logp.dtype)
        shape, dtype = logp.shape, logp.dtype

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            return [self.new("nll_loss_backward", shape, dtype)]

        kept = [("self", logp), ("target", labels), ("total_weight", weight)]
        self.apply("nll_loss", [logp], [loss], run, kept)
        return loss
