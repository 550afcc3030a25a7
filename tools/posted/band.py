"""What posted runs of training reserved beyond what their tensors held: the band of a verdict.

Rows        every reading of what a training step reserved whose peak of tensors was read in the
            same run, or else is derived by memlab from what the row states; rows whose tensors a
            trace of their own code has counted, or a mapping has put together, are left out. PEFT's
            rows state no length; it was read from the reserved bytes of one of them
Tensors     with cuBLAS's workspaces, as torch.cuda.max_memory_allocated counts them
Stored      book/posted-band.json: of each row both figures and who said the first; the number of
            rows, the median and the third quartile of the difference, in thousandths of the first

python tools/posted --band      ask for all of them again and store them
"""

import json
from dataclasses import replace
from statistics import quantiles

from . import answers, readings
from .described import Refused
from .unseen import answers as unseen

PATH = readings.ROOT / "book" / "posted-band.json"
ALLOCATED = "max_memory_allocated"


def rows():
    """{id of a reading: [bytes of tensors, "posted" or "derived", bytes reserved]}."""
    found = {}
    for which in (answers, unseen):
        read = readings.read() if which is answers else unseen.read()
        known = {reading.id: reading for reading in read}
        for reading in read:
            if reading.kind == "inference" or "reserved" not in reading.counter:
                continue
            beside = known.get(f"{reading.id}/allocated")
            if beside is not None and ALLOCATED in beside.counter:
                found[reading.id] = [beside.bytes, "posted", reading.bytes]
                continue
            try:
                said = which.MAPPINGS[reading.source].describe(reading)
                if said.figure == "reserved" and said.traced is None:
                    tensors = replace(said, figure="peak").bytes()
                    found[reading.id] = [tensors, "derived", reading.bytes]
            except (Refused, ValueError):  # ValueError: memlab itself refuses it
                continue
    return found


def band(found):
    """How many rows, and the median and the third quartile of what they reserved beyond."""
    more = [1000 * (reserved - held) / held for held, _, reserved in found.values()]
    _, middle, most = quantiles(more, n=4, method="inclusive")
    return {"runs": len(more), "median": round(middle), "three_in_four": round(most)}


def text(found):
    """What the file holds."""
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in found.items())
    return f'{{\n "band": {json.dumps(band(found))},\n "rows": {{\n{lines}\n }}\n}}\n'


def write():
    """Ask for all of them and store them."""
    PATH.write_text(text(rows()), encoding="utf-8")
