"""transformers' own expert parallelism in a simulated step: the groups, and tokens that travel.

The program     model = AutoModelForCausalLM.from_pretrained(..., distributed_config=
                DistributedConfig(fsdp_size=R, ep_size=E)); steps of a loop of one's own
Groups          each layer's experts, divided among the R / E ranks that have the same ones; the
                rest of each layer, the embedding, the last norm with the head (with the embedding
                where the table is tied): divided among all R ranks
One rank        that alone has its experts, R = E, gathers nothing, and FSDP2 copies them all the
                same: whole weights for each forward and each backward pass, and in backward a
                buffer, the quotient by R and the part that stays, each as large as their gradients
Tokens          each rank sends a row for each token and expert, r rows arrive: all-to-all forward
                and backward, twice a layer. The experts then have rows of one expert each, whose
                weights are ones, and both masks for rows that are nobody's, of which there are none
Routing         even: experts are chosen in turn, so that as many rows arrive as are sent. fullest:
                all tokens of all E ranks ask for as many of this rank's experts as they can
Formats         fsdp_mixed_precision=True is param_dtype bf16 and reduce_dtype fp32
Source          transformers, distributed/expert_parallel.py: AllToAllEP, which "auto" takes in
                training; distributed/fsdp.py: apply_fully_sharded_data_parallelism; torch,
                torch/distributed/fsdp/_fully_shard: _fsdp_param_group.py (a group of one rank),
                _fsdp_collectives.py (foreach_reduce)
Leaves out      buffers of the communication library; on CUDA not yet measured on a GPU
"""

from __future__ import annotations

from ..core.graph import Grads, Tensor, call
from ..core.storage_log import Dim
from .fsdp.fsdp2 import FsdpOps
from .fsdp.group import Group
from .fsdp.trainer import AccelerateFsdpOps

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


BELOW = -3  # where groups of experts stand, one for each layer


class ExpertParallelOps(AccelerateFsdpOps):
    """All operators, on experts that are some of all, and on the rest as AccelerateFsdpOps."""

    def group_of(self, name: str) -> Group:
        if not name.startswith("experts"):
            return super().group_of(name)
        assert self.current is not None  # experts are a layer's
        mine = Group(self.ranks // self.devices.experts.ranks)
        return self.groups.setdefault(BELOW - self.current, mine)

    def root(self, forward: Callable[..., Any], ids: Any) -> Any:
        return FsdpOps.root(self, forward, ids)

    def region(self, checkpoint: bool) -> Callable[..., Any]:
        return FsdpOps.region(self, checkpoint)

    def local(self, experts: int) -> Dim:
        """Experts of one rank, of all."""
        return Dim("X/E", experts // self.devices.experts.ranks)

    def arriving(self, rows: int, per_token: int, experts: int) -> Dim:
        """Rows that arrive where each rank has so many tokens."""
        ranks = self.devices.experts.ranks
        here = experts // ranks
        if self.devices.experts.routing == "fullest":
            return Dim("r", ranks * rows * min(per_token, here))
        rounds, left = divmod(rows * per_token, experts)
        return Dim("r", ranks * (rounds * here + min(left, here)))

    def experts(
        self,
        grouped: Callable[..., Tensor],
        x: Tensor,
        chosen: Tensor,
        scores: Tensor,
        *,
        of: Tensor,
        all_: int,
    ) -> Tensor:
        """EpDispatchExpertsParallel: the experts' forward, hooked by FSDP2.

        grouped     what the experts themselves do of rows, their experts, and their weights
        of          one of their weights, by which their group is known
        """
        groups = self.groups.values()
        group = next(g for g in groups if any(whole is of for whole in g.wholes))
        self._before_forward(group)
        x, scores = self._both(x, scores, lambda: self._after_backward(group))
        out = call(self._all_to_all, grouped, x, chosen, scores, all_)
        return self._after_forward(group, self.to(out, x.dtype))

    def _both(self, x: Tensor, scores: Tensor, hook: Callable[[], None]) -> tuple[Tensor, Tensor]:
        """Both as they are; the hook is called when both have their gradients."""
        outs = tuple(Tensor(y.shape, y.dtype, y.storage) for y in (x, scores))

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            hook()
            return grads

        self.apply("hook", [x, scores], outs, run)
        return outs  # type: ignore[return-value]

    def _all_to_all(
        self, grouped: Callable[..., Tensor], x: Tensor, chosen: Tensor, scores: Tensor, all_: int
    ) -> Tensor:
        tokens, ids, weights, order = call(self._dispatch, x, chosen, scores, all_)
        y = call(grouped, tokens, ids, weights)
        return call(self._combine, y, order, scores)  # type: ignore[no-any-return]

    def _dispatch(
        self, x: Tensor, chosen: Tensor, scores: Tensor, all_: int
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """_dispatch_tokens: what arrives, whose expert each row is for, ones, and the order."""
        sent = (Dim("B·T·k", chosen.shape[0] * chosen.shape[1]),)
        values, order = self.new("sort", sent, "int64"), self.new("sort", sent, "int64")
        del values
        send = self.rows_of(x, self.new("floor_divide", sent, "int64"))
        counts = self.new("zeros", (all_,), "int64")
        ones = self.new("ones_like", sent, "int64")
        del ones
        theirs = self.new("empty_like", (all_,), "int64")
        rows = self.arriving(x.shape[0], chosen.shape[1], all_)
        arrived = self.exchanged(send, rows)
        ids = self.new("repeat", (all_,), "int64")
        index = self.new("repeat_interleave", (rows,), "int64")
        ids = self.new("index_select", (rows,), "int64")
        del index
        weights = self.new("ones_like", (rows, 1), arrived.dtype)
        del counts, theirs
        return arrived, ids, weights, order

    def _combine(self, y: Tensor, order: Tensor, scores: Tensor) -> Tensor:
        """_combine_tokens: rows come back, into their order, are weighed and added up."""
        sent, width = order.shape[0], y.shape[1]
        back = self.exchanged(y, sent)
        outputs = self.placed(back, order)
        per_token = (*scores.shape, width)
        weighed = self.mul(self.view(outputs, *per_token), self.view(scores, *scores.shape, 1))
        return self.sum_of_each(weighed)

    def exchanged(self, x: Tensor, rows: int) -> Tensor:
        """all_to_all_single_autograd: rows of other ranks; gradients travel back."""
        out = self.new("all_to_all", (rows, x.shape[1]), x.dtype)
        shape = x.shape

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            return [self.new("all_to_all", shape, grads[0].dtype)]

        self.apply("all_to_all", [x], [out], run)
        return out

    def placed(self, x: Tensor, places: Tensor) -> Tensor:
        """out = empty_like(x); out[places] = x."""
        out = self.new("empty_like", x.shape, x.dtype)
        shape = x.shape

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            return [self.new("index", shape, grads[0].dtype)]

        self.apply("index_put_", [x], [out], run, [("indices", places)])
        return out

    def sum_of_each(self, x: Tensor) -> Tensor:
        """x.sum(1) of [rows, k, D]; its gradient is a view."""
        out = self.new("sum", (x.shape[0], x.shape[2]), x.dtype)
        shape = x.shape
        self.apply("sum", [x], [out], lambda grads, *_: [self.view(grads[0], *shape)])
        return out
