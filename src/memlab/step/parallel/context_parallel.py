"""A text that several ranks share, in a simulated step: torch's ring of keys and values.

B batch · T tokens of the whole text · c ranks that share it · N query heads · K key/value heads ·
H head width

The program     with context_parallel(mesh, buffers=[ids, positions, labels], buffer_seq_dims=...):
                loss = model(ids, position_ids=..., shift_labels=...).loss; loss.backward()
                on weights that FSDP2 divides among all ranks, as torchtitan and accelerate have it
Tokens          each rank has two pieces of T/2c tokens, one from each end (load balance). Ids,
                positions and labels are cut in place, and keep the memory of the whole text
Mask            transformers finds that positions jump in a row and makes a mask of yes and no for
                it, [B, 1, T/c, T/c], which nobody reads: it stays as long as the layers run. Only
                the last rank, whose two pieces are neighbours, has none
Forward         keys and values are copied into one piece, gathered from all ranks at once (the
                default; "alltoall" passes pieces on), and each rank's are read in turn: its own
                first, then the others'. Rank 0 asks with the later half of its queries, and what
                comes back is merged in fp32 into what is there: two copies of the output. The
                result lies head by head, so that each layer keeps it twice: for the ring's backward
                and, token by token, for the projection that follows
Backward        the same once more, and the gradients of keys and values travel on with their owner
                in fp32; what comes home is one tensor for both
Rank            rank 0, which has the mask
Kernel          flash, on CUDA and on CPUs
CPU             torch's table has no CPU kernel for this: tests/real/context_steps.py puts it there,
                and leaves all else to torch
Source          torch, torch/distributed/tensor/experimental/_context_parallel/_attention.py:
                _templated_ring_attention, _SDPAMerger, _templated_ring_attention_backward,
                _AllGatherRotater, _partial_update; transformers, trainer.py:
                _prepare_context_parallel_inputs; accelerate, big_modeling.py:
                _attach_context_parallel_hooks
Leaves out      what context_parallel keeps of a batch as long as it is open: three more tensors of
                [B, T] and four of [B, T/c] numbers of 8 bytes; buffers of the communication
                library; other groups than those of memlab.step.parallel.fsdp.fsdp2
"""

from __future__ import annotations

from ...families import proven, record_of
from ...model import Model
from ...recipe import Recipe
from ...run import Run
from ..core.graph import Grads, Tensor
from ..core.storage_log import count
from ..supported import attention_of, dropouts_of
from ..windows import windows
from .fsdp.fsdp2 import FsdpOps
from .supported import check_said

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

RING = "keys and values of others"
WIDE = "fp32"


