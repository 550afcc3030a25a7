"""Exercises of a status report on an 8-bit optimizer."""

from ..formats import storage
from ..model import Model
from . import exercise

_TEST = 2_621_440
_P, _H = 282_491_136, 205_258_752
_TABLE = 50_257 * 256


def _qwen(eight: bool = True) -> int:
    from ..cases.muon_lion import states  # only who asks for it needs it

    return sum(states(Model.preset("qwen3-0.6b"), eight=eight).values())


def _promised() -> int:
    """The script of the second exercise: two states of four bytes become one byte and a scale."""
    return storage(2 * _P, "fp32") - storage(_P, "int8/128")


def _saved() -> int:
    return storage(_H, "fp32") - storage(_H, "int8/128")


exercise(
    "ex-status-report-1",
    answer=lambda: storage(_TEST, "int8/128"),
    hint="One byte a value, and four bytes for each 128 of them.",
    wrong={
        lambda: storage(_TEST, "int8"): "The scales are missing: 4 bytes for each block.",
        lambda: storage(_TEST, "fp32"): "That is the momentum in fp32.",
        lambda: 2 * 2**20: "The report's 2 MB are whole MiB with the digits cut off.",
    },
)

exercise(
    "ex-status-report-2",
    answer=lambda: _promised() - _saved(),
    hint="What the script prints, less 4 - 1.03125 bytes for each of Muon's values.",
    wrong={
        _promised: "That is what the script prints. How much of it is not saved?",
        _saved: "That is what is saved. By how much does the script promise more?",
        lambda: _promised() - storage(_P, "fp32") + storage(_P, "int8/128"): (
            "That mends the second state. Lion's momentum is not quantized either."
        ),
        lambda: _promised() - 2 * _saved(): "Muon has one state, not two.",
    },
)

exercise(
    "ex-status-report-3",
    answer=lambda: 2 * storage(_TABLE, "fp32"),
    hint="(b) removes a weight and the momentum that belongs to it, four bytes a value each.",
    wrong={
        lambda: storage(_TEST, "fp32") - storage(_TEST, "int8/128"): "That is (a).",
        lambda: storage(_TABLE, "fp32"): "That is the weight. Its momentum goes with it.",
        lambda: 3 * storage(_TABLE, "fp32"): "Between two steps there is no gradient.",
    },
)

exercise(
    "ex-status-report-4",
    answer=_qwen,
    hint="sum(states(Model.preset('qwen3-0.6b'), eight=True).values()).",
    wrong={
        lambda: _qwen(eight=False): "That is with Muon in fp32.",
        lambda: storage(Model.preset("qwen3-0.6b").parameter_count, "int8/128"): (
            "The embedding, a quarter of this model, is Lion's and stays in fp32."
        ),
    },
)
