"""The ledger: named bytes in up to three columns, and the difference between them.

    derived     what a closed formula gives
    traced      what a step on fake tensors would allocate
    measured    what a real run did allocate

A row may lack a column, never hide it: a missing figure prints as an empty cell and joins no total.
The module is long because a ledger and two of them side by side are one thing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from .base.frozen import dataclass, replace
from .base.message import Listed
from .base.table import Table, as_html, as_text, cell, signed
from .units import text

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

COLUMNS = ("derived", "traced", "measured")


@dataclass(frozen=True)
class Row:
    """One term of the ledger.

    Unit        bytes; negative only in a ledger that is itself a difference
    Raises      TypeError for a figure that is not a whole number
    """

    term: str
    derived: int | None = None
    traced: int | None = None
    measured: int | None = None
    why: str = ""

    def __post_init__(self) -> None:
        for column in COLUMNS:
            value = getattr(self, column)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
                raise TypeError(
                    f"{self.term}: {column}={value!r} is a {type(value).__name__}; "
                    "bytes are a whole number"
                )

    @property
    def difference(self) -> int | None:
        """Measured minus derived (traced where nothing was measured); None if one is missing."""
        seen = self.measured if self.measured is not None else self.traced
        return None if seen is None or self.derived is None else seen - self.derived


Join = Callable[[Row, Row], Row]


@dataclass(frozen=True, repr=False)
class Ledger:
    """Rows of named bytes that print as text, HTML and JSON, add, subtract and compare.

    Raises      ValueError for two rows of one term
    """

    title: str
    rows: tuple[Row, ...]

    def __init__(self, title: str, rows: Iterable[Row]) -> None:
        object.__setattr__(self, "title", title)
        object.__setattr__(self, "rows", tuple(rows))
        names = [row.term for row in self.rows]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"term {name!r} stands in {names.count(name)} rows of {title!r}")

    @classmethod
    def of(cls, column: str, figures: Mapping[str, int], *, title: str = "") -> Ledger:
        """A ledger of one column from {term: bytes}."""
        _known_column(column)
        return cls(title, [_row(t, {column: n}) for t, n in figures.items()])

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns in which at least one row has a figure."""
        return tuple(c for c in COLUMNS if any(getattr(row, c) is not None for row in self.rows))

    def __getitem__(self, term: str) -> Row:
        for row in self.rows:
            if row.term == term:
                return row
        raise KeyError(f"no term {term!r} in {self.title!r}; it has: {', '.join(self)}")

    def __iter__(self) -> Iterator[str]:
        return (row.term for row in self.rows)

    def total(self, column: str | None = None) -> int:
        """Sum of one column, by default of the only or the first one that has figures."""
        column = column or (self.columns or COLUMNS)[0]
        _known_column(column)
        return sum(getattr(row, column) or 0 for row in self.rows)

    def difference(self) -> int | None:
        """Sum of the rows' differences; None where a row of one column has no partner."""
        gaps = [row.difference for row in self.rows]
        return None if None in gaps or not gaps else sum(gap for gap in gaps if gap is not None)

    def beside(self, other: Ledger, *, title: str | None = None) -> Ledger:
        """Join the columns of two ledgers row by row.

        Raises      ValueError if both hold a figure in the same place
        """

        def join(mine: Row, theirs: Row) -> Row:
            figures: dict[str, Any] = {}
            for column in COLUMNS:
                a, b = getattr(mine, column), getattr(theirs, column)
                if a is not None and b is not None:
                    raise ValueError(f"{mine.term!r} has a {column} figure in both ledgers")
                figures[column] = b if a is None else a
            return _row(mine.term, figures, why=mine.why or theirs.why)

        joined = self._merge(other, join)
        return joined if title is None else Ledger(title, joined.rows)

    def explain(self, **reasons: str) -> Ledger:
        """The same ledger with the reason for a row's difference: explain(weights="…")."""
        for term in reasons:
            _ = self[term]
        return Ledger(self.title, [replace(r, why=reasons.get(r.term, r.why)) for r in self.rows])

    def __add__(self, other: Ledger) -> Ledger:
        return self._merge(other, _combine(1), " + ")

    def __sub__(self, other: Ledger) -> Ledger:
        return self._merge(other, _combine(-1), " − ")

    def compare(self, other: Ledger, *, column: str = "derived") -> Comparison:
        """Two ledgers side by side in one column: what each term costs here and there."""
        _known_column(column)
        return Comparison(self, other, column)

    def _merge(self, other: Ledger, join: Join, sign: str = "") -> Ledger:
        if not isinstance(other, Ledger):
            raise TypeError(f"{other!r} is a {type(other).__name__}; a Ledger is needed")
        terms = list(self) + [term for term in other if term not in list(self)]

        def find(ledger: Ledger, term: str) -> Row:
            return ledger[term] if term in list(ledger) else Row(term)

        title = Listed(sign, [self.title, other.title]) if sign else self.title
        return Ledger(title, [join(find(self, term), find(other, term)) for term in terms])

    def table(self) -> Table:
        """Header, rows and total as text cells: what every rendering prints."""
        columns = self.columns
        gap = "derived" in columns and len(columns) > 1
        why = any(row.why for row in self.rows)
        head = ["bytes", *columns] + ["difference"] * gap + ["why"] * why
        body = [
            [row.term, *(cell(getattr(row, c)) for c in columns)]
            + [signed(row.difference)] * gap
            + [row.why] * why
            for row in self.rows
        ]
        sums = [self.total(c) for c in columns]
        foot = ["total", *map(cell, sums)] + [signed(self.difference())] * gap + [""] * why
        size = ["", *map(text, sums)] + [""] * gap + [""] * why
        return [head, *body, foot, size]

    def __str__(self) -> str:
        return as_text(self.table(), foot=2, title=self.title)

    __repr__ = __str__  # a notebook's plain text is the table too

    def _repr_html_(self) -> str:
        return as_html(self.table(), foot=2, title=self.title)

    def to_json(self) -> str:
        """JSON that `from_json` reads back into an equal ledger."""
        import json  # when asked for: most ledgers are only printed

        rows = [
            {"term": r.term} | {c: getattr(r, c) for c in self.columns} | {"why": r.why}
            for r in self.rows
        ]
        document = {"title": self.title, "unit": "bytes", "rows": rows}
        return json.dumps(document, ensure_ascii=False, indent=1)

    @classmethod
    def from_json(cls, words: str) -> Ledger:
        """Read what `to_json` wrote.

        Raises      ValueError for text that is not such a document
        """
        import json

        try:
            document = json.loads(words)
            return cls(document["title"], [Row(**row) for row in document["rows"]])
        except (KeyError, TypeError, json.JSONDecodeError) as error:
            raise ValueError(f"not a ledger in JSON: {error}") from error


