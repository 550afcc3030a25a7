"""FSDP2 in a simulated step: one rank's parts of all weights, gathered group by group for use.

The program     for layer in layers: fully_shard(layer, mesh=mesh, mp_policy=policy)
                fully_shard(model, mesh=mesh, mp_policy=policy)
Groups          each layer's parameters, and the root's: all that no layer owns
Forward         a group is gathered into one buffer, and copied from it into whole weights; the
                buffer goes when the next group's has been copied, so two are alive at once. A
                layer's whole weights go after its forward pass (`reshard_after_forward`), the
                root's stay until the end of backward
Backward        a layer's buffer is made while the layer above computes (the first one as soon as
                backward begins), and goes when it has been copied. When the layer's gradients are
                complete its whole weights go; the gradients are copied into one padded buffer,
                which waits for the next layer's to take its place, and what comes back of it is the
                rank's part. The root is reduced last
Replicas        HSDP adds each part up over the replicas, in place. The state that guards this
                all-reduce holds the part in the format of the reduction until backward is over:
                where the gradients have another format, or the part is added to an older one, those
                of all groups are held at once
Adapters        of LoRA beside a frozen base, which is divided and gathered like them and sends no
                gradients. fully_shard wants one format of all that a group trains, and bears
                another one of what is frozen: peft's fp32 adapters beside bf16 are gathered with it
                in one buffer of bytes. To compute in one format, say MixedPrecisionPolicy(
                param_dtype=torch.bfloat16), or autocast_adapter_dtype=False to peft, which stores
                them so as well. With another thing trained in bf16 in the same group (the norms of
                a layer) fully_shard refuses fp32 adapters: then it has to be the latter
Host            CPUOffloadPolicy: before a group is gathered each of its parts is copied to the
                device, and cast there one by one; the copies go when the buffer is full. Each part
                of a gradient is copied to the host, and what it is a view of goes. The optimizer
                steps on the host
Rank            the fullest one, rank 0; the last ones may have fewer rows in their states
CUDA            the same order: PyTorch's allocator counts a block as free as soon as the program
                lets go of it, on whichever stream, and FSDP2 holds what a stream still reads.
                Buffers made on another stream leave holes there, which only the reserved bytes
                show: an all-gather's are made on the stream of its copies, what a reduce-scatter
                gives on its own. Derived from the source and counted on CPUs; not yet measured on a
                GPU
Source          torch, torch/distributed/fsdp/_fully_shard: _fsdp_param_group.py (order,
                _init_mp_dtypes), _fsdp_collectives.py (buffers, bytes, foreach_reduce),
                _fsdp_param.py (padding, all_gather_inputs), _fsdp_state.py (root)
CPU             gloo's reduce-scatter is an all-reduce of a copy of the buffer, and a cut
                (torch/csrc/distributed/c10d/ProcessGroupGloo.cpp); NCCL has no such copy. There a
                copy to the device is no copy, for the host is the device:
                memlab.lab.host_and_device makes it one
Leaves out      other groups than these, explicit prefetching, buffers of the communication library,
                scratch memory of one operator: a CPU pads in torch._chunk_cat what CUDA's kernel
                copies at once
The module is long, because the life of a group stands in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....formats import storage
from ....sharding import Sharding
from ....terms.sharding import row_shard
from ...adapters.lora import ADAPTERS
from ...core.graph import Node, Parameter, Tensor, component
from ...core.storage_log import Record, Storage, count
from ...ops import Ops
from .group import Gathered, Group

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

BYTES = "uint8"  # in which parts of several formats are sent together
ALL_GATHER, REDUCE_SCATTER = "all-gather buffers", "reduce-scatter buffers"
GATHERED, WHOLE = "gathered weights", "whole gradients"
COPY_IN = "all_gather_copy_in_stream"
REDUCED, ALL_REDUCED = "reduce_scatter_stream", "all_reduce_stream"


class FsdpOps(Ops):
    """All operators, on parameters that are whole only while their group computes.

    stored      the format of the parts, of their gradients and of their states
    beside      that of adapters' parts; None: the same
    devices     how many ranks there are, and FSDP2's policy
    """

    sharded = True

    def __init__(
        self,
        *arguments: Any,
        stored: str,
        devices: Sharding,
        beside: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self.stored, self.ranks, self.devices = stored, devices.sharers, devices
        self.beside = beside or stored
        self.on_host = False  # whether what is made now is the host's
        self.stream = ""  # on which it is made
        self.computed = devices.policy.param_dtype or stored
        self.groups: dict[int | None, Group] = {None: Group(self.ranks)}
        self.order: list[Group] = []  # in which the groups' forward passes ended
        self.last_copied: Tensor | None = None  # the buffer that was copied last
        self.sent: Tensor | None = None  # the buffer that was reduced last

    @property
    def adapters_in(self) -> str:
        """The format that adapters are gathered and compute in."""
        return self.devices.policy.param_dtype or self.beside

    def _registered(self, name: str, shape: Sequence[int], dtype: str) -> Parameter:
        """The whole weight, which is empty until it is gathered; a part of it is stored.

        Raises      ValueError for a weight of another format than the others
        """
        stored = self.beside if name.split(".")[-1] in ADAPTERS else self.stored
        if dtype != (self.devices.policy.param_dtype or stored):
            raise ValueError(f"{name} in {dtype} beside {self.computed} is not described for FSDP2")
        group = self.group_of(name)
        shape, cut = tuple(shape), row_shard(shape, ranks=group.ranks)
        padded = (cut[0] * group.ranks, *cut[1:])
        mine = Storage(self.log, Record(name, cut, stored, "weights", self.part))
        empty = Gathered(self.log, Record(name, padded, dtype, GATHERED, self.part))
        mine.record.on_host = self.devices.policy.cpu_offload is not None
        part = Parameter(cut, stored, mine, self.current)
        whole = Parameter(shape, dtype, empty, self.current)
        if component(name) not in self.frozen:
            part.node, whole.node = Node.of(part), Node.of(whole)
        group.parts.append(part)
        group.wholes.append(whole)
        self.parameters.append(part)
        return whole

    def group_of(self, name: str) -> Group:
        """The group that a parameter of this name is gathered with: its layer's, or the root's."""
        return self.groups.setdefault(self.current, Group(self.ranks))

    def new(self, op: str, shape: Sequence[int], dtype: str, category: str = "other") -> Tensor:
        """A fresh tensor.

        Raises      ValueError for a buffer that a network makes in the format of its weights: it
                    stays in the stored one, and is cast again and again
        """
        if category == "buffers" and dtype == self.computed != self.stored:
            raise ValueError(
                f"param_dtype={dtype!r}: {op}, a buffer of {self.stored}, is not described"
            )
        made = super().new(op, shape, dtype, category)
        made.record.on_host, made.record.stream = self.on_host, self.stream
        return made

    def there(self, function: Callable[[], Any]) -> Callable[[], Any]:
        """The same function, on the host: all that it makes is the host's."""

        def run() -> Any:
            self.on_host = True
            made = function()
            self.on_host = False
            return made

        return run

    def region(self, checkpoint: bool) -> Callable[..., Any]:
        inside = super().region(checkpoint)

        def layer(function: Callable[..., Any], x: Tensor, *arguments: Any) -> Any:
            group = self.groups[self.current]
            self._before_forward(group)
            x = self._passed(x, lambda: self._after_backward(group))
            out = inside(function, x, *arguments)
            return self._after_forward(group, out)

        return layer

    def root(self, forward: Callable[..., Any], ids: Any) -> Any:
        group = self.groups[None]
        self._before_forward(group)
        loss = forward(ids)
        self.last_copied = None
        return self._after_forward(group, loss, stays=True)

    def end_backward(self) -> None:
        """Reduce what has waited for the end: the root's group first."""
        for group in self.groups.values():
            if group.parts and not group.done:
                self._after_backward(group)
            if group is self.groups[None]:
                group.guarded = None
        if self.devices.policy.replicas > 1:
            layers = sum(name is not None and name >= 0 for name in self.groups)
            for layer in self.each_layer(layers + self.between):
                self.groups[layer].guarded = None
        for group in self.groups.values():
            group.begun = group.done = False
            group.waiting = group.guarded = None
        self.order.clear()
        self.sent = None

    def _passed(self, x: Tensor, hook: Callable[[], None]) -> Tensor:
        """x as it is; in backward the hook is called when its gradient comes by."""
        out = Tensor(x.shape, x.dtype, x.storage)

        def run(grads: list[Any], saved: list[Any], needs: list[bool]) -> list[Any]:
            hook()
            return grads

        self.apply("hook", [x], [out], run)
        return out

    def _gather(self, group: Group) -> None:
        """One buffer for all that the ranks send of a group, if nobody has it yet."""
        if group.is_whole or group.waiting is not None or not group.parts or group.ranks == 1:
            return
        both = list(zip(group.parts, group.wholes, strict=True))
        cast = [part for part, whole in both if part.dtype != whole.dtype]
        sent: list[Tensor] = []
        self.stream = COPY_IN
        if self.devices.policy.cpu_offload:
            sent += [self._brought(part, whole.dtype) for part, whole in both]
        elif cast:
            values = sum(count(part.shape) for part in cast)
            sent.append(self.new("all_gather_copy_in", (values,), self.computed, ALL_GATHER))
        formats = {whole.dtype for whole in group.wholes}
        dtype = formats.pop() if len(formats) == 1 else BYTES
        size = sum(storage(count(part.shape), whole.dtype) for part, whole in both)
        values = size if dtype == BYTES else size // storage(1, dtype)
        group.waiting = self.new("all_gather", (group.ranks * values,), dtype, ALL_GATHER)
        sent.clear()
        self.stream = ""

    def _brought(self, part: Parameter, dtype: str) -> Tensor:
        """A part on the device, in the format that is sent."""
        here = self.new("to", part.shape, part.dtype, ALL_GATHER)
        if dtype == part.dtype:
            return here
        return self.new("to", part.shape, dtype, ALL_GATHER)

    def _copy_out(self, group: Group) -> None:
        narrow: Tensor | None = None  # what a loop of wait_for_unshard has copied last
        for part, whole in zip(group.parts, group.wholes, strict=True):
            if group.ranks == 1 and part.dtype != whole.dtype:
                narrow = self.new("to", whole.shape, whole.dtype, ALL_GATHER)
            whole.storage.fill()  # type: ignore[attr-defined]
        group.is_whole = True
        del narrow

    def _empty(self, group: Group) -> None:
        for whole in group.wholes:
            whole.storage.empty()  # type: ignore[attr-defined]
        group.is_whole = False

    def _after_forward(self, group: Group, out: Tensor, *, stays: bool = False) -> Tensor:
        """The group's output; its whole weights go, unless they stay until backward."""
        if not group.parts:
            return out
        if self.devices.policy.reshard_after_forward and not stays:
            self._empty(group)
        self.order.append(group)
        return self._passed(out, lambda: self._before_backward(group))

    def _before_forward(self, group: Group) -> None:
        self._gather(group)
        if group.waiting is not None:
            self._copy_out(group)  # wait_for_unshard still has the last buffer in a variable
            self.last_copied, group.waiting = group.waiting, None
        elif group.ranks == 1 and not group.is_whole:
            self._copy_out(group)
            self.last_copied = None

    def _before_backward(self, group: Group) -> None:
        if group.begun:
            return
        group.begun = True
        self._gather(group)
        if group.waiting is not None:
            self._copy_out(group)
            group.waiting = None
        elif group.ranks == 1 and not group.is_whole:
            self._copy_out(group)
        number = self.order.index(group)
        if number:
            self._gather(self.order[number - 1])

    def _after_backward(self, group: Group) -> None:
        """The group's gradients are complete: let its weights go, and reduce them or keep them."""
        group.done = True
        for i in group.kept:
            group.wholes[i].grad = None  # it has been added to what was kept
        if self.devices.policy.gradient_sync == "last" and not self.last_pass:
            self._empty(group)
            self._keep_wide(group)
            return
        given = []
        for i, whole in enumerate(group.wholes):
            grad = group.kept.pop(i, None) or whole.grad
            whole.grad = None
            if grad is not None:
                given.append((group.parts[i], grad))
        grad = None
        self._empty(group)
        self.sent = None
        if given:
            self._reduce(group, given)

    def _keep_wide(self, group: Group) -> None:
        """Gradients that are reduced later, in the format in which they are added up."""
        wide = self.devices.policy.reduce_dtype
        for i, whole in enumerate(group.wholes):
            if wide and whole.grad is not None and whole.grad.dtype != wide:
                group.kept[i] = self.new("to", whole.shape, wide, WHOLE)
                whole.grad = None

    def _reduce(self, group: Group, given: list[tuple[Parameter, Tensor]]) -> None:
        """Copy gradients into one padded buffer; the rank's parts are views of what comes back."""
        parts = [part for part, _ in given]
        values = sum(count(part.shape) for part in parts)
        shape = (group.ranks * values,)
        group.guarded = None
        stored, reduced = parts[0].dtype, self.devices.policy.reduce_dtype or given[0][1].dtype
        buffer = self.new("reduce_scatter_copy_in", shape, reduced, REDUCE_SCATTER)
        # A loop's variable, which nobody clears: foreach_reduce.
        last = given[-1] if group.ranks > 1 else None
        given.clear()
        waits = self.devices.policy.gradient_sync == "shards" and not self.last_pass
        stays = waits or (reduced == stored and not self.devices.policy.cpu_offload)
        kind = "gradients" if stays and parts[0].grad is None else REDUCE_SCATTER
        self.stream = REDUCED
        mine = self.new("reduce_scatter", (values,), reduced, kind)
        if group.ranks == 1:  # a copy of the quotient
            quotient = self.new("div", shape, reduced, REDUCE_SCATTER)
            del quotient
        elif self.backend == "cpu":  # gloo's reduce-scatter is an all-reduce of a copy
            copy = self.new("all_reduce", shape, reduced, REDUCE_SCATTER)
            del copy
        self.sent = buffer
        if waits:
            group.partial = group.partial or mine  # or it is added to what is there
            self.stream = ""
            return
        if self.devices.policy.replicas > 1:
            group.guarded = mine
            self.stream = ALL_REDUCED
        if reduced != stored:
            mine = self.new("to", (values,), stored, "gradients")
        self.stream = ""
        if self.devices.policy.cpu_offload:
            self._send_away(parts)
        for part in parts:
            if part.grad is None:  # else they are added to it in place
                part.grad = Tensor(part.shape, stored, mine.storage)
        group.partial = None
        del last

    def _send_away(self, parts: list[Parameter]) -> None:
        """Each part of the gradient in the host's memory; a later one is added to the first."""
        self.on_host = True
        for part in parts:
            there = self.new("to", part.shape, part.dtype, "gradients")
            if part.grad is None:
                part.grad = there
            del there
        self.on_host = False
