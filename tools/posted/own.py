"""What `memlab record` measured on a GPU, as readings of this page: our own beside the others.

A row of a record has its prediction with it, made without the device, and no mapping is needed to
find it again. Rows that were skipped or failed are no readings, and rows without a prediction are
none that memlab could be held to.
"""

import json
from pathlib import Path
from typing import Any

from memlab import Model, Recipe, Run
from memlab.files.records import read as read_record

from .described import Described

# The first part of a row's name, where it is a call; all others are of training.
CALLS = ("kv-cache", "loading", "decode", "prefill")
COUNTERS = {"requested": "bytes that tensors ask for", "allocated": "torch.cuda.memory_allocated"}
COUNTERS |= {"reserved": "torch.cuda.memory_reserved"}


def source(path):
    """A file of book/posted, made of a record."""
    record = read_record(Path(path))
    every: dict[str, Any] = {
        "commit": record.commit.split()[0][:9],
        "path": Path(path).name,
        "unit": "B",
    }
    every |= {"device": record.device, "what": {"torch": record.torch, "command": record.command}}
    return {
        "source": "memlab: its own record",
        "repository": "memlab",
        "licence": "MIT",
        "date": record.date,
        "not_stated": ["what else ran on the device"],
        "every": every,
        "readings": [_reading(row) for row in record.rows if row.predicted and row.found],
    }


def text(path):
    """The same as text, a reading a line."""
    found = source(path)
    lines = [f"  {json.dumps(row, ensure_ascii=False)}" for row in found.pop("readings")]
    head = json.dumps(found, indent=1, ensure_ascii=False)[:-2]
    return f'{head},\n "readings": [\n' + ",\n".join(lines) + "\n ]\n}\n"


def describe(reading):
    """The prediction that the record has with the row; the model is not told again."""
    tiny = Model.preset("tiny-llama")
    return Described(tiny, Recipe.named("fp32"), Run(), "record", traced=reading.what["predicted"])


def _reading(row):
    call = row.name.split("/")[0].startswith(CALLS)
    return {
        "id": f"memlab/{row.name}",
        "kind": "inference" if call else "train-1gpu",
        "what": {"what": row.what, "by": row.by, "predicted": row.predicted},
        "printed": row.found,
        "bytes": row.found,
        "counter": COUNTERS[row.compared],
    }
