"""Exercises of chapter 25, a status report on an 8-bit optimizer."""

from ..formats import storage
from ..model import Model
from . import exercise

_TEST = 2_621_440
_P, _H = 282_491_136, 205_258_752
_TABLE = 50_000 * 2048


def _qwen(eight: bool = True) -> int:
    from ..cases.muon_lion import states  # only who asks for it needs it

    return sum(states(Model.preset("qwen3-0.6b"), eight=eight).values())


def _report() -> int:
    return storage(_H, "int8/128") + storage(_P - _H, "fp32")


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
    answer=_report,
    hint="1.03125 bytes for each of Muon's values, 4 for each of the others.",
    wrong={
        lambda: storage(_P, "int8/128"): "Lion's momentum is not quantized.",
        lambda: storage(_H, "int8/128"): "Embedding, head and norms have a momentum too: Lion's.",
        lambda: storage(_P, "fp32"): "That is before anything is quantized.",
        lambda: storage(2 * _P, "fp32"): "Neither Muon nor Lion has a second state.",
    },
)

exercise(
    "ex-status-report-3",
    answer=lambda: 3 * storage(_TABLE, "fp32"),
    hint="What else has the shape of the weight at that moment?",
    wrong={
        lambda: storage(_TABLE, "fp32"): "That is the weight. It has a gradient and a momentum.",
        lambda: 2 * storage(_TABLE, "fp32"): "Weight, gradient, momentum: three of that shape.",
        lambda: 4 * storage(_TABLE, "fp32"): "Lion keeps one momentum; AdamW would keep two.",
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
