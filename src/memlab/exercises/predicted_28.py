"""Exercises of predicted 28 GB, observed 80."""

from functools import partial

from ..formats import storage
from ..model import Model
from ..units import GiB
from . import exercise

ROUND = 4_000_000_000
QWEN = "qwen3-4b"
USED = [40 * GiB, 40 * GiB, 120 * GiB, 40 * GiB, 40 * GiB, 40 * GiB]  # every 30 ms
GATE = 9_728 * 2_560  # values of Qwen3-4B's gate projection


def _kept(packed: str = "fp4_e2m1/16:fp8_e4m3", rest: int = 2 + 2 + 1 + 1) -> int:
    return storage(ROUND, packed) + rest * ROUND


def _saved(again: bool = False, states: str = "nvfp4", moment: str = "fuller") -> int:
    """Bytes that other settings save: at the fuller moment, or at the end of forward."""
    from ..cases.nvfp4_ledger import fullest, in_step  # only who asks for it needs torch
    from ..cases.nvfp4_trainer import Settings

    full = Model.preset(QWEN).replace(tied=False)
    look = fullest if moment == "fuller" else in_step
    said = sum(look(full, Settings(), batch=1, tokens=96).values())
    return said - sum(look(full, Settings(states=states, again=again), batch=1, tokens=96).values())


def _highest() -> int:
    """What a guard reports that looks every 50 ms at a use that changes every 30 ms."""
    from ..cases.memory_guard import guard

    looks = iter([USED[ms // 30] for ms in range(0, 180, 50)])
    return guard(lambda: next(looks, None), limit=108 * GiB, wait=lambda seconds: None).highest


def _packed_gate() -> int:
    return storage(GATE, "nvfp4")


exercise(
    "ex-predicted-28-1",
    answer=_kept,
    hint="Half a byte a code, one byte of scale for 16 of them; then 2 + 2 + 1 + 1.",
    wrong={
        lambda: ROUND * 13 // 2: "That is the note's 6.5: sixteen codes share a scale of one byte.",
        partial(_kept, rest=2 + 1 + 1): "Master and gradients are two copies.",
        partial(_kept, rest=2 + 2 + 4 + 4): "The states take one byte each here.",
    },
)

exercise(
    "ex-predicted-28-2",
    answer=_highest,
    hint="Which of the six figures stands at 0, 50, 100 and 150 ms?",
    wrong={
        lambda: max(USED): "The peak lasts from 60 to 90 ms, and no look falls into it.",
        lambda: 108 * GiB: "That is the limit. No figure that the guard read was above it.",
    },
)

exercise(
    "ex-predicted-28-3",
    answer=_saved,
    hint="Add up `fullest(full, settings, batch=1, tokens=96)` for `described` and for each of the "
    "two changes.",
    wrong={
        partial(_saved, True, "int8/row", "end of forward"): "That is what (a) takes off the end "
        "of forward. The fuller moment is the end of backward, which has no rounded weights.",
        lambda: 0: "That is (a): it changes a moment that is not the fuller one.",
    },
)

exercise(
    "ex-predicted-28-4",
    answer=_packed_gate,
    hint="`with Saved(exclude=x) as saved:` around the call, then `saved.bytes`. What does `pack` "
    "return for 9,728 × 2,560 values?",
    wrong={
        lambda: 2 * GATE: "That is the rounded weight in bf16. Save what `pack` returned.",
        lambda: GATE // 2: "Those are the codes alone; without their scales they mean nothing.",
        lambda: GATE // 2 + GATE // 16: "Codes and scales; the factor of the matrix is missing.",
        lambda: GATE + GATE // 16 + 4: "Two codes of four bits share a byte.",
    },
)