class RingAttentionOps(FsdpOps):
    """All operators, where attention asks the keys and values of several ranks."""

    def attention(self, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None = None) -> Tensor:
        assert bias is None
        value, key, query = self.cast(v), self.cast(k), self.cast(q)
        out, lse, state = self._forward(query, key, value)
        shapes = (query.shape, key.shape, query.dtype)

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            return self._backward(*shapes)

        inputs = [("query", query), ("key", key), ("value", value)]
        kept = [*inputs, ("output", out), ("logsumexp", lse)]
        kept += zip(("seed", "offset"), state, strict=False)
        self.apply("flash_attention", [query, key, value], [out], run, kept)
        return out

    def _kernel(self, shape: Any, dtype: str) -> tuple[Tensor, Tensor, list[Tensor]]:
        out = self.new("flash_attention", shape, dtype)
        lse = self.new("flash_attention", shape[:3], WIDE)
        state = []
        if self.backend == "cuda":  # of its random numbers
            state = [self.new("flash_attention", size, "int64") for size in ((2,), ())]
        return out, lse, state

    def _contiguous(self, x: Tensor) -> Tensor:
        heads, tokens = x.shape[1:3]
        return x if heads == 1 or tokens == 1 else self.new("clone", x.shape, x.dtype)

    def _gathered(self, kv: Tensor) -> Tensor:
        return self.new("all_gather", (self.devices.context * count(kv.shape),), kv.dtype, RING)

    def _forward(
        self, query: Tensor, key: Tensor, value: Tensor
    ) -> tuple[Tensor, Tensor, list[Tensor]]:
        """_templated_ring_attention of rank 0: what is here has its name there."""
        batch, heads, tokens, width = query.shape
        both = 2 * count(key.shape)
        dtype = query.dtype
        key, value = self._contiguous(key), self._contiguous(value)
        next_kv: Tensor | None = self.new("cat", (both,), dtype, RING)
        gathered = self._gathered(next_kv)  # type: ignore[arg-type]
        in_flight, next_kv = next_kv, None
        out, lse, state = self._kernel(query.shape, dtype)
        merged, merged_lse = self.to(out, WIDE), lse
        half = (batch, heads, tokens // 2, width)
        k: Any = (key, value)
        for i in range(1, self.devices.context):
            in_flight = None
            key = value = gathered
            if i < self.devices.context - 1:
                self.new("cat", (both,), dtype, RING)  # offered to a buffer that is there
            k = None
            out, lse, state = self._kernel(half, dtype)
            merged, merged_lse = self._merged(out, lse, merged, merged_lse)
        del k, in_flight
        result = self.to(merged, dtype)
        return result, merged_lse, state

    def _merged(
        self, out: Tensor, lse: Tensor, merged: Tensor, merged_lse: Tensor
    ) -> tuple[Tensor, Tensor]:
        """_SDPAMerger.step of the later half."""
        out = self.to(out, WIDE)
        difference = self.new("sub", lse.shape, WIDE)
        share = self.new("sigmoid", lse.shape, WIDE)
        del difference
        apart = self.new("sub", out.shape, WIDE)
        product = self.new("mul", out.shape, WIDE)
        del share, apart
        later = self.new("sub", out.shape, WIDE)
        del product
        difference = self.new("sub", lse.shape, WIDE)
        share = self.new("log_sigmoid", lse.shape, WIDE)
        buffer = self.new("log_sigmoid", lse.shape, WIDE) if self.backend == "cpu" else None
        del buffer, difference
        later_lse = self.new("sub", lse.shape, WIDE)
        del share
        return_lse = self.new("cat", merged_lse.shape, WIDE)
        return_out = self.new("cat", merged.shape, WIDE)
        del later, later_lse
        return return_out, return_lse

    def _backward(self, query: Any, key: Any, dtype: str) -> Grads:
        """_templated_ring_attention_backward of rank 0."""
        batch, heads, tokens, width = query
        half = (batch, heads, tokens // 2, width)
        both, narrow = 2 * count(key), dtype != WIDE
        grad_query = self.new("zeros_like", query, WIDE)
        grads: Any = [self.new("zeros_like", key, WIDE) for _ in range(2)]
        copies: Any = None
        scattered = key[1] > 1 and key[2] > 1
        if scattered:
            copies = [self.new("clone", key, dtype) for _ in range(2)]
        next_kv = self.new("cat", (both,), dtype, RING)
        gathered = self._gathered(next_kv)
        made = self._kernel_grads(query, key, dtype)
        flat = [self.new("clone", key, WIDE) for _ in range(2)] if scattered else None
        next_grad_kv = self.new("cat", (both,), WIDE, RING)
        del flat
        sent = next_grad_kv
        arrived = self.new("all_to_all", (both,), WIDE, RING)
        for i in range(1, self.devices.context):
            if i != self.devices.context - 1:
                next_kv = self.new("cat", (both,), dtype, RING)
            copies = None
            lse = self.new("clone", half[:3], WIDE) if batch * heads > 1 else None
            made = self._kernel_grads(half, key, dtype)
            next_grad_kv = sent = arrived
            grads = arrived
            next_grad_kv = sent = self.new("cat", (both,), WIDE, RING)
            arrived = self.new("all_to_all", (both,), WIDE, RING)
            grad_query = self.new("cat", query, WIDE)
        if narrow:
            grad_query = self.new("to", query, dtype)
        del sent
        if narrow:
            arrived = self.new("to", (both,), dtype, RING)
        next_grad_kv = arrived
        del gathered, next_kv, made, lse, grads, copies, next_grad_kv
        found = [Tensor(key, dtype, arrived.storage) for _ in range(2)]
        return [grad_query, *found]

    def _kernel_grads(self, query: Any, key: Any, dtype: str) -> list[Tensor]:
        return [self.new("flash_attention_backward", shape, dtype) for shape in (query, key, key)]


def check_ringed(model: Model, recipe: Recipe, run: Run) -> None:
    """Refuse what is not described of texts that several ranks share.

    Raises      ValueError that names it
    """
    beside, devices = f"is not described beside context={run.devices.context}", run.devices
    known = record_of(model.family).proves("context_parallel")
    if run.implementation != "transformers" or not known:
        every = ", ".join(proven("context_parallel"))
        said = f"{run.implementation} {model.family!r}"
        raise ValueError(f"{said} {beside}; known: transformers' {every}")
    check_said(run, ("loop", "texts", "lora", "adapter", "holds"), beside)
    for field, value in devices.told().items():
        if field in ("replicas", "expert", "cpu_offload"):
            raise ValueError(f"{field}={value!r} {beside}")
    if recipe.autocast:
        raise ValueError(f"autocast={recipe.autocast!r} {beside}; fp32 with param_dtype='bf16' is")
    pieces = 2 * devices.context
    if (run.tokens or 0) % pieces:
        raise ValueError(
            f"tokens={run.tokens} with context={devices.context}; a multiple of {pieces} is "
            "needed: each rank has two pieces, one from each end"
        )
    if attention_of(model, recipe, run) != "sdpa" or windows(model, run.window) != (None, None):
        raise ValueError(f"eager attention, or a window, {beside}: torch's ring is causal SDPA's")
    for name, p in dropouts_of(model, run).items():
        if p:
            raise ValueError(f"{name}={p} {beside}")
    computed = devices.policy.param_dtype or recipe.weights
    if run.backend == "cuda" and (computed == WIDE or run.kernel not in ("auto", "flash")):
        raise ValueError(
            f"{computed} with kernel={run.kernel!r} on CUDA {beside}: flash attention is, in bf16 "
            "or fp16"
        )
