"""Attention over a text that several ranks share: gathered keys, a ring, and Ulysses.

Toys, small enough to read: plain torch.distributed, and nothing is sent while it computes. Ranks
with early tokens have less to compute under the causal mask; libraries deal tokens out so that all
have as much.

Letters     B batch · T tokens of the whole text · N query heads · K key/value heads · H head
            width · c ranks. Each rank has T/c neighbouring tokens: q [B, N, T/c, H]; k and v
            [B, K, T/c, H]
"""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from ..measure import Saved
from ..measure.tracker import Tracker
from .sync_collectives import settled

flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
flash_backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
WAYS = ("gathered", "ring", "ulysses")


class CountedCollectives:
    """Collectives that are over when they return, and what this rank sent."""

    def __init__(self) -> None:
        self.tracker: Tracker | None = None
        self.sent = 0
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()

    def __call__(self, operation: Any, *tensors: Tensor) -> None:
        if self.tracker is None:
            operation()
            return
        with settled(self.tracker, *tensors):
            operation()

    def gather(self, mine: Tensor) -> Tensor:
        """The pieces of all ranks, [c, ...]."""
        self.sent += mine.nbytes * (self.ranks - 1)
        every = mine.new_empty(self.ranks, *mine.shape)
        self(lambda: dist.all_gather_into_tensor(every.flatten(0, 1), mine), every, mine)
        return every

    def scatter_sum(self, every: Tensor) -> Tensor:
        """Of a piece for each rank [c, ...], the sum over ranks of mine."""
        self.sent += every[0].nbytes * (self.ranks - 1)
        mine = torch.empty_like(every[0])
        self(lambda: dist.reduce_scatter_tensor(mine, every.flatten(0, 1)), every, mine)
        return mine

    def exchange(self, pieces: Tensor) -> Tensor:
        """[c, ...]: piece j goes to rank j; what comes back is what each rank had for this one."""
        self.sent += pieces[0].nbytes * (self.ranks - 1)
        arrived = torch.empty_like(pieces)
        self(lambda: dist.all_to_all_single(arrived, pieces), arrived, pieces)
        return arrived

    def pass_on(self, piece: Tensor) -> Tensor:
        """Send a piece to the next rank of the ring, and receive that of the one before."""
        self.sent += piece.nbytes
        arrived = torch.empty_like(piece)
        after, before = (self.rank + 1) % self.ranks, (self.rank - 1) % self.ranks

        def both() -> None:
            ways = [dist.P2POp(dist.isend, piece, after), dist.P2POp(dist.irecv, arrived, before)]
            for work in dist.batch_isend_irecv(ways):
                work.wait()

        self(both, piece, arrived)
        return arrived


def merge(out: Tensor, lse: Tensor, more: Tensor, more_lse: Tensor) -> None:
    """Add a piece's attention to what the pieces before it gave, in place.

    Formula     the weights of two softmaxes: exp(lse - L) and exp(more_lse - L), where
                L = log(exp(lse) + exp(more_lse))
    Source      Milakov and Gimelshein 2018, arXiv:1805.02867; as in flash attention
    """
    both = torch.logaddexp(lse, more_lse)
    out.mul_(lse.sub_(both).exp_().unsqueeze(-1))
    out.addcmul_(more, more_lse.sub_(both).exp_().unsqueeze(-1))
    lse.copy_(both)


class Pieces(torch.autograd.Function):
    """Attention of this rank's queries to the pieces of all ranks: gathered at once, or in a ring.

    Saves       q, k, v, the output and one number for each query: of this rank's tokens alone
    Source      gathered: Grattafiori et al. 2024 (Llama 3), arXiv:2407.21783, section 3.3.2; ring:
                Liu et al. 2023, arXiv:2310.01889
    """

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, wire: CountedCollectives, way: str
    ) -> Tensor:
        out: Any = None
        lse: Any = None
        for source, (there_k, there_v) in pieces(torch.stack((k, v)), wire, way):
            if source > wire.rank:  # a later part of the text, which nobody here may look at
                continue
            more, more_lse = flash(q, there_k, there_v, 0.0, source == wire.rank)
            if out is None:
                out, lse = more, more_lse
            else:
                merge(out, lse, more, more_lse)
            del more, more_lse
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.wire, ctx.way = wire, way
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        q, k, v, out, lse = ctx.saved_tensors
        wire: CountedCollectives = ctx.wire
        d_q = torch.zeros_like(q)
        kv = torch.stack((k, v))
        d_every = kv.new_zeros(wire.ranks, *kv.shape) if ctx.way == "gathered" else None
        d_kv = torch.zeros_like(kv)
        for source, (there_k, there_v) in pieces(kv, wire, ctx.way):
            if source <= wire.rank:
                causal = source == wire.rank
                more = flash_backward(gradients[0], q, there_k, there_v, out, lse, 0.0, causal)
                d_q += more[0]
                into = d_kv if d_every is None else d_every[source]
                into[0] += more[1]
                into[1] += more[2]
                del more
            if d_every is None:
                d_kv = wire.pass_on(d_kv)  # the gradient travels with its piece, and comes home
        if d_every is not None:
            d_kv = wire.scatter_sum(d_every)
        return d_q, d_kv[0], d_kv[1], None, None


