"""What titles of ledgers say: patterns, with a name in braces for what differs.

A title is a message (memlab.base.message), so that a language has its pattern and its values apart.
"""

from __future__ import annotations

from .message import Listed, Message

AT_PEAK = "{what}: the peak"
BETWEEN = "{what}: what stays between two steps"
FROM_STEP_TO_STEP = "{what}: what stays from step to step"
AFTER_A_CALL = "{what}: after a call of {phase}, {tokens} tokens read"
MOMENTS = ("forward", "loss", "backward", "optimizer")
IN = {moment: f"{{what}}: the peak, in {moment}" for moment in MOMENTS}
IN_OPERATION = {moment: f"{{what}}: the peak, in {moment} ({{op}})" for moment in MOMENTS}
OTHER = "{what}: the peak, in {moment}"  # a phase that a caller has named
OTHER_OP = "{what}: the peak, in {moment} ({op})"
SIZES = "{batch} x {tokens} tokens"
PAIRS = "{batch} pairs x {tokens} tokens"
PREFILL = "prefill, {size}"
DECODE = "decode, {batch} x 1 token after {tokens}"
MICRO_BATCHES = "{passes} micro-batches of {size}"
WHOSE = "{code} on {device}"
ENGINE = "{engine} on {card}"  # as memlab.engines.pool says it
ON = "{what}, on {device}"
COMPILED = "compiled by {compiler}"
AND = "{what}, {more}"
OF = "{what}: {more}"
STAGE = "stage {stage} of {stages}"
RANK = "one rank of {ranks}"
RANK_OF = "one rank of {ranks} ({devices})"
ONE_OF = "one of {ranks} ranks"
RANK_0 = "rank 0 of {ranks}"
SAVED_BY_A_LAYER = "Saved for backward by one layer"
WITH_FORMULA = "Saved for backward by one layer: {formula}"


def in_moment(what: str, moment: str, op: str = "") -> str:
    """The title of a peak: of what, in which phase, in which operation."""
    kinds = IN_OPERATION if op else IN
    if moment not in kinds:
        return Message(OTHER_OP if op else OTHER, what=what, moment=moment, op=op)
    return Message(kinds[moment], what=what, op=op)


def joined(what: str, *more: str) -> str:
    """What a title is of, and what else is to be said of it."""
    for each in more:
        what = Message(AND, what=what, more=each)
    return what


def stage(number: int, stages: int) -> str:
    """Which stage of a pipeline."""
    return Message(STAGE, stage=number, stages=stages)


def whose(code: str, device: str) -> str:
    """Whose code runs, and on what."""
    return Message(WHOSE, code=code, device=device)


def dotted(*parts: object) -> str:
    """Names with dots between them."""
    return Listed(" · ", parts)


def patterns() -> list[str]:
    """All of them, for translators."""
    found: list[str] = []
    for name, value in globals().items():
        if name.isupper() and name != "MOMENTS":
            found += [value] if isinstance(value, str) else value.values()
    return found
