"""Exercises of three scripts and the bytes that nobody predicted."""

from ..estimate import estimate
from ..formats import storage
from ..model import Model
from ..run import Run
from ..units import MiB
from . import exercise

_TINY = Model.preset("tiny-llama")
# A log: what the counters of PyTorch and of the card say.
_NOW, _MOST = 11_240_000_000, {"allocated": 12_400_000_000, "reserved": 24_900_000_000}
_DEVICE = 24_190 * MiB


def _validate(graphs: int) -> int:
    """The peak of the first script with so many graphs kept."""
    run = Run.cpu(batch=8, tokens=64, implementation="memlab", holds=graphs * ("graph",))
    return estimate(_TINY, "fp32", run).total()


def _raises(most: int) -> int:
    """The number of kept losses whose graphs are, for the first time, more than so many bytes."""
    return most // (_validate(1) - _validate(0)) + 1


exercise(
    "ex-missing-gigabytes-1",
    answer=lambda: storage(_TINY.parameter_count, "fp32"),
    hint="One number for each of its 803,968 parameters, in the format of the file.",
    wrong={
        lambda: storage(_TINY.parameter_count, "bf16"): "That is the file as it is, in bf16.",
        lambda: 2 * storage(_TINY.parameter_count, "fp32"): "A state dict has the weights alone.",
    },
)

exercise(
    "ex-missing-gigabytes-2",
    answer=lambda: _validate(2),
    hint="The fixed peak, and a graph for every validation that is over: derived + n · graph.",
    wrong={
        lambda: _validate(3): "During the last step of training, how many validations are over?",
        lambda: _validate(2) - _validate(0): "That is what is missing; the step itself is on top.",
    },
)

exercise(
    "ex-missing-gigabytes-3",
    answer=lambda: _MOST["reserved"] - _MOST["allocated"],
    hint="Compare what belongs together: the two maxima, and the device with what is reserved.",
    wrong={
        lambda: _MOST["reserved"] - _NOW: "`memory_allocated` is of this moment, and the other "
        "figure is a maximum: compare the two maxima.",
        lambda: _DEVICE - _MOST["reserved"]: "That is about a context, which every process has.",
        lambda: _DEVICE - _MOST["allocated"]: "Those are two gaps in one; one of them is the "
        "context.",
    },
)

exercise(
    "ex-missing-gigabytes-4",
    answer=lambda: _raises(64 * MiB),
    unit="losses",
    hint="Every loss adds one graph, and the guard is silent as long as they fit.",
    wrong={
        lambda: _raises(64 * MiB) - 1: "So many still fit: 64 MiB are 67,108,864 bytes, not "
        "64,000,000.",
        lambda: _raises(64 * MiB) + 1: "The guard raises as soon as there is too much; you "
        "counted one loss more.",
        lambda: 64 * MiB // 4 + 1: "You counted the losses themselves, at 4 bytes; follow their "
        "graphs.",
    },
)
