"""What a chapter says of a real device: measured here, else read from a record, else nothing."""

from ..base.messages import say
from ..base.table import as_html, as_text
from ..files.records import Record, records
from ..measure import cuda

MISSING = "Not yet measured on a GPU."


class RecordedRows:
    """The rows of one chapter on a GPU, and where they come from; prints itself."""

    def __init__(self, found: list[Record]) -> None:
        self.found = found

    @property
    def holds(self) -> bool:
        """Whether every row is within its tolerance; true where there is none."""
        return not any(one.wrong for one in self.found)

    def __str__(self) -> str:
        tables = [f"{as_text(one.table())}\n{one.where}" for one in self.found]
        return "\n\n".join(tables) or say(MISSING)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        tables = (as_html(one.table(), title=one.where.replace("`", "")) for one in self.found)
        return "".join(tables) or f"<p>{say(MISSING)}</p>"


def beside(term: str) -> RecordedRows:
    """The chapter's own rows of `memlab record` on a CUDA device.

    term        the label of a chapter, such as "activations"
    Here        where this machine has such a device they are measured now; elsewhere they are those
                of the committed records; where there are none it says "Not yet measured on a GPU."
    Setting     MEMLAB_DEVICE=cpu hides the device: pages are then the same on every machine
    Raises      ValueError for a label that no row has
    """
    everything = records()
    known = sorted({row.term for one in everything for row in one.rows})
    if known and term not in known:
        raise ValueError(f"no row is about {term!r}; known: {', '.join(known)}")
    if cuda.available():
        return RecordedRows([_here(term)])
    found = [one.about(term) for one in everything if one.kind == "cuda"]
    return RecordedRows([one for one in found if one.rows])


def _here(term: str) -> Record:
    from .suite import cases  # a chapter without a device needs none of this
    from .write import recorded

    mine = [case for case in cases() if term in case.terms.values()]
    return recorded(mine, "cuda", f"beside({term!r})").about(term)
