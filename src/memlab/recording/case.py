"""One thing to measure: how it is predicted without the device, and how it is run on it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..units import MiB
from .meter import Meter

# What the kernels of a small model ask for beside tensors: flash attention sums gradients in fp32
# and pads rows to 128, reductions keep partial sums. It comes and goes inside one operator, so it
# shows in a peak and never in what is held between two of them.
SCRATCH = MiB
EXACT = "storages are counted on both sides: no byte may miss"
KERNELS = "kernels' scratch memory comes through the same allocator, inside one operator"


@dataclass(frozen=True)
class Predicted:
    """Bytes that tensors ask for, by two ways that must agree where both exist."""

    derived: int | None = None
    traced: int | None = None

    @property
    def bytes(self) -> int | None:
        return self.traced if self.derived is None else self.derived

    @property
    def by(self) -> str:
        ways = {"derived": self.derived, "traced": self.traced}
        names = [name for name, size in ways.items() if size is not None]
        if len(names) == 2 and self.derived != self.traced:
            return f"derived; traced {self.traced:,} B"
        return " and ".join(names)


@dataclass(frozen=True)
class Case:
    """A run and its moments: each becomes one row.

    predict     of the backend ("cpu" or "cuda"), without the device: moment -> Predicted
    run         notes the same moments
    terms       moment -> label of the chapter it belongs to
    what        in words, for whoever reads the record
    scratch     moments in which an operator is at work: see SCRATCH
    lacks       of the device: why it cannot run there, or ""
    compared    the counter that the prediction is about
    """

    name: str
    what: str
    terms: Mapping[str, str]
    predict: Callable[[str], Mapping[str, Predicted]]
    run: Callable[[Meter], Any]
    scratch: tuple[str, ...] = ("peak",)
    lacks: Callable[[str], str] = lambda device: ""
    compared: str = "requested"

    def names(self) -> list[str]:
        """The names of its rows."""
        return [f"{self.name}/{moment}" for moment in self.terms]


def needs_cuda(device: str) -> str:
    return "" if device == "cuda" else "it needs a CUDA device"
