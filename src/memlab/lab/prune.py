"""Pruning small enough to read: zeros by size, compressed rows, 2:4, and units that really go.

A zero takes as many bytes as any other number. So there are two ways to save memory with pruning:
store the matrix in another form, or take whole rows and columns out of it.
"""

import warnings
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .models.llama import LlamaFeedForward, TinyLlama


def smallest(weight: Tensor, share: float) -> Tensor:
    """A mask, True where a value stays: the `share` of smallest magnitude goes.

    Shapes      weight and mask [R, C]
    Source      Han et al. 2015, arXiv:1506.02626
    Raises      ValueError for a share outside 0 to 1
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share={share} is not between 0 and 1")
    gone = round(share * weight.numel())
    order = weight.detach().abs().flatten().argsort(stable=True)
    mask = torch.ones(weight.numel(), dtype=torch.bool)
    mask[order[:gone]] = False
    return mask.view_as(weight)


def two_of_four(weight: Tensor) -> Tensor:
    """A mask that keeps the two largest of every four neighbours in a row: the 2:4 pattern.

    Source      Mishra et al. 2021, arXiv:2104.08378
    Raises      ValueError for rows that are not a multiple of four long
    """
    if weight.shape[-1] % 4:
        raise ValueError(f"{weight.shape[-1]} columns are not a multiple of 4")
    groups = weight.detach().abs().unflatten(-1, (-1, 4))
    kept = groups.argsort(dim=-1, stable=True)[..., 2:]
    return torch.zeros_like(groups, dtype=torch.bool).scatter(-1, kept, True).flatten(-2)


class SparseLinear(nn.Module):
    """A linear layer without its zeros: compressed rows, read-only, for inference.

    Shapes      x [.., C], result [.., R]
    Leaves out  training; bf16 (torch has no product of compressed rows in bf16 on a CPU)
    """

    weight: Tensor

    def __init__(self, linear: nn.Linear, *, index: torch.dtype = torch.int32) -> None:
        super().__init__()
        with warnings.catch_warnings():  # torch calls this layout a beta, once in each process
            warnings.filterwarnings("ignore", "Sparse CSR tensor support")
            full = linear.weight.detach().to_sparse_csr()
        places = (full.crow_indices().to(index), full.col_indices().to(index))
        narrow = torch.sparse_csr_tensor(*places, full.values(), full.shape, check_invariants=True)
        self.register_buffer("weight", narrow)
        self.bias = linear.bias

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)

    def parts(self) -> dict[str, Tensor]:
        """The dense tensors inside, for a count of their bytes."""
        w = self.weight
        return {"values": w.values(), "columns": w.col_indices(), "starts": w.crow_indices()}


def importance(layer: LlamaFeedForward) -> Tensor:
    """How much each unit of a SwiGLU layer can matter: norms of what it reads and writes, [F]."""
    read = layer.gate.weight.norm(dim=1) * layer.up.weight.norm(dim=1)
    return (read * layer.down.weight.norm(dim=0)).detach()


@torch.no_grad()
def shrink(net: TinyLlama, units: int) -> TinyLlama:
    """Keep the `units` most important feed-forward units of every layer; the rest is really gone.

    Shapes      gate and up [F, D] lose rows, down [D, F] loses columns
    Raises      ValueError for more units than there are, or none
    """
    for layer in net.layers:
        ff = cast(LlamaFeedForward, layer.feed_forward)
        if not 1 <= units <= ff.gate.out_features:
            raise ValueError(f"units={units}; a layer has {ff.gate.out_features}")
        kept = importance(ff).argsort(descending=True, stable=True)[:units].sort().values
        for part, axis in ((ff.gate, 0), (ff.up, 0), (ff.down, 1)):
            # A copy: a view would keep the whole old matrix alive.
            part.weight = nn.Parameter(part.weight.index_select(axis, kept))
        ff.gate.out_features = ff.up.out_features = ff.down.in_features = units
    return net


__all__ = ["SparseLinear", "importance", "shrink", "smallest", "two_of_four"]
