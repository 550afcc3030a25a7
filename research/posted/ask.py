"""Ask again what is stored: what memlab says of runs whose bytes other people posted.

python research/posted/ask.py               every reading: its command, and how far its figure is
                                            off; at the end what would be stored otherwise
python research/posted/ask.py --write       store all of it, the band, the picture and README's
                                            sentence; some minutes. First answers stay
python research/posted/ask.py --tables      print the tables of the pages, from what is stored
python research/posted/ask.py --scripts FOLDER [--write]    rehearse again the sources' own
                                            scripts, which are not in this repository; minutes
python research/posted/ask.py --record FILE     print what `memlab record` wrote as a file of rows

Alone       commands.json has one command a reading, as a user who reads the row would type it, and
            `figure` takes the one number of its answer that the counter read. Nothing is added
Own terms   described.json has what a page of code for each source made of its rows, and the reason
            where it refused: model, recipe and run in memlab's words, what was read of them, bytes
            of what memlab.Run has no word for, by name (`more`), how many ranks were summed
            (`times`). `traced` are bytes of a trace of the source's own code, in the place of a
            figure of the model's own. That code, with its sources, is in this repository's history:
            git log -- tools/posted
Band        what runs of training reserved beyond what their tensors held, as memlab.verdict has it:
            rows whose tensors were read in the same run, or else are derived; of each both figures
            in bytes, and the median and third quartile of the difference in thousandths

Long, for it is all that asks, in one place.
"""

import io
import json
import re
import shlex
import sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from statistics import quantiles
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from posted import page, picture, readings, scripts  # noqa: E402
from posted.readings import Answer, loaded  # noqa: E402

from memlab import Model, Recipe, Run, presets  # noqa: E402
from memlab.base.not_described import NotDescribed  # noqa: E402
from memlab.cli import main as memlab  # noqa: E402
from memlab.cli import rehearsed  # noqa: E402
from memlab.cli.simulated import simulated  # noqa: E402
from memlab.estimate import estimate  # noqa: E402
from memlab.files.records import read as read_record  # noqa: E402
from memlab.run.lower_bound import least  # noqa: E402
from memlab.step.core.allocator_replay import replayed  # noqa: E402

BAND = readings.FOLDER / "band.json"
PEAKS = ("peak", "allocated", "reserved", "step")
# Of a record: the first part of a row's name, where it is a call; all others are of training.
CALLS = ("kv-cache", "loading", "decode", "prefill")
COUNTERS = {"requested": "bytes that tensors ask for", "allocated": "torch.cuda.memory_allocated"}
COUNTERS |= {"reserved": "torch.cuda.memory_reserved"}


class Refused(ValueError):
    """memlab cannot say what this run holds; the message is the reason."""


@dataclass(frozen=True)
class Described:
    """A row of described.json.

    figure      peak: of the tensors in a step or a call; allocated, reserved: of the allocator's
                blocks and segments; resident: what stays, without a step; step: the same of a step
                whose activations are in `more`; cache: what a call leaves in it; a term's name:
                that row; nothing: `more` has all
    stage       of a pipeline, whose last rank is the one that logs
    rule        why the row is not counted though it has a figure
    """

    model: Model
    recipe: Recipe
    run: Run
    figure: str = "peak"
    stage: int | None = None
    more: tuple[tuple[str, int], ...] = ()
    traced: int | None = None
    times: int = 1
    rule: str = ""

    def bytes(self):
        """What memlab says of the counter.

        Raises      ValueError for a run that is not described
        """
        own = self.traced
        if own is None:
            own = _own(self.model, self.recipe, self.run, self.figure, self.stage)
        return self.times * (own + sum(size for _, size in self.more))

    def floor(self):
        """Bytes that a peak of this run cannot lie below; 0 of a figure that is none of a step."""
        if self.figure not in PEAKS:
            return 0
        return sum(least(self.model, self.recipe, self.run).values())

    @property
    def composed(self):
        """Whether bytes are added to the product's figure, beyond cuBLAS's workspaces."""
        more = [size for name, size in self.more if not name.startswith("cuBLAS workspace")]
        return self.figure == "nothing" or any(more) or self.times > 1


@lru_cache(maxsize=512)
def _own(model, recipe, run, figure, stage):
    if figure in ("allocated", "reserved"):
        return getattr(replayed(model, recipe, run), figure)
    if figure == "cache":
        return simulated(model, recipe, run).held_contents["after_call"]["kv_cache"]
    if figure == "nothing":
        return 0
    if figure == "step":
        run = Run(devices=run.devices)
    ledger = estimate(model, recipe, run, stage=stage)
    return ledger.total() if figure in ("peak", "resident", "step") else ledger[figure].derived