def pieces(kv: Tensor, wire: CountedCollectives, way: str) -> Any:
    """Keys and values of each rank and whose they are, this rank's own first in a ring."""
    if way == "gathered":
        every = wire.gather(kv)
        yield from enumerate(every)
        return
    for step in range(wire.ranks):
        yield (wire.rank - step) % wire.ranks, kv
        if step < wire.ranks - 1:
            kv = wire.pass_on(kv)


class AllToAll(torch.autograd.Function):
    """From a part of the tokens with all heads to all tokens with a part of the heads, or back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, wire: CountedCollectives, to_heads: bool) -> Tensor:
        ctx.wire, ctx.to_heads = wire, to_heads
        return turned(x, wire, to_heads)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return turned(gradients[0], ctx.wire, not ctx.to_heads), None, None


def turned(x: Tensor, wire: CountedCollectives, to_heads: bool) -> Tensor:
    """[B, N, T/c, H] -> [B, N/c, T, H], or the other way; one all-to-all."""
    cut, join = (1, 2) if to_heads else (2, 1)
    arrived = wire.exchange(torch.stack(x.chunk(wire.ranks, cut)))
    return torch.cat(arrived.unbind(), join)


def attention(q: Tensor, k: Tensor, v: Tensor, wire: CountedCollectives, way: str) -> Tensor:
    """Causal attention of this rank's tokens to all tokens before them.

    way         gathered, ring or ulysses (Jacobs et al. 2023, arXiv:2309.14509)
    Raises      ValueError for another way, and for heads that the ranks do not divide (ulysses)
    """
    if way not in WAYS:
        raise ValueError(f"way={way!r}; known: {', '.join(WAYS)}")
    if way != "ulysses":
        return Pieces.apply(q, k, v, wire, way)
    if k.shape[1] % wire.ranks:
        raise ValueError(f"{wire.ranks} ranks do not divide K={k.shape[1]} key/value heads")
    q, k, v = (AllToAll.apply(x, wire, True) for x in (q, k, v))
    return AllToAll.apply(flash(q, k, v, 0.0, True)[0], wire, False)


def measured(
    ways: tuple[str, ...], tokens: int, heads: int, kv_heads: int, head_dim: int
) -> dict[str, dict[str, Any]]:
    """On one of c real ranks, in fp32: bytes that a layer's attention saves, holds and sends.

    Unit        bytes. saved: by autograd; peak: of the forward pass, inputs and output included;
                sent: in a forward and a backward pass. "agrees": output and gradients are those of
                one device with the whole text
    """
    wire, found = CountedCollectives(), {}
    draw = torch.manual_seed(0)  # every rank begins with the same text
    shapes = [(1, count, tokens, head_dim) for count in (heads, kv_heads, kv_heads)]
    whole = [torch.randn(shape, generator=draw).requires_grad_() for shape in shapes]
    expected = flash(*whole, 0.0, True)[0]
    expected.square().sum().backward()
    for way in ways:
        mine = [_mine(x.detach(), wire).clone().requires_grad_() for x in whole]
        q, k, v = mine
        wire.tracker, wire.sent = None, 0
        with Saved() as saved:
            out = attention(q, k, v, wire, way)
        out.square().sum().backward()
        close = torch.allclose(out, _mine(expected, wire), atol=1e-5)
        for x, part in zip(whole, mine, strict=True):
            assert x.grad is not None and part.grad is not None
            close = close and torch.allclose(part.grad, _mine(x.grad, wire), atol=1e-4)
        found[way] = {"saved": saved.bytes, "sent": wire.sent, "agrees": close}
        with Tracker() as tracker:
            wire.tracker = tracker
            tracker.label(mine, "inputs")
            out = attention(q, k, v, wire, way)
            found[way]["peak"] = tracker.peak
    return found


def _mine(x: Tensor, wire: CountedCollectives) -> Tensor:
    """This rank's tokens of [B, N, T, H]."""
    return x.chunk(wire.ranks, 2)[wire.rank]
