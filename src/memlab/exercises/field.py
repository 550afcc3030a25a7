"""A field of the page: JSON in, JSON out, around the judge that a notebook's cell asks.

The page's engine runs this file. It has no torch and no chapter: of an exercise it is given the
answer and what typical slips give, each as the text of a whole number or of a ratio.
"""

from __future__ import annotations

import json

from ..base import message
from .judge import RIGHT, WAITS, judged, read
from .number import number_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .number import Ratio


def answered(asked: str) -> str:
    """The mark and the sentence for what stands in a field, as JSON.

    Shapes      asked: JSON of {readings, right, unit, hint, wrong}; readings: what was typed, in
                each way that the page's language may mean it: "1.024" is 1024 in Portuguese, and
                code everywhere; the first that is right counts, else the first that is a number
    """
    given = json.loads(asked)
    right = _ratio(given["right"])
    wrong = [(_ratio(value), sentence) for value, sentence in given["wrong"]]
    best = given["readings"][-1]
    for text in reversed(given["readings"]):
        if read(text, given["unit"]) is not None:
            best = text
    for text in given["readings"] + [best]:
        told = judged(text, right, given["unit"], given["hint"], wrong)
        if told[0] in (RIGHT, WAITS):
            break
    return message.dumps(told)


def _ratio(text: str) -> Ratio:
    found = number_in(text)
    if found is None:
        raise ValueError(f"{text!r} is no number of an exercise")
    return found
