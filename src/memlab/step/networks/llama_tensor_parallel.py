"""A llama on one of several ranks that divide each matrix, and the tokens between them as well.

The program     SequenceParallel on the norms; PrepareModuleInput on self_attn and mlp, which
                gathers what they read; RowwiseParallel(output_layouts=Shard(1)) behind them:
                memlab.lab.tensor_steps
"""

from __future__ import annotations

from ..core.graph import Tensor
from ..parallel.tensor_parallel import TensorParallelOps
from .hf_llama import HFLlama, Weights

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any


class LlamaDivided(HFLlama):
    """HFLlama whose attention and feed-forward gather all tokens first."""

    f: TensorParallelOps

    def attention(
        self, w: Weights, x: Tensor, angles: Any, mask: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        return super().attention(w, self.f.gathered(x), angles, mask)

    def feed_forward(self, w: Weights, x: Tensor, part: str = "") -> Tensor:
        return super().feed_forward(w, self.f.gathered(x), part)

    def logits(self, hidden: Tensor) -> Tensor:
        return super().logits(self.f.gathered(hidden))
