"""A mixture whose experts live on several ranks: tokens travel to their experts, and back.

A toy, small enough to read: one layer, plain torch.distributed, no capacity limit and no overlap.

Letters     R tokens of one rank, D model width, X experts, k of them for each token, M the width of
            one expert, E ranks, r rows that arrive at a rank; x_RD is [R, D]
"""

from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn

from ..measure import Saved
from .experts import Mixture


class Exchange(torch.autograd.Function):
    """Send rows to every rank and receive theirs; in backward the gradients go the other way."""

    @staticmethod
    def forward(ctx: Any, rows_SD: Tensor, sent: list[int], received: list[int]) -> Tensor:
        ctx.sent, ctx.received = sent, received  # two lists of numbers: no tensor is saved
        arrived = rows_SD.new_empty(sum(received), rows_SD.shape[1])
        dist.all_to_all_single(arrived, rows_SD.contiguous(), received, sent)
        return arrived

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        back = gradients[0].new_empty(sum(ctx.sent), gradients[0].shape[1])
        dist.all_to_all_single(back, gradients[0].contiguous(), ctx.sent, ctx.received)
        return back, None, None


class ExpertParallelMixture(nn.Module):
    """X / E of a mixture's experts, and its whole router.

    Formula     as memlab.lab.experts.Mixture, whose weights it takes
    Shapes      up [X/E, 2M, D]; down [X/E, D, M]; rank r has the experts r · X/E and after
    Source      Lepikhin et al. 2020 (GShard), arXiv:2006.16668
    Raises      ValueError where the ranks do not divide the experts
    """

    def __init__(self, whole: Mixture) -> None:
        super().__init__()
        rank, self.ranks = dist.get_rank(), dist.get_world_size()
        experts = len(whole.up)
        if experts % self.ranks:
            raise ValueError(f"{self.ranks} ranks do not divide X={experts} experts")
        self.per_token, self.each = whole.per_token, experts // self.ranks
        mine = slice(rank * self.each, (rank + 1) * self.each)
        self.router = whole.router
        self.up = nn.Parameter(whole.up.detach()[mine].clone())
        self.down = nn.Parameter(whole.down.detach()[mine].clone())
        self.arrived = 0  # rows in the last forward pass

    def forward(self, x_RD: Tensor, chosen_Rk: Tensor | None = None) -> Tensor:
        """The layer's output [R, D]; `chosen_Rk` takes the choice from the router."""
        probabilities_RX = self.router(x_RD).softmax(-1, dtype=torch.float32)
        if chosen_Rk is None:
            best_Rk, chosen_Rk = probabilities_RX.topk(self.per_token)
        else:
            best_Rk = probabilities_RX.gather(-1, chosen_Rk)
        # Sorted by expert, rows are sorted by rank as well: each rank has neighbours.
        order_S = chosen_Rk.flatten().argsort(stable=True)
        counts_X = chosen_Rk.flatten().bincount(minlength=self.ranks * self.each)
        theirs_X = torch.empty_like(counts_X)
        dist.all_to_all_single(theirs_X, counts_X)  # how many rows come, from whom, for what
        sent = counts_X.view(self.ranks, -1).sum(1).tolist()
        received = theirs_X.view(self.ranks, -1).sum(1).tolist()

        rows_rD = Exchange.apply(x_RD[order_S // self.per_token], sent, received)
        y_SD = Exchange.apply(self.experts(rows_rD, theirs_X), received, sent)

        y_SD = y_SD * best_Rk.to(y_SD.dtype).flatten()[order_S].unsqueeze(-1)
        return y_SD[_inverse(order_S)].view(-1, self.per_token, x_RD.shape[-1]).sum(1)

    def experts(self, rows_rD: Tensor, theirs_X: Tensor) -> Tensor:
        """This rank's experts, on rows that came sorted by sender."""
        self.arrived = len(rows_rD)
        expert_X = torch.arange(self.each, device=rows_rD.device).repeat(self.ranks)
        by_expert_r = expert_X.repeat_interleave(theirs_X).argsort(stable=True)
        ends = theirs_X.view(self.ranks, -1).sum(0).cumsum(0).to(torch.int32)
        gate_rM, up_rM = F.grouped_mm(rows_rD[by_expert_r], self.up.mT, offs=ends).chunk(2, -1)
        y_rD = F.grouped_mm(F.silu(gate_rM) * up_rM, self.down.mT, offs=ends)
        return y_rD[_inverse(by_expert_r)]


def _inverse(order: Tensor) -> Tensor:
    back = torch.empty_like(order)
    back[order] = torch.arange(len(order), device=order.device)
    return back


def routed(way: str, tokens: int, *, experts: int, per_token: int) -> Tensor | None:
    """Experts chosen for each token: by the router (None), evenly, or for all the first ones.

    Raises      ValueError for another way
    """
    if way == "router":
        return None
    if way == "even":
        return (torch.arange(tokens * per_token) % experts).view(tokens, per_token)
    if way == "one rank":
        return torch.arange(per_token).repeat(tokens, 1)
    raise ValueError(f"way={way!r}; known: router, even, one rank")


def measured(
    ways: tuple[str, ...], tokens: int, d_model: int, experts: int, per_token: int, expert_ff: int
) -> dict[str, dict[str, Any]]:
    """On one of E real ranks: bytes of weights and of what is saved, under several routings.

    Unit        bytes; "arrived" counts rows. "agrees": output and gradients are those of the whole
                layer on one device, up to the order of sums
    """
    torch.manual_seed(0)  # every rank begins with the same layer
    sizes = {"experts": experts, "per_token": per_token, "expert_ff": expert_ff}
    whole = Mixture(d_model, **sizes, way="grouped")
    divided, rank = ExpertParallelMixture(whole), dist.get_rank()
    every = [
        torch.randn(tokens, d_model, generator=torch.manual_seed(1 + r))
        for r in range(divided.ranks)
    ]
    found: dict[str, dict[str, Any]] = {}
    for way in ways:
        chosen = routed(way, tokens, experts=experts, per_token=per_token)
        x_RD = every[rank].clone().requires_grad_()
        with Saved(exclude=[divided, x_RD]) as saved:
            y_RD = divided(x_RD, chosen)
        y_RD.square().sum().backward()
        weights = divided.up.nbytes + divided.down.nbytes
        found[way] = {"saved": saved.bytes, "arrived": divided.arrived, "weights": weights}
        found[way]["agrees"] = _agrees(whole, divided, every, chosen, y_RD)
        divided.zero_grad()
        whole.zero_grad()
    return found


def _agrees(
    whole: Mixture, divided: ExpertParallelMixture, every: list[Tensor], chosen: Any, mine: Tensor
) -> bool:
    """Whether one device with the tokens of all ranks has the same output and gradients."""
    rank = dist.get_rank()
    outputs = [whole(x_RD, chosen) for x_RD in every]
    torch.stack(outputs).square().sum().backward()
    part = slice(rank * divided.each, (rank + 1) * divided.each)
    assert whole.up.grad is not None and divided.up.grad is not None
    same = torch.allclose(outputs[rank], mine, atol=1e-4, rtol=1e-4)
    return same and torch.allclose(whole.up.grad[part], divided.up.grad, atol=1e-2, rtol=1e-3)
