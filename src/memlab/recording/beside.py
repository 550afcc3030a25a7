"""What a chapter says of a real device: measured here, else read from a record, else nothing."""

from ..measure import cuda
from ..records import Record, records
from ..table import as_html, as_text

MISSING = "Not yet measured on a GPU."


class Beside:
    """The rows of one chapter on a GPU, and where they come from; prints itself."""

    def __init__(self, found: list[Record]) -> None:
        self.found = found

    @property
    def holds(self) -> bool:
        """Whether every row is within its tolerance; true where there is none."""
        return not any(one.wrong for one in self.found)

    def __str__(self) -> str:
        return "\n\n".join(f"{as_text(one.table())}\n{one.where}" for one in self.found) or MISSING

    __repr__ = __str__

    def _repr_html_(self) -> str:
        tables = (as_html(one.table(), title=one.where.replace("`", "")) for one in self.found)
        return "".join(tables) or f"<p>{MISSING}</p>"


def beside(term: str) -> Beside:
    """The chapter's own rows of `memlab record` on a CUDA device.

    term        the label of a chapter, such as "activations"
    Here        where this machine has such a device they are measured now; elsewhere they are those
                of the committed records; where there are none it says "Not yet measured on a GPU."
    Setting     MEMLAB_DEVICE=cpu hides the device: pages are then the same on every machine
    Raises      ValueError for a label that no row has
    """
    from .suite import cases

    mine = [case for case in cases() if term in case.terms.values()]
    if not mine:
        known = sorted({label for case in cases() for label in case.terms.values()})
        raise ValueError(f"no row is about {term!r}; known: {', '.join(known)}")
    if cuda.available():
        from .write import recorded

        return Beside([recorded(mine, "cuda", f"beside({term!r})").about(term)])
    found = [one.about(term) for one in records("cuda")]
    return Beside([one for one in found if one.rows])
