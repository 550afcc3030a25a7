"""Record the autograd graph of a network from its own code: one block of it, and its two ends.

One training step runs on tensors without values, with CUDA's kernels, and is watched from four
sides. What the dispatcher sees gives the order of allocations and frees. Autograd is handed a note
in the place of each tensor that it saves, so that a storage goes when Python lets go of it, and the
note says who saves it. Hooks before and after each node of the graph say what its backward
allocates. Each matrix product with a weight, and each
look-up in one, is one instruction, whatever it is made of.

A step is watched several times, with other parts frozen each time: of each node the saves and the
backward are kept by the inputs that ask for a gradient.

Shapes      sizes are powers of two times different primes, and are written in letters
Leaves out  optimizers; what a node keeps beside saved tensors; Python's own autograd functions that
            keep tensors as attributes
Long, because the four sides are one step's, and share what they write down.
"""

from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ..base.gc_paused import no_garbage
from ..run import Run
from .fake_copies import Fakes
from .fake_cuda import begin, known, noted
from .fake_cuda.undo import Changes
from .shapes_mode import shapes_mode
from .step_tracker import DEVICE, StepTracker
from .storages import tensors

# What the engine has operators of its own for: adapters stand beside them, FSDP2 gathers for them.
CALLS = {nn.functional.linear: "l", nn.functional.embedding: "e"}


@dataclass(eq=False)
class Op:
    """One operator that the dispatcher saw: its events, and the tensors that it gave.

    seen        the sequence number that the next node of the graph would get
    """

    name: str
    first: int
    last: int
    seen: int
    outs: list[tuple[int | None, tuple[int, ...], str]]


@dataclass(eq=False)
class Note:
    """What autograd is given to keep: the number of a storage, and how to make another one."""

    ident: int | None
    kind: tuple[Any, ...]
    ops: int  # that had run before
    serial: int  # among all that is saved


@dataclass(eq=False)
class Call:
    """One use of a weight as rows or as a table, from one operator to before another one.

    what        l, a product with it, or e, a look-up in it
    """

    what: str
    first: int
    last: int
    x: Any
    weight: str
    out: Any


@dataclass(eq=False)
class Span:
    """What one node of the graph did in backward: its events and the gradients it gave."""

    first: int
    last: int
    came: list[int | None]
    gave: list[tuple[int | None, bool] | None]


@dataclass(eq=False)
class Pass:
    """One watched step; `marks` are (name, operator, event) of where a part of it begins."""

    tracker: "Watch"
    module: nn.Module
    marks: list[tuple[str, int, int]] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    arguments: dict[int, list[int]] = field(default_factory=dict)  # storages, by layer
    entered: dict[int, Any] = field(default_factory=dict)  # what came into a layer
    left: dict[int, Any] = field(default_factory=dict)  # and what it gave
    beside: dict[int, list[int]] = field(default_factory=dict)  # storages that it gave too
    embeds: Any = None  # what the embedding's module gave
    nodes: list[Any] = field(default_factory=list)
    saved: dict[Any, list[tuple[str, Any]]] = field(default_factory=dict)
    spans: dict[Any, Span] = field(default_factory=dict)
    backward: int = 0
    named: dict[int, str] = field(default_factory=dict)
    emitted: dict[int, list[Any]] = field(default_factory=dict)  # nodes, by operator
    problems: list[str] = field(default_factory=list)


