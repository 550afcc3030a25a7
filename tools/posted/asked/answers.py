"""All commands and what they answer: asked, stored in book/posted-commands.json, and read again."""

import json
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from statistics import median

from .. import answers as worked
from .. import readings
from ..described import Refused
from ..unseen import answers as unseen
from . import calls, training
from . import unseen as strangers
from .words import answer, figure

PATH = readings.ROOT / "book" / "posted-commands.json"
SOURCES = {
    "autoawq": calls.of_autoawq,
    "badam": strangers.refused("layers that are trained one block at a time"),
    "engine-logs": calls.of_engine_logs,
    "fsdp_qlora": strangers.of_fsdp_qlora,
    "gptq-for-llama": calls.of_gptq,
    "llama-factory": strangers.of_llama_factory,
    "llms-from-scratch": strangers.of_scratch,
    "octocoder": calls.of_octocoder,
    "qwen": strangers.of_qwen,
    "starcoder2": calls.of_starcoder2,
    "torchao-inference": strangers.of_torchao,
    "gpjt": training.of_gpjt,
    "litgpt": training.of_litgpt,
    "litgpt-tables": training.of_litgpt_tables,
    "megatron": training.of_megatron,
    "modded-nanogpt": strangers.refused("an architecture of its own, under torch.compile"),
    "optimum": calls.of_optimum,
    "peft": training.of_peft,
    "qwen3": calls.of_qwen3,
    "torchao": training.of_torchtitan,
    "torchtitan": training.of_torchtitan,
    "torchtune": training.of_torchtune,
    "vllm": calls.of_vllm,
}


@dataclass(frozen=True)
class Asked:
    """One reading, its command, and the figure that the command printed.

    command     empty where no command asks for the reading
    bytes       None where there is no figure; times the GPUs whose sum was posted
    reason      why there is none
    composed    whether the source's own mapping adds bytes to the product's figure, beyond
                cuBLAS's workspaces; traced: whether it has a trace of the source's code
    """

    reading: readings.Reading
    command: str = ""
    bytes: int | None = None
    reason: str = ""
    composed: bool = False
    traced: bool = False

    @property
    def counted(self):
        """Every answer is: no rule takes one out."""
        return self.bytes is not None

    @property
    def error(self):
        """(printed - posted) / posted, of a reading that has a figure."""
        assert self.bytes is not None
        return (self.bytes - self.reading.bytes) / self.reading.bytes


def line_of(reading):
    """(command, reason): one of the two."""
    try:
        return SOURCES[reading.source](reading), ""
    except Refused as refused:
        return "", str(refused)


def said(line):
    """What a command answers, or the reason why it does not."""
    try:
        return answer(line), ""
    except Refused as refused:
        return None, str(refused)


def asked(reading, mapping, line, reason, document):
    """One row; `mapping` is the source's own, which says what it adds by hand."""
    found = None
    if document is not None:
        try:
            found = figure(reading, document) * summed(reading)
        except Refused as refused:
            reason = str(refused)
    return Asked(reading, line, found, reason, *added(reading, mapping))


def summed(reading):
    """How many GPUs a posted figure is the sum of."""
    return reading.what.get("gpus", 1) if "sum" in reading.counter else 1


def added(reading, mapping):
    """(composed, traced) of the source's own mapping; see Asked."""
    try:
        said = mapping.describe(reading)
    except ValueError:
        return False, False
    more = [size for name, size in said.more if not name.startswith("cuBLAS workspace")]
    return said.figure == "nothing" or any(more), said.traced is not None


def every():
    """(reading, its source's own mapping), those that nobody had worked on first."""
    for found, mappings in ((unseen.read(), unseen.MAPPINGS), (readings.read(), worked.MAPPINGS)):
        for reading in found:
            if reading.source in SOURCES:  # not memlab's own record, whose prediction is with it
                yield reading, mappings[reading.source]


def write():
    """Ask all and store it: a line each with command, bytes, reason and what else Asked has."""
    told = [(reading, mapping, *line_of(reading)) for reading, mapping in every()]
    lines = list(dict.fromkeys(line for _, _, line, _ in told if line))
    with ProcessPoolExecutor() as pool:
        found = dict(zip(lines, pool.map(said, lines), strict=True))
    rows = []
    for reading, mapping, line, reason in told:
        document, refused = found[line] if line else (None, reason)
        a = asked(reading, mapping, line, refused, document)
        row = [a.command, a.bytes, a.reason, a.composed, a.traced]
        rows.append(f" {json.dumps(reading.id)}: {json.dumps(row)}")
    PATH.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")


def stored():
    """(of sources that nobody had worked on, of the others), as the file holds them."""
    rows = json.loads(PATH.read_text(encoding="utf-8"))
    return tuple(
        [Asked(reading, *rows[reading.id]) for reading in found if reading.id in rows]
        for found in (unseen.read(), readings.read())
    )


def middle(found):
    """(readings, figures, median of the sizes, worst with its sign); None without a figure."""
    errors = [a.error for a in found if a.counted]
    if not errors:
        return len(found), 0, None, None
    return len(found), len(errors), median(map(abs, errors)), max(errors, key=abs)