@dataclass(frozen=True, repr=False)
class Comparison:
    """Two ledgers side by side: term, here, there, there minus here."""

    left: Ledger
    right: Ledger
    column: str

    def figures(self) -> list[tuple[str, int, int]]:
        """(term, left, right) for every term of either, then their totals."""
        # The ledger with more terms leads: its order is the one in which the other's make sense.
        most, rest = sorted((list(self.left), list(self.right)), key=len, reverse=True)
        terms = most + [term for term in rest if term not in most]

        def of(ledger: Ledger) -> dict[str, int]:
            return {row.term: getattr(row, self.column) or 0 for row in ledger.rows}

        a, b = of(self.left), of(self.right)
        pairs = [(term, a.get(term, 0), b.get(term, 0)) for term in terms]
        return [*pairs, ("total", sum(a.values()), sum(b.values()))]

    def table(self) -> Table:
        head = ["bytes", self.left.title, self.right.title, "difference"]
        return [head] + [[term, cell(x), cell(y), signed(y - x)] for term, x, y in self.figures()]

    def __str__(self) -> str:
        return as_text(self.table(), foot=1)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return as_html(self.table(), foot=1)

    def to_json(self) -> str:
        """The same figures as JSON, one object a term, the total last."""
        import json

        names = (self.left.title, self.right.title)
        rows = [{"term": term, names[0]: x, names[1]: y} for term, x, y in self.figures()]
        return json.dumps(rows, ensure_ascii=False, indent=1)


def _row(term: str, figures: Mapping[str, Any], why: str = "") -> Row:
    return Row(term, **figures, why=why)


def _known_column(column: str) -> None:
    if column not in COLUMNS:
        raise ValueError(f"unknown column {column!r}; known: {', '.join(COLUMNS)}")


def _combine(sign: int) -> Join:
    """A figure that one side lacks counts as nothing there; one that both lack stays missing."""

    def join(mine: Row, theirs: Row) -> Row:
        figures: dict[str, Any] = {}
        for column in COLUMNS:
            a, b = getattr(mine, column), getattr(theirs, column)
            figures[column] = None if a is None and b is None else (a or 0) + sign * (b or 0)
        return _row(mine.term, figures)

    return join