class Watch(StepTracker):
    """A tracker that also writes down each operator, and gives autograd notes to keep."""

    def __init__(self, device: str) -> None:
        super().__init__(device)
        self.ops: list[Op] = []
        self.notes: list[Note] = []
        self.away = False
        self.forward = True
        self.packs = 0

    def ident(self, tensor: Any) -> int | None:
        """The number of a tensor's storage, or None where it is not the device's."""
        record = self._living.get(tensor.untyped_storage())
        return None if record is None else record.ident

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if self.away:
            return func(*args, **(kwargs or {}))
        first = len(self.timeline)
        result = super().__torch_dispatch__(func, types, args, kwargs)
        if self.forward and func is not DEVICE:
            outs = [(self.ident(t), tuple(t.shape), _dtype(t)) for t in tensors(result)]
            seen = torch.autograd._get_sequence_nr()
            self.ops.append(Op(str(func), first, len(self.timeline), seen, outs))
        return result

    def pack(self, tensor: Tensor) -> Any:
        """A note in the place of a tensor; parameters stay themselves."""
        if isinstance(tensor, nn.Parameter):
            self.packs += 1
            return Kept(tensor, self.packs)
        device = (
            getattr(tensor, "fake_device", None) or tensor.device
        )  # whole numbers of a host are real
        kind = (tuple(tensor.shape), tensor.stride(), tensor.dtype, device)
        self.packs += 1
        note = Note(self.ident(tensor), kind, len(self.ops), self.packs)
        self.notes.append(note)
        return note

    def unpack(self, packed: Any) -> Tensor:
        """A tensor like the one that was saved, out of everybody's sight."""
        if isinstance(packed, Kept):
            return packed.tensor  # type: ignore[no-any-return]
        shape, stride, dtype, device = packed.kind
        self.away = True
        try:
            return torch.empty_strided(shape, stride, dtype=dtype, device=device)
        finally:
            self.away = False


class Kept:
    """A parameter that autograd saves."""

    def __init__(self, tensor: Tensor, serial: int) -> None:
        self.tensor, self.serial = tensor, serial


class _Calls(TorchFunctionMode):
    """Sees each product with a weight and each look-up in one as one call."""

    def __init__(self, told: Pass, names: dict[int, str]) -> None:
        super().__init__()
        self.told, self.names = told, names

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        what = CALLS.get(func)
        told: list[Any] = [*args]
        told += (kwargs or {}).values()
        name = self.names.get(id(told[1])) if what else None
        if what is None or name is None:
            return func(*args, **(kwargs or {}))
        tracker = self.told.tracker
        first, given = len(tracker.ops), _tensor(tracker, told[0])
        out = func(*args, **(kwargs or {}))
        made = _tensor(tracker, out)
        self.told.calls.append(Call(what, first, len(tracker.ops), given, name, made))
        return out


def _tensor(tracker: Watch, tensor: Tensor) -> tuple[Any, ...]:
    """Storage, node, slot, shape and dtype of a tensor."""
    made = tensor.grad_fn, tensor.output_nr if tensor.grad_fn is not None else 0
    return (tracker.ident(tensor), *made, tuple(tensor.shape), _dtype(tensor))


