"""What memlab said of the readings that it had not seen: the first answer, and today's."""

import json
import re

from .. import readings
from ..answers import Answer
from ..described import Refused
from . import (
    autoawq,
    engine_logs,
    factory,
    fsdp_qlora,
    gptq,
    qwen,
    refused,
    scratch,
    starcoder2,
    torchao,
)

FOLDER = readings.FOLDER / "unseen"
PATH = readings.ROOT / "book" / "posted-unseen.json"
MAPPINGS = {
    "autoawq": autoawq,
    "badam": refused,
    "engine-logs": engine_logs,
    "fsdp_qlora": fsdp_qlora,
    "gptq-for-llama": gptq,
    "llama-factory": factory,
    "llms-from-scratch": scratch,
    "octocoder": refused,
    "qwen": qwen,
    "starcoder2": starcoder2,
    "torchao-inference": torchao,
}


def read():
    """The readings, source by source."""
    return readings.read(FOLDER)


def answer(reading):
    """See posted.answers.Answer. Every answer is counted: no rule takes one out.

    What memlab itself refuses is refused in its words.
    """
    try:
        return Answer(reading, MAPPINGS[reading.source].describe(reading).bytes())
    except Refused as refused:
        return Answer(reading, None, str(refused))
    except ValueError as error:
        words = re.sub(r"=Lora\(.*\)(?= is not)", "", str(error))
        return Answer(reading, None, f"memlab refuses it: {words}")


def text(found):
    """What the file holds: of each reading its first answer, and today's where it is another one.

    A reading that has a first answer keeps it.
    """
    old = json.loads(PATH.read_text(encoding="utf-8")) if PATH.exists() else {}
    lines = []
    for a in found:
        said = [a.bytes, a.reason]
        first = old.get(a.reading.id, [said])[0]
        both = [first] if first == said else [first, said]
        lines.append(f" {json.dumps(a.reading.id)}: {json.dumps(both)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def stored():
    """(first answers, today's) that the file holds, in the order of the readings.

    Raises      KeyError for a reading that it does not have
    """
    rows = json.loads(PATH.read_text(encoding="utf-8"))
    told = [(reading, rows[reading.id]) for reading in read()]
    first = [Answer(reading, *both[0]) for reading, both in told]
    return first, [Answer(reading, *both[-1]) for reading, both in told]


def write():
    """Answer all of them and store it."""
    PATH.write_text(text([answer(reading) for reading in read()]), encoding="utf-8")
