"""What autograd keeps for the backward pass: every saved tensor, each storage counted once.

Two methods agree here. Hooks are told of each tensor in the moment it is saved: they give the
bytes. The finished graph names the operator and the argument that keep it: it gives the words.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch

from ..base.table import as_html, as_text, cell
from .patches import watch_saves
from .storages import PerStorage, plain, storages, tensors


@dataclass(frozen=True)
class Row:
    """One tensor that one operator keeps; `bytes` is its whole storage.

    shared      the "op.name" that keeps the same storage first, or "" if this one is first
    """

    op: str
    name: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    shared: str = ""


@dataclass(eq=False, slots=True)
class _Kept:
    bytes: int
    dtype: str
    shape: tuple[int, ...]
    first: str = ""


class Saved:
    """Collects what autograd saves while its `with` block runs; prints itself as a table.

    Unit        bytes of whole storages, each once, even if only a view of one is saved
    exclude     modules (parameters and buffers), tensors or containers that do not count: weights
                are there anyway, and an input may belong to the layer before
    Leaves out  numbers that autograd wraps (`x * 0.5`: 8 bytes each), and tensors that
                checkpointing will compute again
    Raises      RuntimeError when entered twice; TypeError for an `exclude` without tensors
    """

    def __init__(self, *, exclude: Any = ()) -> None:
        self._excluded: PerStorage[bool] = PerStorage()
        for storage in storages(exclude).values():
            self._excluded.add(storage, True)
        self._kept: list[_Kept] = []
        self._living: PerStorage[_Kept] = PerStorage()
        self._rows: list[Row] = []
        self._open: ExitStack | None = None
        self._used = False

    def __enter__(self) -> "Saved":
        if self._used:
            raise RuntimeError("this Saved has had its block; make a new one for each")
        self._used = True
        with ExitStack() as stack:
            stack.enter_context(watch_saves(self._save))
            self._open = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._open is not None:
            self._open.__exit__(*error)

    def _save(self, tensor: torch.Tensor) -> None:
        for part in plain(tensor):
            storage = part.untyped_storage()
            if self._excluded.get(storage) is None and self._living.get(storage) is None:
                kept = _Kept(storage.nbytes(), _dtype(part), tuple(part.shape))
                self._kept.append(kept)
                self._living.add(storage, kept)

    def trace(self, *outputs: Any) -> "Saved":
        """Name the rows by walking the graph behind `outputs`; call it before the backward pass."""
        rows = []
        for kept in self._kept:
            kept.first = ""
        for op, name, tensor in walk(*outputs):
            for part in plain(tensor):
                held = self._living.get(part.untyped_storage())
                if held is not None:
                    dtype, shape = _dtype(part), tuple(part.shape)
                    rows.append(Row(op, name, dtype, shape, held.bytes, held.first))
                    held.first = held.first or f"{op}.{name}"
        self._rows = rows
        return self

    @property
    def rows(self) -> list[Row]:
        """The named rows in the order of the forward pass, then what the graph did not reach."""
        rest = [Row("", "", k.dtype, k.shape, k.bytes) for k in self._kept if not k.first]
        return self._rows + rest

    @property
    def bytes(self) -> int:
        """Bytes of all storages saved in the block."""
        return sum(kept.bytes for kept in self._kept)

    def _table(self) -> list[list[str]]:
        table = [["op", "saved as", "dtype", "shape", "bytes", "shared with"]]
        for row in self.rows:
            size = "" if row.shared else cell(row.bytes)
            shape = " × ".join(map(str, row.shape)) or "scalar"
            table.append([row.op, row.name, row.dtype, shape, size, row.shared])
        return [*table, ["total", "", "", "", cell(self.bytes), ""]]

    def __str__(self) -> str:
        return as_text(self._table(), foot=1, title="Saved for the backward pass")

    def _repr_html_(self) -> str:
        return as_html(self._table(), foot=1, title="Saved for the backward pass")

    def __repr__(self) -> str:
        return f"Saved({self.bytes:,} B in {len(self._kept)} storages)"


def saved(fn: Callable[[], Any], *, exclude: Any = ()) -> Saved:
    """What autograd keeps after `fn()`, with every row named; the output is dropped again.

    Example     print(saved(lambda: block(x), exclude=[block, x]))
    Raises      TypeError if `fn` cannot be called
    """
    if not callable(fn):
        raise TypeError(f"fn is a {type(fn).__name__}; a function without arguments is needed")
    with Saved(exclude=exclude) as result:
        output = fn()
    return result.trace(output)


def walk(*outputs: Any) -> Iterator[tuple[str, str, torch.Tensor]]:
    """(operator, name, tensor) for all that the graph behind `outputs` keeps, in forward order.

    Reads the packed form of each saved tensor, so nothing is unpacked or computed again.
    """
    todo: list[Any] = [tensor.grad_fn for tensor in tensors(outputs)]
    nodes: set[Any] = set()
    while todo:
        node = todo.pop()
        if node is not None and node not in nodes:
            nodes.add(node)
            todo += [before for before, _ in node.next_functions]
    for node in sorted(nodes, key=lambda node: node._sequence_nr()):
        op = node.name().removesuffix("0").removesuffix("Backward")
        for attribute in dir(node):
            if attribute.startswith("_raw_saved_"):
                name = attribute.removeprefix("_raw_saved_")
                held = getattr(node, attribute)
                many = isinstance(held, (list, tuple))
                for i, item in enumerate(held if many else [held]):
                    for tensor in tensors(_packed(item)):
                        yield op, f"{name}[{i}]" if many else name, tensor


def _packed(item: Any) -> Any:
    try:
        return item.data
    except RuntimeError:  # the backward pass has freed it
        return None


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