@cache
def _stored():
    return loaded(readings.DESCRIBED)


def described(reading):
    """The row of a reading; of memlab's own record the prediction that stands with it.

    Raises      Refused
    """
    row = dict(_stored()["rows"].get(reading.id, {}))
    if reading.source == "memlab":
        row = {"model": "tiny-llama", "recipe": "fp32", "traced": reading.what["predicted"]}
    if not row or "refused" in row:
        raise Refused(row.get("refused", "nobody has described it"))
    name = row.pop("model")
    model = Model.preset(name) if name in presets() else Model(**_stored()["models"][name])
    recipe = row.pop("recipe")
    told: dict = {"named": recipe} if isinstance(recipe, str) else dict(recipe)
    known = Recipe.named(told.pop("named")) if "named" in told else None
    recipe = Recipe(**told) if known is None else known.replace(**told) if told else known
    more = tuple((name, size) for name, size in row.pop("more", ()))
    return Described(model, recipe, Run.from_dict(row.pop("run", {})), more=more, **row)


def own(reading, *, unseen=False):
    """What is said with the source's own terms. Rules take out rows of sources that were worked on.

    What memlab itself refuses is refused in its words.
    """
    try:
        said = described(reading)
        found = said.bytes()
    except Refused as refused:
        return Answer(reading, None, str(refused))
    except ValueError as error:
        return Answer(reading, None, f"memlab refuses it: {error}")
    if not unseen and said.floor() > reading.bytes:
        return Answer(reading, found, f"cannot be: its own recipe needs {said.floor():,} B")
    return Answer(reading, found, said.rule)


@lru_cache(maxsize=2048)
def answer(line):
    """(what the command prints, ""), or (None, what it says where it has no answer).

    It runs through the real command line, from the project's root. What is not described stays
    refused: the page is about what memlab derives, and a rehearsal is another answer.
    """

    def refuse(*given, **_):
        raise next(each for each in given if isinstance(each, NotDescribed))

    said, wrong = io.StringIO(), io.StringIO()
    try:
        derived = patch.object(rehearsed, "answer", refuse)
        with derived, chdir(readings.ROOT), redirect_stdout(said), redirect_stderr(wrong):
            status = memlab(shlex.split(line)[1:])
    except SystemExit as stopped:  # argparse: no such option
        status = bool(stopped.code)
    if status:  # every stored command asks for JSON, and so its refusal is a document, too
        return None, json.loads(wrong.getvalue())["message"]
    return json.loads(said.getvalue()), ""


def figure(reading, said):
    """The one figure of an answer that the counter of a reading reads, in bytes.

    Weights     a counter of weights alone: that row
    Resident    read between steps: held.between_steps; of an answer without a step all its rows
    Reserved    what the allocator reserves in its replay
    Others      `memory_allocated`, `active_bytes`, and every counter that has no name: what the
                allocator hands out in its replay
    No replay   the peak of the step
    Sum         of several GPUs: once for each of them
    Raises      Refused where the answer has none of them
    """
    counter, rows = reading.counter, said["rows"]
    if re.search("weights|footprint|loading", counter) or reading.what.get("moment"):
        found = rows["weights"]
    elif reading.kind.startswith("resident"):
        held = said.get("held") or {}
        found = held.get("between_steps") or sum(filter(None, rows.values()))
    elif said.get("allocator"):
        reserved = "reserved" in counter and "allocated" not in counter
        found = said["allocator"]["reserved" if reserved else "allocated"]
    elif said.get("peak"):
        found = said["peak"]["bytes"]
    else:
        raise Refused("the answer has no peak")
    return found * reading.gpus


def asked(before):
    """The answer of a command, asked again; one without a command keeps its reason."""
    reading, found, reason = before.reading, None, before.reason
    if before.command:
        document, reason = answer(before.command)
        if document is not None:
            try:
                found = figure(reading, document)
            except Refused as refused:
                reason = str(refused)
    try:
        said = described(reading)
    except ValueError:
        return replace(before, bytes=found, reason=reason)
    flags = {"composed": said.composed, "traced": said.traced is not None}
    return replace(before, bytes=found, reason=reason, **flags)


