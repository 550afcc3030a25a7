"""Damaged files for everything that reads files from strangers; `tools/fuzz.py` feeds them.

Targets: memory snapshots, config.json, timelines of `memlab watch`, records of `memlab record`. A
reader may refuse with a ValueError of one line, or a TypeError where a value is of a wrong kind, as
the command line prints them; anything else is a finding.
"""

import json
import pickle
import random
import warnings
from collections.abc import Callable
from pathlib import Path

from memlab.files.records import read as read_record
from memlab.files.snapshots import read_snapshot
from memlab.files.timelines import read_timeline
from memlab.model import Model

FRAMES = [{"filename": "train.py", "line": 7, "name": "main"}]
BLOCK = {"address": 0, "size": 1024, "requested_size": 1000, "state": "active_allocated"}
SNAPSHOT = {
    "segments": [
        {
            "device": 0,
            "address": 0,
            "total_size": 2048,
            "segment_type": "small",
            "blocks": [BLOCK | {"frames": FRAMES}, BLOCK | {"state": "inactive"}],
        }
    ],
    "device_traces": [
        [
            {"action": "alloc", "addr": 0, "size": 1024, "stream": 0, "frames": FRAMES},
            {"action": "free_requested", "addr": 0, "size": 1024, "stream": 0, "frames": []},
            {"action": "free_completed", "addr": 0, "size": 1024, "stream": 0, "frames": []},
        ]
    ],
    "allocator_settings": {"expandable_segments": False},
    "external_annotations": [],
}
CONFIG = {
    "model_type": "llama",
    "hidden_size": 128,
    "intermediate_size": 352,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 256,
    "max_position_embeddings": 256,
    "tie_word_embeddings": False,
    "rope_scaling": {"rope_type": "linear", "factor": 2.0},
    "hidden_act": "silu",
}
TIMELINE = {
    "memlab_timeline": 1,
    "command": ["python", "train.py"],
    "started": "2026-01-01T00:00:00+00:00",
    "source": "process",
    "device": None,
    "total_bytes": 2**34,
    "samples": [[0.0, 1000, None], [0.1, 2000, None]],
    "events": [{"at": 0.1, "kind": "exit", "code": 0}],
    "peak_bytes": 2000,
    "exit": 0,
}
RECORD = {
    "kind": "cpu",
    "device": "a CPU",
    "driver": None,
    "torch": "2.13.0",
    "rows": [{"name": "weights", "derived": 1, "traced": 1, "measured": 1}],
}
ODD: list = [
    None,
    True,
    -1,
    0,
    1,
    2**70,
    -(2**63),
    1e308,
    0.5,
    "",
    "x" * 50,
    "\ud800",
    "\x00",
    [],
    {},
]
ODD += [[[]], {"a": {}}, "1 GiB", "NaN", [None], 3]


def family(rng):
    """The config of some family."""
    from memlab.model.config import KEYS

    return CONFIG | {"model_type": rng.choice([*KEYS, "unknown"])}


def record(rng):
    """A record that stands in the book if there is one, else something like it."""
    found = sorted(Path(__file__).parent.parent.glob("src/memlab/data/records/*.json"))
    return json.loads(rng.choice(found).read_text(encoding="utf-8")) if found else RECORD


TARGETS: dict[str, tuple[Callable, Callable]] = {
    "snapshot": (lambda rng: SNAPSHOT, read_snapshot),
    "config": (family, Model.from_config),
    "timeline": (lambda rng: TIMELINE, read_timeline),
    "record": (record, read_record),
}


def changed(value, rng):
    """The same value with one place in it replaced, dropped or doubled."""
    if rng.random() < 0.3 or not isinstance(value, dict | list) or not value:
        return rng.choice(ODD)
    if isinstance(value, dict):
        key = rng.choice(list(value))
        if rng.random() < 0.2:
            return {k: v for k, v in value.items() if k != key}
        return value | {key: changed(value[key], rng)}
    place = rng.randrange(len(value))
    if rng.random() < 0.2:
        return value[:place] + value[place + 1 :] + 2 * value[place : place + 1]
    return [*value[:place], changed(value[place], rng), *value[place + 1 :]]


def damaged(data, rng):
    """The same bytes with some of them cut off, overwritten, inserted or repeated."""
    made = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        at, size = rng.randrange(len(made) + 1), rng.randint(0, 6)
        piece = rng.choice([rng.randbytes(size), bytes(made[at : at + size]) * 2, b""])
        made[at : at + rng.randint(0, 6)] = piece
    return bytes(made[: rng.randrange(len(made) + 1)]) if rng.random() < 0.3 else bytes(made)


def case(kind, rng):
    """The bytes of one damaged file."""
    value = TARGETS[kind][0](rng)
    for _ in range(rng.choice([0, 1, 1, 2, 4])):
        value = changed(value, rng)
    if kind == "snapshot":
        data = pickle.dumps(value, rng.choice([2, 3, 4, 5]))
    else:
        data = json.dumps(value, indent=rng.choice([None, 1])).encode()
    return damaged(data, rng) if rng.random() < 0.5 else data


def attempt(kind, seed, folder):
    """None, or what a reader did that it must not."""
    path = Path(folder, f"fuzz-{kind}")
    path.write_bytes(case(kind, random.Random(seed)))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            TARGETS[kind][1](str(path))
    except (ValueError, TypeError) as error:
        ours = isinstance(error, ValueError) or kind == "config"  # Model's fields have types
        if not ours:
            return f"TypeError: {error}"
        return f"more than one line: {error}" if "\n" in str(error) else None
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None
