"""The readings as they stand in book/posted: one file a source, one object a reading."""

import json
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "book" / "posted"
# A source's file, in the order of the page.
KINDS = {
    "train-1gpu": "training, one GPU",
    "resident-1gpu": "training, one GPU",
    "inference": "inference",
    "fsdp/ddp": "several GPUs",
    "resident-sharded": "several GPUs",
}


@dataclass(frozen=True)
class Reading:
    """One figure that somebody printed, with what was said of the run.

    source      the name of the file: peft, litgpt, ...
    kind        the class of the run; KINDS has the page's word for each
    what        the recipe as far as it was stated
    bytes       the figure
    counter     what was read: allocated, reserved, the moment
    """

    id: str
    source: str
    kind: str
    device: str
    what: dict = field(hash=False)
    bytes: int
    counter: str
    not_stated: str

    @property
    def group(self):
        """The class that a reader would ask for."""
        return KINDS[self.kind]


def sources(folder=None):
    """The head of each file by its name: who, where, licence, date, what is not stated."""
    heads = {}
    for path in sorted((folder or FOLDER).glob("*.json")):
        heads[path.stem] = json.loads(path.read_text(encoding="utf-8"))
    return heads


def read(folder=None):
    """All readings, source by source."""
    found = []
    for name, head in sources(folder).items():
        every = head["every"]
        for row in head["readings"]:
            told = every | row
            what = every["what"] | row["what"]
            found.append(
                Reading(
                    id=row["id"],
                    source=name,
                    kind=told["kind"],
                    device=told["device"],
                    what=what,
                    bytes=told["bytes"],
                    counter=told["counter"],
                    not_stated=told.get("not_stated", ""),
                )
            )
    return found
