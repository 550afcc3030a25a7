"""The memory of a computation without the computation: shapes, a graph, and who still holds what.

An implementation is written down as the torch code that it describes, on tensors that have a shape
and a dtype but no values. A storage lives as long as something holds it: a Python variable, as in
the real code, or autograd, which keeps what an operator's backward needs and lets go of it when
that backward has run. So the order of allocations and frees is that of a real step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from .backward import backward
from .checkpoints import Checkpoints, Frame, Place, stop
from .graph import Node, Parameter, Save, Tensor, call, component
from .saved_on_host import Offloaded, OffloadedSaved
from .storage_log import Log, Record, Storage

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    from .graph import Backward

    Graph = tuple[list[Tensor], list[Parameter]]

# Layers that are simulated one by one: the first two and the last two. Those between are alike, so
# the running total is linear in their number and its largest value lies at one of the two ends.
# First layers of another kind are simulated before them.
SHOWN = 4


class Engine:
    """Makes tensors and records the graph of a forward pass, layer by layer.

    in_place    where gradients meet at one tensor, the second is added to the first, if autograd
                alone holds it. False: into a new tensor, as any dispatch mode makes autograd do
    updates     called with each trained parameter as soon as its gradient is complete, or None
    Leaves out  other hooks, gradients of gradients
    """

    shown = SHOWN  # layers that are simulated one by one; the rest are counted
    repeated = 1  # the layer that stands for those that are not simulated
    sharded = False  # whether parameters are parts of what other ranks have the rest of
    deepspeed = False  # whether it is DeepSpeed's engine, which steps and clips itself

    def __init__(self, *, in_place: bool = True) -> None:
        self.in_place = in_place
        self.log = Log()
        self.parameters: list[Parameter] = []
        self.leaves: list[Parameter] = []  # other tensors that ask for a gradient
        self.attributes: list[Tensor] = []  # of the graph's nodes, one of each layer
        self.saves: list[Save] = []
        self.part = ""
        self.grad = True
        self.adapters = True  # whether layers use theirs
        self.updates: Callable[[Parameter], None] | None = None
        self.copied: Callable[[Parameter], None] | None = None  # puts copies beside a weight
        self.drops_narrow = False  # each gradient, as soon as an fp32 sum has it
        self.offloaded: Offloaded | None = None  # what is saved on a host, or None: it stays here
        self.output: tuple[Tensor, ...] = ()  # what the caller of the model keeps beside the loss
        self.frozen: Sequence[str] = ()  # components whose weights are not trained
        self.last_pass = True  # of the forward and backward passes before the optimizer's step
        self.peft = False  # whose adapters stand beside linear layers: peft's, or memlab.lab's
        self.doubled: Sequence[str] = ()  # tables of which a copy is trained beside the frozen one
        self.originals: dict[str, Parameter] = {}  # the frozen ones of these
        self.lora_dropout = 0.0  # of what peft's adapters read
        self.shared: tuple[Tensor, ...] = ()  # frozen matrices that all of them read
        self.shifted: Tensor | None = None  # labels that came with the batch as the loss takes them
        self.program = "plain"  # memlab.Run's `loop`: what it asks of the optimizer may differ
        self.traversals = 0  # how often the graph has been run backwards, whole or a part of it
        self._seq = 0
        self.current: int | None = None  # the simulated layer that we are in
        self.between = 0  # layers that are not simulated
        self._checkpoints = Checkpoints()
        self._spans: dict[str, int] = {}

    def new(self, op: str, shape: Sequence[int], dtype: str, category: str = "other") -> Tensor:
        """A fresh tensor."""
        shape = tuple(shape)
        return Tensor(
            shape, dtype, Storage(self.log, Record(op, shape, dtype, category, self.part))
        )

    def parameter(self, name: str, shape: Sequence[int], dtype: str) -> Parameter:
        """A weight, in the order in which the real module registers it.

        Where a copy of it is trained in its place (peft's modules_to_save), the copy comes second.
        """
        if name in self.doubled:
            self.originals[name] = self._registered(name, shape, dtype)
            return self._registered(f"{name}.copy", shape, dtype)
        return self._registered(name, shape, dtype)

    def tied_head(self, table: Parameter) -> Parameter:
        """The head of a model whose table is its own: peft ties no copies, frozen or trained.

        Source      peft, utils/other.py: ModulesToSaveWrapper, ensure_weight_tying=False
        """
        if "lm_head" in self.doubled:
            return self._registered("lm_head.copy", table.shape, table.dtype)
        return self.originals["embedding"] if "embedding" in self.doubled else table

    def _registered(self, name: str, shape: Sequence[int], dtype: str) -> Parameter:
        shape = tuple(shape)
        record = Record(name, shape, dtype, "weights", self.part)
        made = Parameter(shape, dtype, Storage(self.log, record), self.current)
        if component(name) not in self.frozen:
            made.node = Node.of(made)
            if self.copied is not None:
                self.copied(made)
        self.parameters.append(made)
        return made

    def require_grad(self, x: Tensor) -> None:
        """x.requires_grad_(): the graph holds x and its gradient until the loss is dropped."""
        if x.node is None and self.grad:
            leaf = Parameter(x.shape, x.dtype, x.storage, None)
            x.node = Node.of(leaf)
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
        late: bool = False,
    ) -> None:
        """Record an operator in the graph if an input needs a gradient.

        saved       (argument, tensor) that it keeps, or None in the place of one that it need not
        broadcast   whether inputs of fewer dimensions are spread: their gradients are sums, even
                    over dimensions of size 1
        late        whether its result is there before anything is kept: a function in Python
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
        if self._checkpoints.complete:
            stop(self.log, () if late else outputs, saved)

    def _keep(self, op: str, argument: str, tensor: Tensor) -> Any:
        """What the graph holds of a tensor: its storage, or in a checkpoint a place for it."""
        place = self._checkpoints.place()
        if place is not None:
            return place
        if tensor.record.category == "other":
            tensor.record.category = "activations"
        if self._checkpoints.again:
            return self._checkpoints.give(tensor.storage)
        self.saves.append(Save(op, argument, tensor, self.current))
        away = self.offloaded.of(tensor.record) if self.offloaded else None
        return tensor.storage if away is None else away

    def checkpoint(self, function: Callable[..., Any], x: Tensor, *arguments: Any) -> Any:
        """Call a region whose inner tensors are not kept but computed again in backward.

        x           the input; it is kept, as autograd would keep it
        """
        frame = Frame(function, (x, *arguments), self.part)
        result = self._checkpoints.enter(frame)
        if frame.places:  # else nothing inside is kept, and so nothing of the region
            x.record.category = "activations"
            self.saves.append(Save("checkpoint", "input", x, self.current))
        return result

    def region(self, checkpoint: bool) -> Callable[..., Any]:
        """What a network calls each layer with: one may be a checkpoint, or a group of FSDP2."""
        return self.checkpoint if checkpoint else call

    def root(self, forward: Callable[..., Any], ids: Any) -> Any:
        """The forward pass of the whole model."""
        return forward(ids)

    def give(self, kept: Any) -> Any:
        """The storage that the graph kept, computed again if it stands for one."""
        if isinstance(kept, OffloadedSaved):
            return kept.back()
        if not isinstance(kept, Place):
            return kept
        if kept.frame.traversal != self.traversals:
            self.compute_again(kept.frame)
        return kept.storages.pop(self.traversals)

    def compute_again(self, frame: Frame) -> None:
        """A checkpointed region for the second time, in backward."""
        part, self.part = self.part, frame.part
        self._checkpoints.run_again(frame, self.traversals)
        self.part = part

    def holds(self, x: Tensor) -> bool:
        """Whether a graph on x keeps its tensors alive though its result leads nowhere.

        In the first pass through a checkpoint it keeps places for them, and no tensors.
        """
        return self.grad and x.node is not None and not self._checkpoints.first_pass

    def begin_loss(self) -> None:
        """From here on (the output head) the forward pass makes logits and the loss."""
        self.part = "loss"
        self.log.mark("loss")

    def backward(self, loss: Tensor, grad: Tensor | None = None) -> None:
        """Run the graph behind `loss` backwards and leave gradients in the parameters.

        grad        the gradient of `loss` where it is no scalar
        """
        backward(self, loss, grad)

    def adds(self, shape: tuple[int, ...]) -> bool:
        """Whether a gradient of this shape, alone, is added to in place."""
        return self.in_place

    def added(self, first: Tensor, second: Tensor) -> Tensor:
        """The sum of two gradients, in a new tensor."""
        return self.new("add", second.shape, second.dtype)

    def before_update(self, parameter: Parameter) -> None:
        """Called when AdamW's loop comes to a parameter: what its gradient costs to be read."""

    def let_go(self) -> None:
        """No step follows. Parameters and their ends of the graph refer to each other, and through
        their storages to the log: all of it would stay until Python looks for cycles.
        """
        for parameter in self.parameters:
            parameter.node = None
        self.updates = None

    def hold(self, tensors: Sequence[Tensor]) -> None:
        """What a node of the graph has beside saved tensors, until the loss is dropped.

        A checkpoint's second pass has nodes of its own, which go with it.
        """
        if self.grad and not self._checkpoints.again:
            self.attributes += tensors

    def kept_graph(self) -> Graph:
        """What nodes and leaves of the last graph have, whose loss is kept through another one."""
        kept = self.attributes, self.leaves
        self.attributes, self.leaves = [], []
        return kept

    def drop_graph(self, graph: Graph | None = None) -> None:
        """The loss is dropped, and with it all nodes, those of layers between the simulated too.

        graph       that of a loss which was kept; None: the last one
        """
        attributes, leaves = graph or (self.attributes, self.leaves)
        if attributes:
            record = attributes[0].record
            self.log.note(record, -record.bytes * self.between)
        attributes.clear()
        leaves.clear()

    def end_backward(self) -> None:
        """Called when the graph has run, by the engine that ran it."""

    def after_backward(self) -> None:
        """Called when backward is over, for a library that does more then."""

    def show(self, layers: int, first: int | None) -> None:
        """Simulate all layers; or with a number that many first ones besides those of `SHOWN`."""
        if first is None:
            self.shown = layers
        else:
            self.shown, self.repeated = self.shown + first, self.repeated + first

    def each_layer(self, layers: int) -> Iterator[int]:
        """0, 1, … for the layers that are simulated; accounts for those between them.

        Each round must add the same: parameters made, states made, gradients dropped.
        """
        self.between = max(0, layers - self.shown)
        for layer in range(min(layers, self.shown)):
            self.current = layer
            first = len(self.log.events)
            self.log.enter(layer)
            yield layer
            if layer == self.repeated and layers > self.shown:
                self.log.repeat(first, len(self.log.events), layers - self.shown)
        self.current = None
        self.log.enter(None)

    @property
    def layer(self) -> int:
        """The layer that is simulated just now."""
        assert self.current is not None
        return self.current

    def boundary(self, x: Tensor, layer: int, layers: int) -> Tensor:
        """After a layer: backward enters it here, and accounts for those not simulated."""
        out = Tensor(x.shape, x.dtype, x.storage)
        log, spans = self.log, self._spans

        def run(grads: list[Any], saved: list[Any], needs: list[bool]) -> list[Any]:
            log.enter(layer)
            if layers <= self.shown:
                return grads
            if layer == self.repeated + 1:
                spans["first"] = len(log.events)
            elif layer == self.repeated:
                log.repeat(spans["first"], len(log.events), layers - self.shown)
            return grads

        self.apply("boundary", [x], [out], run)
        return out
