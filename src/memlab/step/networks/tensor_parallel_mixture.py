"""A mixture of experts on one of several ranks that divide each matrix, by transformers' tp_plan.

The plan        layers.*.mlp.experts.gate_up_proj: packed_colwise, which cuts gate and up of each
                expert; down_proj: rowwise; experts: moe_tp_experts. So every rank has a slice of
                all experts, reads all rows wherever the router sends them, and has a part of what
                they give. The router is whole on every rank
Sums            of what the experts give, in place; of the gradients of the rows and of the experts'
                weights, in place too, where the same rows are read by the router as well
Source          transformers, distributed/tensor_parallel.py: MoeExpertsParallel;
                parallel_utils.py: _AllReduceBackward, _AllReduceForward
"""

from __future__ import annotations

from ..core.graph import Grads, Tensor
from .experts import Qwen3Moe
from .hf_llama import Weights
from .llama_tensor_parallel import LlamaDivided


def of_family(own: type[Qwen3Moe]) -> type[TensorParallelMixture]:
    """The network of a family whose feed-forward layers are mixtures.

    own         its network elsewhere, whose parts stand behind those of TensorParallelMixture
    """
    return type(f"{own.__name__}Divided", (TensorParallelMixture, own), {})


class TensorParallelMixture(LlamaDivided, Qwen3Moe):
    """A mixture whose experts are slices of all."""

    def experts(self, w: Weights, x: Tensor, chosen: Tensor, scores: Tensor) -> Tensor:
        x, scores = self.summed(x), self.summed(scores)
        y = self.grouped(w, x, chosen, scores)
        return self.f.seen_as(y, *y.shape)  # the sum takes its place

    def summed(self, x: Tensor) -> Tensor:
        """_AllReduceBackward: x, whose gradient is summed over the ranks, in its place."""
        out = Tensor(x.shape, x.dtype, x.storage)

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            return [grads[0]]

        self.f.apply("all_reduce_backward", [x], [out], run)
        return out
