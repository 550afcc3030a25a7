"""What memlab says of every reading: its bytes and error, or the reason why there are none."""

from dataclasses import dataclass
from statistics import median

from . import (
    gpjt,
    litgpt,
    litgpt_tables,
    megatron,
    modded,
    optimum,
    own,
    peft,
    qwen3,
    readings,
    torchtitan,
    torchtune,
    vllm,
)
from .described import Refused
from .floor import floor

MAPPINGS = {
    "peft": peft,
    "litgpt": litgpt,
    "litgpt-tables": litgpt_tables,
    "torchtune": torchtune,
    "torchtitan": torchtitan,
    "torchao": torchtitan,
    "modded-nanogpt": modded,
    "gpjt": gpjt,
    "megatron": megatron,
    "qwen3": qwen3,
    "optimum": optimum,
    "vllm": vllm,
    "memlab": own,  # as soon as a record of a GPU lies in book/posted
}


@dataclass(frozen=True)
class Answer:
    """One reading and memlab's figure beside it.

    bytes       what memlab predicts; None where it refuses
    reason      why there is no figure, or why the row is not counted
    counted     whether the row stands in the statistics: it has a figure, nothing was read from it,
                and it does not contradict its own recipe
    """

    reading: readings.Reading
    bytes: int | None = None
    reason: str = ""

    @property
    def counted(self):
        return self.bytes is not None and not self.reason

    @property
    def error(self):
        """(predicted - posted) / posted, of a reading that has a figure."""
        assert self.bytes is not None
        return (self.bytes - self.reading.bytes) / self.reading.bytes


def answer(reading):
    """See Answer."""
    try:
        said = MAPPINGS[reading.source].describe(reading)
        found = said.bytes()
    except Refused as refused:
        return Answer(reading, None, str(refused))
    least = floor(said)
    if least > reading.bytes:
        return Answer(reading, found, f"cannot be: its own recipe needs {least:,} B")
    if reading.id in peft.READ_FROM:
        return Answer(reading, found, "a length was read from it")
    return Answer(reading, found)


def answers():
    """All of them, in the order of the files."""
    return [answer(reading) for reading in readings.read()]


def summary(found):
    """Of some answers: how many there are, refused, not counted, and the errors' median and worst.

    Shapes      (readings, answered, counted, median of the sizes, worst with its sign)
    """
    told = [a for a in found if a.bytes is not None]
    errors = [a.error for a in found if a.counted]
    middle = median(abs(e) for e in errors) if errors else None
    worst = max(errors, key=abs) if errors else None
    return len(found), len(told), len(errors), middle, worst
