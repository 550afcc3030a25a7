"""The table of what a layer keeps for backward, as its implementation does: shapes in letters."""

from __future__ import annotations

from collections.abc import Sequence

from ...base.frozen import dataclass
from ...base.message import Message
from ...base.table import as_html, as_text, cell
from ...base.titles import SAVED_BY_A_LAYER, WITH_FORMULA
from .graph import Save
from .storage_log import SIZES

ORDER = "B T k D F N K H V X M"  # of the letters in a product
COUNTED = ("activations", "other")  # weights, buffers and token ids are there anyway


@dataclass(frozen=True)
class SavedRow:
    """One tensor; `bytes` is its whole storage.

    kept_by     "operator.argument" that keeps it first
    shared      the others that keep the same storage
    """

    name: str
    shape: str
    dtype: str
    bytes: int
    kept_by: str
    shared: tuple[str, ...]


@dataclass(frozen=True, repr=False)
class SavedTable:
    """What one layer keeps for backward, tensor by tensor, each storage once; prints itself.

    formula     the same as a sum in letters, its numbers in bytes
    """

    rows: tuple[SavedRow, ...]
    formula: str

    @classmethod
    def of_layer(cls, saves: Sequence[Save], layers: int) -> SavedTable:
        """The table of one layer, of two or more the second, less what all layers share."""
        inside: dict[int | None, list[Save]] = {}
        for save in saves:
            if save.record.category in COUNTED:
                inside.setdefault(save.layer, []).append(save)
        first = {id(save.record) for save in inside.get(0, [])} if layers > 1 else set()
        own = inside.get(min(1, layers - 1), [])  # nothing, if no layer is trained
        return cls.of([save for save in own if id(save.record) not in first])

    @classmethod
    def of(cls, saves: Sequence[Save]) -> SavedTable:
        """The table of these saves."""
        found: dict[int, list[Save]] = {}
        for save in saves:
            found.setdefault(id(save.record), []).append(save)
        rows = []
        terms: dict[tuple[str, ...], int] = {}
        for first, *others in found.values():
            record = first.record
            shared = tuple(f"{other.op}.{other.argument}" for other in others)
            shape = " · ".join(_letters(size) for size in record.shape) or "1"
            kept_by = f"{first.op}.{first.argument}"
            rows.append(SavedRow(record.op, shape, record.dtype, record.bytes, kept_by, shared))
            factor, letters = _product(record.shape)
            terms[letters] = terms.get(letters, 0) + factor * SIZES[record.dtype]
        ordered = sorted(terms.items(), key=lambda item: (-len(item[0]), _places(item[0])))
        return cls(tuple(rows), " + ".join("·".join([str(n), *ls]) for ls, n in ordered))

    @property
    def bytes(self) -> int:
        """Bytes that one layer keeps."""
        return sum(row.bytes for row in self.rows)

    def table(self) -> list[list[str]]:
        head = ["produced by", "shape", "dtype", "bytes", "saved by", "shared with"]
        body = [
            [row.name, row.shape, row.dtype, cell(row.bytes), row.kept_by, ", ".join(row.shared)]
            for row in self.rows
        ]
        return [head, *body, ["total", "", "", cell(self.bytes), "", ""]]

    def __str__(self) -> str:
        return as_text(self.table(), foot=1, title=SAVED_BY_A_LAYER) + f"\n= {self.formula}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return as_html(self.table(), foot=1, title=Message(WITH_FORMULA, formula=self.formula))


def _letters(size: int) -> str:
    return getattr(size, "letters", str(size))


def _product(shape: Sequence[int]) -> tuple[int, tuple[str, ...]]:
    """A shape as a number times letters in a fixed order."""
    factor, letters = 1, []
    for size in shape:
        for part in _letters(size).split("·"):
            if part.isdigit():
                factor *= int(part)
            else:
                letters.append(part)
    letters.sort(key=lambda part: (_places([part]), part))
    return factor, tuple(letters)


def _places(letters: Sequence[str]) -> list[int]:
    known = ORDER.split()
    return [known.index(part) if part in known else len(known) for part in letters]
