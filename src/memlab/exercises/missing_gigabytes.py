"""Exercises of three scripts and the bytes that nobody predicted."""

from ..estimate import estimate
from ..formats import storage
from ..model import Model
from ..run import Run
from ..step import simulate
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


def _attend(tokens: int, checkpoint: str, attention: str) -> int:
    run = Run.cpu(batch=4, tokens=tokens, checkpoint=checkpoint, attention=attention)
    return simulate(_TINY.replace(positions=256), "fp32", run).peak.bytes


def _missing(tokens: int) -> int:
    return _attend(tokens, "none", "eager") - _attend(tokens, "block", "sdpa")


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
    answer=lambda: _missing(256),
    hint="Two simulations with tokens=256: checkpoint='none', attention='eager', and as believed.",
    wrong={
        lambda: 2 * _missing(128): "Twice the tokens make four times the scores.",
        lambda: (
            _attend(256, "none", "sdpa")
            + _attend(256, "block", "eager")
            - 2 * _attend(256, "block", "sdpa")
        ): "You added two differences. Turn both switches in one simulation.",
    },
)
