"""Exercises of predicted 28 GB, observed 80."""

from functools import partial

from ..formats import storage
from ..model import Model
from ..run import Run
from ..step import simulate
from ..units import GB
from . import exercise

ROUND = 4_000_000_000
QWEN = "qwen3-4b"
USED = [40 * GB, 40 * GB, 120 * GB, 40 * GB, 40 * GB, 40 * GB]  # every 30 ms


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
    return guard(lambda: next(looks, None), limit=108 * GB, wait=lambda seconds: None).highest


def _tokens(room: int = 20 * 10**9, recipe: str = "bf16") -> int:
    run = Run.cpu(batch=1, tokens=96, implementation="memlab")
    each = simulate(Model.preset(QWEN), recipe, run).rows["activations"] // 96
    return room // each + 1


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
        lambda: 108 * GB: "That is the limit. No figure that the guard read was above it.",
    },
)

exercise(
    "ex-predicted-28-3",
    answer=_saved,
    hint="Add up `fullest(full, settings, batch=1, tokens=96)` for `said` and for either change.",
    wrong={
        partial(_saved, True, "int8/row", "end of forward"): "That is what (a) takes off the end "
        "of forward. The fuller moment is the end of backward, which has no rounded weights.",
        lambda: 0: "That is (a): it changes a moment that is not the fuller one.",
    },
)

exercise(
    "ex-predicted-28-4",
    answer=_tokens,
    unit="tokens",
    hint="With this attention, activations grow with the tokens: divide what 96 of them take.",
    wrong={
        lambda: _tokens() - 1: "That many still fit below 20 GB: one more.",
        partial(_tokens, 20 * 2**30): "20 GB are 20,000,000,000 bytes.",
        partial(_tokens, recipe="fp32"): "The pass is in bf16.",
    },
)