def _dtype(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def layers_of(module: nn.Module, count: int) -> nn.ModuleList:
    """The list of decoder layers.

    Raises      ValueError where there is none of that length
    """
    for part in module.modules():
        if isinstance(part, nn.ModuleList) and len(part) == count:
            return part
    raise ValueError(f"no list of {count} layers in {type(module).__name__}")


def watch(module: nn.Module, run: Run, *, layers: int, autocast: str | None = None) -> Pass:
    """Watch one training step of a causal language model of transformers.

    module      on meta, its parameters frozen or not
    run         batch, tokens, backend and the kernel of attention
    layers      how many it has
    """
    ids = torch.empty(run.batch, run.tokens, dtype=torch.long, device="meta")  # type: ignore[arg-type]
    tracker, mode = Watch(run.backend), shapes_mode()
    with Changes() as stack:
        begin(stack, run.backend, tracker, run.kernel)
        stack.enter_context(mode)
        fakes = Fakes(mode, run.backend)
        module = fakes.module(module)
        given = fakes.inputs({"input_ids": ids, "labels": ids})
        stack.enter_context(no_garbage(collect=False))
        known(stack, mode, noted())
        stack.enter_context(tracker)
        tracker.label(module)
        tracker.label(given, "inputs")
        told = Pass(tracker, module)
        stack.enter_context(torch.autograd.graph.saved_tensors_hooks(tracker.pack, tracker.unpack))
        for handle in _marks(told, layers):
            stack.callback(handle.remove)
        names = {id(parameter): name for name, parameter in module.named_parameters()}
        narrow: Any = nullcontext()
        if autocast:
            narrow = torch.autocast(
                run.backend, {"bf16": torch.bfloat16, "fp16": torch.float16}[autocast]
            )
        with _Calls(told, names), narrow:
            told.marks.append(("before", 0, len(tracker.timeline)))
            loss = module(**given).loss
            told.marks.append(("end", len(tracker.ops), len(tracker.timeline)))
        tracker.forward = False
        told.backward = len(tracker.timeline)
        told.nodes = list(_graph([loss.grad_fn, *(x[1] for x in told.left.values())]))
        for node in told.nodes:
            told.saved[node] = _saved(node)
            _hook(told, node)
        claimed = {id(packed) for saved in told.saved.values() for _, packed in saved}
        for note in tracker.notes:
            if note.ident is not None and id(note) not in claimed:
                told.problems.append(f"saved by a node that leads nowhere: {note.kind}")
        loss.backward()
        told.named = {id(p): name for name, p in module.named_parameters()}
    return told


def _marks(told: Pass, count: int) -> Iterator[Any]:
    """Hooks that say where layers and the output head begin and end."""
    tracker, module = told.tracker, told.module
    layers = layers_of(module, count)

    def here(name: str) -> None:
        told.marks.append((name, len(tracker.ops), len(tracker.timeline)))

    for number, layer in enumerate(layers):

        def enter(_: Any, args: Any, kwargs: Any, number: int = number) -> None:
            here(f"layer {number}")
            given = [t for t in tensors([*args, kwargs]) if tracker.ident(t) is not None]
            told.entered[number] = _tensor(tracker, given[0])
            told.arguments[number] = [i for t in given if (i := tracker.ident(t)) is not None]

        def leave(_: Any, args: Any, out: Any, number: int = number) -> None:
            made, *more = tensors(out if isinstance(out, (tuple, list)) else [out])
            told.left[number] = _tensor(tracker, made)
            told.beside[number] = [i for t in more if (i := tracker.ident(t)) is not None]
            here(f"after {number}")

        yield layer.register_forward_pre_hook(enter, with_kwargs=True)
        yield layer.register_forward_hook(leave)

    def embedded(_: Any, args: Any, out: Any) -> None:
        told.embeds = _tensor(tracker, out)

    yield module.get_input_embeddings().register_forward_hook(embedded)  # type: ignore[operator]
    head = module.get_output_embeddings()  # type: ignore[operator]
    yield head.register_forward_pre_hook(lambda *_: here("head"))


def _graph(roots: Iterable[Any]) -> Iterator[Any]:
    """The nodes behind these, each once."""
    todo, seen = list(roots), set()
    while todo:
        node = todo.pop()
        if node is not None and node not in seen:
            seen.add(node)
            yield node
            todo += [before for before, _ in node.next_functions]


def _saved(node: Any) -> list[tuple[str, Any]]:
    """What stands in a node in the place of each tensor that it saves, in order."""
    found = []
    for attribute in dir(node):
        if attribute.startswith("_raw_saved_"):
            held = getattr(node, attribute)
            for item in held if isinstance(held, (list, tuple)) else [held]:
                if item.data is not None:
                    found.append((attribute.removeprefix("_raw_saved_"), item.data))
    return sorted(found, key=lambda pair: getattr(pair[1], "serial", 0))


def _hook(told: Pass, node: Any) -> None:
    """Write down what this node does when it runs."""
    tracker, begun = told.tracker, []

    def before(_: Any) -> None:
        begun.append(len(tracker.timeline))

    def after(gave: Any, came: Any) -> None:
        made = [
            None if g is None else (tracker.ident(g), g._is_view() or not _dense(g)) for g in gave
        ]
        got = [None if g is None else tracker.ident(g) for g in came]
        told.spans[node] = Span(begun.pop(), len(tracker.timeline), got, made)

    if "AccumulateGrad" not in node.name():
        node.register_prehook(before)
        node.register_hook(after)


def _dense(tensor: Tensor) -> bool:
    expected = 1
    for step, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size != 1 and step != expected:
            return False
        expected *= size
    return True
