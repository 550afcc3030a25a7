"""The archive of posted readings, research/posted, as its files hold it: rows and answers."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "research" / "posted"
ROWS, UNSEEN = FOLDER / "rows", FOLDER / "unseen"
COMMANDS, ANSWERS = FOLDER / "commands.json", FOLDER / "answers.json"
FIRST, DESCRIBED = FOLDER / "first.json", FOLDER / "described.json"
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

    @property
    def gpus(self):
        """How many GPUs the figure is the sum of."""
        return self.what.get("gpus", 1) if "sum" in self.counter else 1


@dataclass(frozen=True)
class Answer:
    """One reading and memlab's figure beside it.

    bytes       what memlab says; None where it refuses
    reason      why there is no figure, or why the row is not counted
    command     that was typed, and its figure; empty where no command asks for the reading, and of
                an answer with the source's own terms
    composed    whether those own terms add bytes to memlab's figure, beyond cuBLAS's workspaces
    traced      whether they have a trace of the source's code
    """

    reading: Reading
    bytes: int | None = None
    reason: str = ""
    command: str = ""
    composed: bool = False
    traced: bool = False

    @property
    def counted(self):
        """Whether the row stands in the statistics: it has a figure, and no rule takes it out."""
        return self.bytes is not None and not self.reason

    @property
    def error(self):
        """(predicted - posted) / posted, of a reading that has a figure."""
        assert self.bytes is not None
        return (self.bytes - self.reading.bytes) / self.reading.bytes


def sources(folder=ROWS):
    """The head of each file by its name: who, where, licence, date, what is not stated."""
    return {path.stem: loaded(path) for path in sorted(folder.glob("*.json"))}


def read(folder=ROWS):
    """All readings of a folder, source by source."""
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


def commands():
    """What one command said: (of sources that nobody had worked on, of the others)."""
    rows = loaded(COMMANDS)
    return tuple(
        [
            Answer(reading, size, reason, command, *added)
            for reading in read(folder)
            if reading.id in rows  # not memlab's own record, whose prediction is with it
            for command, size, reason, *added in [rows[reading.id]]
        ]
        for folder in (UNSEEN, ROWS)
    )


def answers():
    """What is said with each source's own terms, of the sources that were worked on."""
    rows = loaded(ANSWERS)
    return [Answer(reading, *rows[reading.id]) for reading in read()]


def unseen():
    """(first answers, today's) with own terms, of the sources that nobody had worked on."""
    rows = loaded(FIRST)
    told = [(reading, rows[reading.id]) for reading in read(UNSEEN)]
    return tuple([Answer(reading, *both[i]) for reading, both in told] for i in (0, -1))


def loaded(path):
    """What a file of the archive holds."""
    return json.loads(path.read_text(encoding="utf-8"))


def text(rows):
    """Rows by the reading's id as a file of the archive has them, a line each."""
    lines = [f" {json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def summary(found):
    """Of some answers: how many there are, have bytes, are counted; errors' median and worst.

    Shapes      (readings, answered, counted, median of the sizes, worst with its sign); None
                without a figure
    """
    errors = [a.error for a in found if a.counted]
    middle = median(map(abs, errors)) if errors else None
    told = sum(a.bytes is not None for a in found)
    return len(found), told, len(errors), middle, max(errors, key=abs, default=None)
