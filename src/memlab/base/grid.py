"""A table as a value: a notebook shows it as HTML, a terminal as aligned text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .frozen import dataclass
from .table import Table, as_html, as_text


@dataclass(frozen=True, repr=False)
class Grid:
    """Cells of text under headings, as they are shown.

    Shapes      table: the headings, then one list a row, all of one length
    foot        how many rows at the end are set apart by a rule
    Raises      ValueError where a row has more or fewer cells than there are headings
    """

    table: Table
    title: str = ""
    foot: int = 0

    def __post_init__(self) -> None:
        for row in self.table[1:]:
            if len(row) != len(self.table[0]):
                raise ValueError(f"row {row} has {len(row)} cells; {len(self.table[0])} headings")

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, object]], title: str = "", foot: int = 0) -> Grid:
        """A row for each mapping from heading to cell: whole numbers get their separators.

        Raises      ValueError where there is no row, or a row has other headings than the first
        """
        rows = list(rows)
        if not rows:
            raise ValueError("rows=[]: a table has one row at least")
        table = [list(rows[0])]
        for row in rows:
            if list(row) != table[0]:
                raise ValueError(f"headings {list(row)}; the first row has {table[0]}")
            table.append([_written(cell) for cell in row.values()])
        return cls(table, title, foot)

    def __str__(self) -> str:
        return as_text(self.table, foot=self.foot, title=self.title)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return as_html(self.table, foot=self.foot, title=self.title)


def _written(cell: object) -> str:
    whole = isinstance(cell, int) and not isinstance(cell, bool)
    return f"{cell:,}" if whole else f"{cell}"
