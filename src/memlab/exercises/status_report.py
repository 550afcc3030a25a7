"""Exercises of a status report on an 8-bit optimizer."""

from ..formats import storage
from ..model import Model
from . import exercise

_P, _MUON = 28_355_328, 2_621_440  # test-8bit
_NORMS = 9 * 256
_ALL, _PRINTED = 282_491_136, 783 * 2**20  # d20-e3-full
_TABLE = 50_257 * 256


def _qwen(eight: bool = True) -> int:
    from ..cases.muon_lion import states  # only who asks for it needs it

    return sum(states(Model.preset("qwen3-0.6b"), eight=eight).values())


exercise(
    "ex-status-report-1",
    answer=lambda: storage(_P - _NORMS, "int8/128") + storage(_NORMS, "fp32"),
    hint="1.03125 bytes for each value of a matrix, 4 for each value of a norm.",
    wrong={
        lambda: storage(_P, "int8/128"): "The norms have 256 values each, so they stay in fp32.",
        lambda: storage(_P - _NORMS, "int8") + storage(_NORMS, "fp32"): (
            "The scales are missing: 4 bytes for each block of 128 values."
        ),
        lambda: storage(_P - _MUON - _NORMS, "int8/128") + storage(_NORMS, "fp32"): (
            "Those are Lion's states. Muon's belong to all of them, too."
        ),
        lambda: storage(_MUON, "int8/128") + storage(_P - _MUON, "fp32"): (
            "That is with Lion's momentum in fp32."
        ),
    },
)

exercise(
    "ex-status-report-2",
    answer=lambda: storage(_ALL, "fp32") - _PRINTED,
    hint="Four bytes for each of the 282,491,136 parameters, less the 783 MiB of Muon's part.",
    wrong={
        lambda: storage(_ALL, "fp32") - 783 * 10**6: "Those 783 MB are MiB.",
        lambda: storage(_ALL, "fp32") - 201 * 2**20: "783, not 201, are Muon's bytes in fp32.",
        lambda: 2 * storage(_ALL, "fp32") - _PRINTED: "Lion has one momentum, not two.",
        lambda: _ALL - _PRINTED // 4: "Those are the parameters; each has four bytes of momentum.",
    },
)

exercise(
    "ex-status-report-3",
    answer=lambda: 2 * storage(_TABLE, "fp32"),
    hint="(b) removes a weight and the momentum that belongs to it, four bytes a value each.",
    wrong={
        lambda: storage(_MUON, "fp32") - storage(_MUON, "int8/128"): "That is (a).",
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
