"""Data parallelism written out (ZeRO 0, 1 and 2), and PyTorch's own for the rest: FSDP2, DTensor.

Every rank sees other sequences. What the ranks must agree on is the gradient's mean; what they need
not all hold is whatever only the update reads.
"""

from collections.abc import Callable, Iterable

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.distributed.tensor.parallel.style import ParallelStyle
from torch.distributed.tensor.placement_types import Replicate
from torch.optim import Optimizer

from ..terms.sharding import flat_shard


class DataParallel:
    """An optimizer over R ranks: each updates its part of every tensor and sends it to the others.

    stage       0: every rank updates everything, and no part is sent
                1: states for a part only (the state is made like the part)
                2: gradients for a part only: each is reduced and dropped as soon as it is complete
    Shapes      a tensor of P values is flattened; rank r has values r·c to (r + 1)·c of it, with
                c = ceil(P / R); the last ranks may have fewer, or none
    Source      Rajbhandari et al. 2020, arXiv:1910.02054
    Leaves out  buckets and overlap with backward, which make it fast; a master copy; tied weights;
                more than one micro-batch a step
    """

    def __init__(
        self, module: nn.Module, make: Callable[[Iterable[Tensor]], Optimizer], *, stage: int
    ) -> None:
        self.ranks, self.rank, self.stage = dist.get_world_size(), dist.get_rank(), stage
        self.whole = list(module.parameters())
        # A slice is a view: the optimizer writes straight into the weights.
        self.mine = [self._slice(p.detach()) if stage else p for p in self.whole]
        self.optimizer = make(self.mine)
        if stage == 2:
            for p, part in zip(self.whole, self.mine, strict=True):
                p.register_post_accumulate_grad_hook(lambda p, part=part: self._reduce(p, part))

    def _slice(self, tensor: Tensor) -> Tensor:
        share = flat_shard(tensor.numel(), ranks=self.ranks)
        return tensor.view(-1)[self.rank * share : (self.rank + 1) * share]

    def _reduce(self, p: Tensor, part: Tensor) -> None:
        """Give each rank its part of the mean gradient, and drop the whole one at stage 2."""
        assert p.grad is not None
        share = flat_shard(p.numel(), ranks=self.ranks)
        padded = F.pad(p.grad.flatten(), (0, share * self.ranks - p.numel()))
        mean = padded.new_empty(share)
        dist.reduce_scatter_tensor(mean, padded)
        mean /= self.ranks
        if self.stage == 2:
            part.grad, p.grad = mean[: part.numel()], None
        else:
            part.grad = self._slice(p.grad)
            part.grad.copy_(mean[: part.numel()])

    @torch.no_grad()
    def step(self) -> None:
        """Reduce what is not yet reduced, update my parts, send them round."""
        for p, part in zip(self.whole, self.mine, strict=True):
            if self.stage == 0 and p.grad is not None:
                dist.all_reduce(p.grad)
                p.grad.div_(self.ranks)
            elif self.stage == 1:
                self._reduce(p, part)
        self.optimizer.step()
        for p, part in zip(self.whole, self.mine, strict=True):
            if self.stage:
                share = flat_shard(p.numel(), ranks=self.ranks)
                everyone = p.new_empty(share * self.ranks)
                dist.all_gather_into_tensor(everyone, F.pad(part, (0, share - part.numel())))
                p.copy_(everyone[: p.numel()].view_as(p))

    def zero_grad(self) -> None:
        for tensor in (*self.whole, *self.mine):
            tensor.grad = None


def fsdp(net: nn.Module, mesh: DeviceMesh | None = None, *, narrow: bool = False) -> nn.Module:
    """Cut every parameter by rows (ZeRO 3): each layer is gathered to be used, and let go again.

    narrow      gather and compute in bf16; weights, gradients and states stay as they are
    Source      torch.distributed.fsdp.fully_shard (FSDP2)
    """
    policy = MixedPrecisionPolicy()
    if narrow:
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in net.layers:  # type: ignore[union-attr]
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    fully_shard(net, mesh=mesh, mp_policy=policy)  # what is left: embedding, norm, head
    return net


def tensor_parallel(net: nn.Module, mesh: DeviceMesh) -> nn.Module:
    """Cut each layer's matrices between the ranks, q, k, v, gate and up by their outputs.

    Each rank then has whole heads and a slice of F; `out` and `down` are cut by their inputs, and
    what they give is added up over the ranks. The embedding and the head are cut by words.

    Source      Shoeybi et al. 2019, arXiv:1909.08053; torch.distributed.tensor.parallel
    """
    outputs = ("attention.q", "attention.k", "attention.v", "feed_forward.gate", "feed_forward.up")
    plan: dict[str, ParallelStyle] = {name: ColwiseParallel() for name in outputs}
    plan |= {name: RowwiseParallel() for name in ("attention.out", "feed_forward.down")}
    for layer in net.layers:  # type: ignore[union-attr]
        parallelize_module(layer, mesh, plan)
    ends: dict[str, ParallelStyle] = {
        "embedding": RowwiseParallel(input_layouts=Replicate()),
        "lm_head": ColwiseParallel(use_local_output=False),
    }
    return parallelize_module(net, mesh, ends)
