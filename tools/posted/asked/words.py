"""One command line, its answer, and the figure of the answer that a counter reads."""

import io
import json
import os
import re
from contextlib import redirect_stderr, redirect_stdout
from functools import lru_cache

from memlab import Model, presets
from memlab.cli import main
from memlab.model.config import UnknownFamily

from ..described import Refused
from ..readings import ROOT

CONFIGS = "book/posted/configs"


def command(model, **options):
    """The line: an option for each thing that is stated; what is None or False is not said.

    model       a preset, or the name of a file in CONFIGS
    """
    config = model if model in presets() else f"{CONFIGS}/{model}.json"
    steps = options.get("tokens") is not None and not options.get("engine")
    words = ["memlab", "trace" if steps and not described(config) else "estimate", config]
    for name, value in options.items():
        if value is None or value is False:
            continue
        words.append("--" + name.replace("_", "-"))
        if value is not True:
            said = ",".join(value) if isinstance(value, tuple) else str(value)
            words.append(f"'{said}'" if " " in said else said)
    return " ".join([*words, "--json"])


@lru_cache(maxsize=64)
def described(config):
    """Whether memlab has a closed form of this model."""
    if config in presets():
        return True
    try:
        Model.from_config(ROOT / config)
    except UnknownFamily:
        return False
    return True


@lru_cache(maxsize=1024)
def answer(line):
    """What the command prints, run through the real command line from the project's root.

    Raises      Refused with what it says where it has no answer
    """
    words = [word.strip("'") for word in re.findall(r"'[^']*'|\S+", line)][1:]
    here, said, wrong = os.getcwd(), io.StringIO(), io.StringIO()
    try:
        os.chdir(ROOT)
        with redirect_stdout(said), redirect_stderr(wrong):
            status = main(words)
    except SystemExit as stopped:  # argparse: no such option
        status = bool(stopped.code)
    finally:
        os.chdir(here)
    if status:
        raise Refused(wrong.getvalue().strip().splitlines()[-1].split("memlab: ")[-1])
    return json.loads(said.getvalue())


def figure(reading, said):
    """The one figure of an answer that the counter of a reading reads, in bytes.

    Weights     a counter of weights alone: that row
    Resident    read between steps: held.between_steps; of an answer without a step all its rows
    Reserved    what the allocator reserves in its replay
    Others      `memory_allocated`, `active_bytes`, and every counter that has no name: what the
                allocator hands out in its replay
    No replay   the peak of the step
    Raises      Refused where the answer has none of them
    """
    counter, rows = reading.counter, said["rows"]
    if re.search("weights|footprint|loading", counter) or reading.what.get("moment"):
        return rows["weights"]
    if reading.kind.startswith("resident"):
        held = said.get("held") or {}
        return held.get("between_steps") or sum(filter(None, rows.values()))
    if said.get("allocator"):
        reserved = "reserved" in counter and "allocated" not in counter
        return said["allocator"]["reserved" if reserved else "allocated"]
    if not said.get("peak"):
        raise Refused("the answer has no peak")
    return said["peak"]["bytes"]
