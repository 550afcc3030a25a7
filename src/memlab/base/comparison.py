"""Two ledgers side by side: what each term has here and there, and the difference."""

from __future__ import annotations

from .frozen import dataclass
from .table import Table, as_html, as_text, cell, signed

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from ..ledger import Ledger


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
