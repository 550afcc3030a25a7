"""The memory of a computation without the computation: shapes, a graph, and who still holds what.

An implementation is written down as the torch code that it describes, on tensors that have a shape
and a dtype but no values. A storage lives as long as something holds it: a Python variable, as in
the real code, or autograd, which keeps what an operator's backward needs and lets go of it when
that backward has run. So the order of allocations and frees is that of a real step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush
from sys import getrefcount

from .away import Away, Offloaded
from .log import SIZES as SIZES
from .log import Dim as Dim
from .log import Log as Log
from .log import Record as Record
from .log import Storage as Storage
from .log import count as count

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    # grads (None where nothing came), what the node kept, which inputs need one -> gradients
    Backward = Callable[[list[Any], list[Any], list[bool]], Sequence["Tensor | None"]]

# Layers that are simulated one by one: the first two and the last two. Those between are alike, so
# the running total is linear in their number and its largest value lies at one of the two ends.
SHOWN = 4


class Tensor:
    """A shape, a dtype, a storage, and the node of the graph whose output `slot` it is.

    view        whether another tensor stands behind it and holds the storage too
    """

    __slots__ = ("dtype", "node", "shape", "slot", "storage", "view")

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: str,
        storage: Storage,
        node: Node | None = None,
        slot: int = 0,
    ) -> None:
        self.shape, self.dtype, self.storage = shape, dtype, storage
        self.node, self.slot = node, slot
        self.view = False

    @property
    def record(self) -> Record:
        return self.storage.record


class Parameter(Tensor):
    """A leaf: its gradient stays. `layer` is the simulated layer it belongs to, or None."""

    __slots__ = ("grad", "layer", "state")

    def __init__(self, shape: tuple[int, ...], dtype: str, storage: Storage, layer: int | None):
        super().__init__(shape, dtype, storage)
        self.grad: Tensor | None = None
        self.layer = layer
        self.state: list[Storage] = []


class Node:
    """One operator of the graph: what it keeps for backward, and where its gradients go."""

    __slots__ = ("edges", "op", "parameter", "run", "saved", "seq", "slots")

    def __init__(
        self, op: str, seq: int, edges: list[Any], saved: list[Any], run: Any, slots: int
    ) -> None:
        self.op, self.seq, self.edges, self.saved, self.run = op, seq, edges, saved, run
        self.parameter: Parameter | None = None
        self.slots = slots


class Save:
    """One tensor that one operator keeps for backward, in a simulated layer or outside of all."""

    __slots__ = ("argument", "layer", "op", "record", "shape")

    def __init__(self, op: str, argument: str, tensor: Tensor, layer: int | None) -> None:
        self.op, self.argument, self.layer = op, argument, layer
        self.shape, self.record = tensor.shape, tensor.record


class Recomputed(Exception):
    """All that a checkpointed region has to give back has been computed again."""


class Frame:
    """A checkpointed region: what to call again, and a place for each tensor it is to give back."""

    __slots__ = ("arguments", "function", "part", "places")

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...], part: str) -> None:
        self.function, self.arguments, self.part = function, arguments, part
        self.places: list[Place] | None = []  # None once it has been computed again


class Place:
    """Stands in the graph where a tensor is kept outside of checkpoints."""

    __slots__ = ("frame", "storage")

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.storage: Storage | None = None


class Engine:
    """Makes tensors, records the graph, and runs it backwards as torch's autograd engine does.

    Source      torch/csrc/autograd/engine.cpp: of the nodes that are ready, the one made last in
                the forward pass runs first; a parameter's gradient is stored at once; a node's
                incoming gradients go when it has run, then what it kept
    in_place    where gradients meet at one tensor, the second is added to the first, if autograd
                alone holds it. False: into a new tensor, as any dispatch mode makes autograd do
    updates     called with each trained parameter as soon as its gradient is complete, or None
    Leaves out  other hooks, gradients of gradients
    """

    shown = SHOWN  # layers that are simulated one by one; the rest are counted

    def __init__(self, *, in_place: bool = True) -> None:
        self.in_place = in_place
        self.log = Log()
        self.parameters: list[Parameter] = []
        self.leaves: list[Parameter] = []  # other tensors that ask for a gradient
        self.saves: list[Save] = []
        self.part = ""
        self.grad = True
        self.updates: Callable[[Parameter], None] | None = None
        self.offloaded: Offloaded | None = None  # what is saved on a host, or None: it stays here
        self.frozen: Sequence[str] = ()  # components whose weights are not trained
        self._seq = 0
        self._layer: int | None = None
        self._between = 0  # layers that are not simulated
        self._frame: Frame | None = None  # the checkpoint whose forward pass runs
        self._again: Iterator[Place] | None = None  # the places that a second one fills
        self._left = 0  # of them
        self._spans: dict[str, int] = {}

    def new(self, op: str, shape: Sequence[int], dtype: str, category: str = "other") -> Tensor:
        """A fresh tensor."""
        shape = tuple(shape)
        return Tensor(
            shape, dtype, Storage(self.log, Record(op, shape, dtype, category, self.part))
        )

    def parameter(self, name: str, shape: Sequence[int], dtype: str) -> Parameter:
        """A weight, in the order in which the real module registers it."""
        shape = tuple(shape)
        record = Record(name, shape, dtype, "weights", self.part)
        made = Parameter(shape, dtype, Storage(self.log, record), self._layer)
        if component(name) not in self.frozen:
            made.node = Node("AccumulateGrad", 1 << 60, [], [], None, 1)
            made.node.parameter = made
        self.parameters.append(made)
        return made

    def require_grad(self, x: Tensor) -> None:
        """x.requires_grad_(): the graph holds x and its gradient until the loss is dropped."""
        if x.node is None:
            leaf = Parameter(x.shape, x.dtype, x.storage, None)
            x.node = Node("AccumulateGrad", 1 << 60, [], [], None, 1)
            x.node.parameter = leaf
            self.leaves.append(leaf)

    def view(self, x: Tensor, *shape: int) -> Tensor:
        """Another shape of the same storage and values: no memory, and no node of its own."""
        out = Tensor(shape, x.dtype, x.storage, x.node, x.slot)
        out.view = True
        return out

    def detach(self, x: Tensor) -> Tensor:
        return Tensor(x.shape, x.dtype, x.storage)

    def apply(
        self,
        op: str,
        inputs: Sequence[Tensor | None],
        outputs: Sequence[Tensor],
        run: Backward,
        saved: Sequence[tuple[str, Tensor] | None] = (),
        *,
        broadcast: bool = False,
    ) -> None:
        """Record an operator in the graph if an input needs a gradient.

        saved       (argument, tensor) that it keeps, or None in the place of one that it need not
        broadcast   whether inputs of fewer dimensions are spread: their gradients are sums, even
                    over dimensions of size 1
        """
        if not self.grad or not any(x is not None and x.node is not None for x in inputs):
            return
        edges = [
            None
            if x is None or x.node is None
            else (
                x.node,
                x.slot,
                x.shape,
                x.dtype,
                broadcast and len(x.shape) < len(outputs[0].shape),
            )
            for x in inputs
        ]
        self._seq += 1
        kept = [None if pair is None else self._keep(op, *pair) for pair in saved]
        node = Node(op, self._seq, edges, kept, run, len(outputs))
        for slot, out in enumerate(outputs):
            out.node, out.slot = node, slot
        if self._again is not None and self._frame is not None and not self._left:
            self._stop(outputs, saved)

    def _keep(self, op: str, argument: str, tensor: Tensor) -> Any:
        """What the graph holds of a tensor: its storage, or in a checkpoint a place for it."""
        if self._frame is not None and self._again is None:
            assert self._frame.places is not None
            self._frame.places.append(Place(self._frame))
            return self._frame.places[-1]
        if tensor.record.category == "other":
            tensor.record.category = "activations"
        if self._again is None:
            self.saves.append(Save(op, argument, tensor, self._layer))
        else:
            next(self._again).storage = tensor.storage
            self._left -= 1
            return tensor.storage
        away = self.offloaded.of(tensor.record) if self.offloaded else None
        return tensor.storage if away is None else away

    def checkpoint(self, function: Callable[..., Any], x: Tensor, *arguments: Any) -> Any:
        """Call a region whose inner tensors are not kept but computed again in backward.

        x           the input; it is kept, as autograd would keep it
        Source      torch/utils/checkpoint.py, use_reentrant=False: computed again as a whole when
                    the first of its tensors is asked for, up to the last one that is
        """
        self._frame = Frame(function, (x, *arguments), self.part)
        result = call(function, x, *arguments)
        if self._frame.places:  # else nothing inside is kept, and so nothing of the region
            x.record.category = "activations"
            self.saves.append(Save("checkpoint", "input", x, self._layer))
        self._frame = None
        return result

    def _give(self, kept: Any) -> Any:
        """The storage that the graph kept, computed again if it stands for one."""
        if isinstance(kept, Away):
            return kept.back()
        if not isinstance(kept, Place):
            return kept
        if kept.frame.places is not None:
            self._compute_again(kept.frame)
        storage, kept.storage = kept.storage, None
        return storage

    def _compute_again(self, frame: Frame) -> None:
        places, frame.places = frame.places, None
        assert places is not None
        self._frame, self._again, self._left = frame, iter(places), len(places)
        part, self.part = self.part, frame.part
        try:
            call(frame.function, *frame.arguments)
        except Recomputed:
            pass
        self._frame, self._again, self.part = None, None, part

    def _stop(self, outputs: Sequence[Tensor], saved: Sequence[Any]) -> None:
        """The last tensor is there. An operator keeps its inputs before it computes its result."""
        results = [pair[1].storage for pair in saved if pair is not None]
        for out in outputs:
            record = out.record
            if out.storage not in results and self.log.events[-1][0] is record:
                self.log.total -= record.bytes
                self.log.events.pop()
                record.bytes = 0
        raise Recomputed

    def begin_loss(self) -> None:
        """From here on (the output head) the forward pass makes logits and the loss."""
        self.part = "loss"
        self.log.mark("loss")

    def backward(self, loss: Tensor) -> None:
        """Run the graph behind `loss` backwards and leave gradients in the parameters."""
        assert loss.node is not None
        waiting = _dependencies(loss.node)
        seed = self.new("ones_like", loss.shape, loss.dtype)
        buffers: dict[Node, list[Any]] = {loss.node: [None] * loss.node.slots}
        buffers[loss.node][loss.slot] = seed
        ready = [(-loss.node.seq, id(loss.node), loss.node)]
        while ready:
            node = heappop(ready)[2]
            if node.parameter is not None:
                self._accumulate(node.parameter, buffers.pop(node))
                continue
            results = self._call(node, buffers.pop(node))
            node.saved = None  # type: ignore[assignment]
            node.run = None
            for edge in node.edges:
                result = results.pop(0)
                if edge is None:
                    continue
                target, slot = edge[0], edge[1]
                held = buffers.setdefault(target, [None] * target.slots)
                if held[slot] is None:
                    held[slot] = result
                elif result is not None and not (self.in_place and _alone(held, slot)):
                    held[slot] = self.new("add", result.shape, result.dtype)
                result = None
                del held  # what has run must not wait here
                waiting[target] -= 1
                if waiting[target] == 0:
                    heappush(ready, (-target.seq, id(target), target))
            node.edges = []

    def _call(self, node: Node, grads: list[Any]) -> list[Tensor | None]:
        """Run one node; bring each gradient to the shape and dtype of the input it belongs to."""
        needs = [edge is not None for edge in node.edges]
        results = list(node.run(grads, [self._give(kept) for kept in node.saved], needs))
        for i, edge in enumerate(node.edges):
            result = results[i]
            if edge is None or result is None:
                results[i] = None
                continue
            if edge[4] or count(result.shape) != count(edge[2]):
                results[i] = result = self.new("sum", edge[2], result.dtype)
            if result.dtype != edge[3]:
                results[i] = self.new("to", edge[2], edge[3])
            result = None
        return results

    def _accumulate(self, parameter: Parameter, grads: list[Any]) -> None:
        """The first gradient becomes the parameter's; a later one is added to it in place.

        Source      torch/csrc/autograd/functions/accumulate_grad.h
        """
        grad = grads[0]
        if grad is None or parameter.grad is not None:
            return
        if getrefcount(grad) > 3:  # another node waits for it too
            grad = self.new("clone", grad.shape, grad.dtype)
        if parameter.record.category == "weights":
            grad.record.category = "gradients"
        parameter.grad = self.detach(grad)
        if self.updates is not None and parameter.record.category == "weights":
            self.updates(parameter)  # the engine holds the gradient until this has returned

    def each_layer(self, layers: int) -> Iterator[int]:
        """0, 1, … for the layers that are simulated; accounts for those between them.

        Each round must add the same: parameters made, states made, gradients dropped.
        """
        self._between = max(0, layers - self.shown)
        for layer in range(min(layers, self.shown)):
            self._layer = layer
            first = len(self.log.events)
            yield layer
            if layer == 1 and layers > self.shown:
                self.log.repeat(first, len(self.log.events), layers - self.shown)
        self._layer = None

    @property
    def layer(self) -> int:
        """The layer that is simulated just now."""
        assert self._layer is not None
        return self._layer

    def boundary(self, x: Tensor, layer: int, layers: int) -> Tensor:
        """Between two layers: where backward accounts for the layers that are not simulated."""
        if layers <= self.shown:
            return x
        out = Tensor(x.shape, x.dtype, x.storage)
        log, spans = self.log, self._spans

        def run(grads: list[Any], saved: list[Any], needs: list[bool]) -> list[Any]:
            if layer == 2:
                spans["first"] = len(log.events)
            elif layer == 1:
                log.repeat(spans["first"], len(log.events), layers - self.shown)
            return grads

        self.apply("boundary", [x], [out], run)
        return out


def component(name: str) -> str:
    """The component of memlab.Model.tensors that a parameter of a network belongs to."""
    base = name.split(".")[0]
    if name.endswith((".a", ".b")):
        return "lora"
    if base.endswith("norm"):
        return "norm"
    if base in ("q", "k", "v", "qkv", "out"):
        return "attention"
    if base in ("gate", "up", "down"):
        return "feed_forward"
    return base if base in ("embedding", "positions", "lm_head") else "other"


def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call as a torch module is called: its arguments live until it returns, whatever it does."""
    return function(*arguments)


def _alone(held: list[Any], slot: int) -> bool:
    """Whether a waiting gradient is held here only, and so is its storage.

    Source      can_accumulate_inplace in torch/csrc/autograd/input_buffer.cpp
    """
    alone = getrefcount(held[slot]) == 2 and getrefcount(held[slot].storage) == 2
    return alone and not held[slot].view


def _dependencies(root: Node) -> dict[Node, int]:
    """How many gradients each node waits for."""
    waiting: dict[Node, int] = {root: 0}
    todo = [root]
    while todo:
        for edge in todo.pop().edges:
            if edge is not None:
                if edge[0] not in waiting:
                    waiting[edge[0]] = 0
                    todo.append(edge[0])
                waiting[edge[0]] += 1
    return waiting