def band_rows():
    """{id of a reading: [bytes of tensors, "posted" or "derived", bytes reserved]}."""
    found = {}
    for read in (readings.read(), readings.read(readings.UNSEEN)):
        known = {reading.id: reading for reading in read}
        for reading in read:
            if reading.kind == "inference" or "reserved" not in reading.counter:
                continue
            beside = known.get(f"{reading.id}/allocated")
            if beside is not None and "max_memory_allocated" in beside.counter:
                found[reading.id] = [beside.bytes, "posted", reading.bytes]
                continue
            try:
                said = described(reading)
                if said.figure == "reserved" and said.traced is None:
                    tensors = replace(said, figure="peak").bytes()
                    found[reading.id] = [tensors, "derived", reading.bytes]
            except ValueError:  # Refused, and what memlab itself refuses
                continue
    return found


def band(found):
    """How many rows, and the median and the third quartile of what they reserved beyond."""
    more = [1000 * (reserved - held) / held for held, _, reserved in found.values()]
    _, middle, most = quantiles(more, n=4, method="inclusive")
    return {"runs": len(more), "median": round(middle), "three_in_four": round(most)}


def files():
    """{path: its text}, with everything asked again; both cores work."""
    alone = [a for found in readings.commands() for a in found]
    with ProcessPoolExecutor() as pool:
        alone = list(pool.map(asked, alone, chunksize=8))
        worked = list(pool.map(own, readings.read(), chunksize=8))
        new = [pool.submit(own, each, unseen=True) for each in readings.read(readings.UNSEEN)]
        fresh = [future.result() for future in new]
    commands = {a.reading.id: [a.command, a.bytes, a.reason, a.composed, a.traced] for a in alone}
    first = loaded(readings.FIRST)
    for a in fresh:
        said = [a.bytes, a.reason]
        kept = first.get(a.reading.id, [said])[0]
        first[a.reading.id] = [kept] if kept == said else [kept, said]
    rows = band_rows()
    held = f'{{\n "band": {json.dumps(band(rows))},\n "rows": '
    held += readings.text(rows).replace("\n", "\n ").rstrip() + "\n}\n"
    return {
        readings.COMMANDS: readings.text(commands),
        readings.ANSWERS: readings.text({a.reading.id: [a.bytes, a.reason] for a in worked}),
        readings.FIRST: readings.text(first),
        BAND: held,
    }


def record(path):
    """What `memlab record` measured as a file of rows, those that have a prediction and a figure.

    The prediction, made without the device, stands with each row.
    """
    record = read_record(Path(path))
    every: dict = {"commit": record.commit.split()[0][:9], "path": Path(path).name, "unit": "B"}
    every |= {"device": record.device, "what": {"torch": record.torch, "command": record.command}}
    head = {
        "source": "memlab: its own record",
        "repository": "memlab",
        "licence": "MIT",
        "date": record.date,
        "not_stated": ["what else ran on the device"],
        "every": every,
    }
    rows = [
        {
            "id": f"memlab/{row.name}",
            "kind": "inference" if row.name.split("/")[0].startswith(CALLS) else "train-1gpu",
            "what": {"what": row.what, "by": row.by, "predicted": row.predicted},
            "printed": row.found,
            "bytes": row.found,
            "counter": COUNTERS[row.compared],
        }
        for row in record.rows
        if row.predicted and row.found
    ]
    lines = ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}" for row in rows)
    return (
        json.dumps(head, indent=1, ensure_ascii=False)[:-2]
        + f',\n "readings": [\n{lines}\n ]\n}}\n'
    )


def main(arguments):
    if arguments[:1] == ["--record"]:
        print(record(arguments[1]), end="")
        return
    if arguments[:1] == ["--scripts"]:
        try:
            scripts.main(arguments[1:])
        except ValueError as wrong:
            sys.exit(str(wrong))
        return
    if arguments == ["--tables"]:
        print(page.tables())
        return
    found = files()
    if arguments == ["--write"]:
        for path, text in found.items():
            path.write_text(text, encoding="utf-8")
        picture.PATH.write_text(picture.picture(), encoding="utf-8")
        page.README.write_text(page.readme(), encoding="utf-8")
        return
    for name, (command, size, reason, *_) in json.loads(found[readings.COMMANDS]).items():
        print(f"{name}\n    {command or '-'}\n    {reason or size}")
    for path, text in found.items():
        old = path.read_text(encoding="utf-8").splitlines()
        for line in sorted(set(text.splitlines()) - set(old)):
            print(f"{path.name} would have {line}")


if __name__ == "__main__":
    main(sys.argv[1:])
