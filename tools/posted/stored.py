"""The answers as `python tools/posted --write` stored them, for the page and for its test."""

import json

from .answers import Answer
from .readings import ROOT, read

PATH = ROOT / "book" / "posted-errors.json"


def text(found):
    """What the file holds: of each reading the predicted bytes, and why it is not counted."""
    rows = {a.reading.id: [a.bytes, a.reason] for a in found}
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(said)}" for name, said in rows.items())
    return "{\n" + lines + "\n}\n"


def stored():
    """The answers that the file holds, in the order of the readings.

    Raises      KeyError for a reading that it does not have
    """
    rows = json.loads(PATH.read_text(encoding="utf-8"))
    return [Answer(reading, *rows[reading.id]) for reading in read()]
