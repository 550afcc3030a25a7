"""What a simulated graph is made of: tensors without values, parameters, nodes of operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .storage_log import Record, Storage

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    # grads (None where nothing came), what the node kept, which inputs need one -> gradients
    Backward = Callable[[list[Any], list[Any], list[bool]], Sequence["Tensor | None"]]
    Grads = list[Any]
else:
    Grads = list

# The place of parameters in the order of the forward pass: behind every operator, as in torch.
LAST = 1 << 60
# What peft trains, by the end of its name.
BESIDE = (".a", ".b", ".magnitude", ".ia3", ".lambda_b", ".lambda_d", ".copy")


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
    """A leaf: its gradient stays. `layer` is the simulated layer it belongs to, or None.

    master, sum     what memlab.step.optimizers.copies puts beside it, or None
    """

    __slots__ = ("grad", "layer", "master", "state", "sum")

    def __init__(self, shape: tuple[int, ...], dtype: str, storage: Storage, layer: int | None):
        super().__init__(shape, dtype, storage)
        self.grad: Tensor | None = None
        self.layer = layer
        self.state: list[Storage] = []
        self.master: Parameter | None = None
        self.sum: Storage | None = None


class Node:
    """One operator of the graph: what it keeps for backward, and where its gradients go."""

    __slots__ = ("edges", "op", "parameter", "run", "saved", "seq", "slots")

    def __init__(
        self, op: str, seq: int, edges: list[Any], saved: list[Any], run: Any, slots: int
    ) -> None:
        self.op, self.seq, self.edges, self.saved, self.run = op, seq, edges, saved, run
        self.parameter: Parameter | None = None
        self.slots = slots

    @classmethod
    def of(cls, parameter: Parameter) -> Node:
        """The end of the graph at a parameter, where its gradient is stored."""
        node = cls("AccumulateGrad", LAST, [], [], None, 1)
        node.parameter = parameter
        return node


class Save:
    """One tensor that one operator keeps for backward, in a simulated layer or outside of all."""

    __slots__ = ("argument", "layer", "op", "record", "shape")

    def __init__(self, op: str, argument: str, tensor: Tensor, layer: int | None) -> None:
        self.op, self.argument, self.layer = op, argument, layer
        self.shape, self.record = tensor.shape, tensor.record


def component(name: str) -> str:
    """The component of memlab.Model.tensors that a parameter of a network belongs to."""
    base = name.split(".")[0]
    if name == "prompt" or name.endswith(BESIDE):
        return "lora"
    if base.endswith("norm"):
        return "norm"
    if base in ("q", "k", "v", "qkv", "out", "sinks", "q_a", "q_b", "kv_a", "kv_b"):
        return "attention"
    if base in ("gate", "up", "gate_up", "down"):
        return "feed_forward"
    if base.startswith(("router", "experts", "shared")):
        return "feed_forward"
    return base if base in ("embedding", "positions", "lm_head") else "other"


def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call as a torch module is called: its arguments live until it returns, whatever it does."""
    return function(*arguments)
