"""Exercises of chapter 08, the allocator."""

from ..model import Model
from ..model.tensors import tensors_of
from ..terms.allocator import rounded, segment_for
from ..terms.replay import replay
from ..units import MiB
from . import exercise


def _reserved(*sizes: int) -> int:
    """Bytes reserved for tensors of so many MiB, one after the other."""
    return replay([("alloc", *pair) for pair in enumerate(n * MiB for n in sizes)]).reserved[-1]


def _longer(expandable: bool) -> int:
    """Three tensors of 12 MiB come and go, then three of 14 MiB come."""
    events = [("alloc", index, 12 * MiB) for index in range(3)]
    events += [("free", index, 0) for index in range(3)]
    events += [("alloc", index, 14 * MiB) for index in range(3)]
    return replay(events, expandable=expandable).reserved[-1]


def _loaded() -> tuple[int, int]:
    """Bytes asked for and reserved when each parameter of Llama-3-8B gets a bf16 tensor."""
    sizes = [2 * t.numel for t in tensors_of(Model.preset("llama-3-8b")) for _ in range(t.copies)]
    return sum(sizes), replay([("alloc", *pair) for pair in enumerate(sizes)]).reserved[-1]


def _unused() -> int:
    requested, reserved = _loaded()
    return reserved - requested


exercise(
    "ex-allocator-1",
    answer=lambda: rounded(1000 * 300 * 2),
    hint="Two bytes a value; then the next multiple of 512.",
    wrong={
        lambda: 1000 * 300 * 2: "That is what the tensor asks for. Is it a multiple of 512?",
        lambda: 1000 * 300 * 2 // 512 * 512: "Rounded down, it does not fit. Round up.",
        lambda: segment_for(1000 * 300 * 2): "That is the segment; the block is cut from it.",
    },
)

exercise(
    "ex-allocator-2",
    answer=lambda: _reserved(6, 9, 7),
    hint="All three are between 1 and 10 MiB. What is left of the first segment after each?",
    wrong={
        lambda: 3 * segment_for(6 * MiB): "The second fits into the rest of the first segment.",
        lambda: segment_for(6 * MiB): "6 and 9 fit; are 7 MiB left of the 20?",
        lambda: 22 * MiB: "That is what is asked for. Segments come in whole.",
        lambda: 24 * MiB: "Multiples of 2 MiB are for 10 MiB and more.",
    },
)

exercise(
    "ex-allocator-3",
    answer=lambda: _longer(False) - _longer(True),
    hint="Without: 14 MiB do not fit into 12. With: one range, in pages of 20 MiB. Subtract.",
    wrong={
        lambda: _longer(False): "So much is reserved without them. And with them?",
        lambda: _longer(True): "So much is reserved with them. And without?",
        lambda: 36 * MiB: "Expandable segments grow by whole pages of 20 MiB.",
    },
)

exercise(
    "ex-allocator-4",
    answer=_unused,
    hint="Which matrices have less than 10 MiB? How many fit into 20? And the norms are small.",
    wrong={
        lambda: 32 * (segment_for(8 * MiB) - 16 * MiB): "And the segment of the norms?",
        lambda: 64 * (segment_for(8 * MiB) - 8 * MiB): "k and v of a layer share a segment.",
        lambda: _loaded()[1]: "That is all that is reserved; subtract what was asked for.",
    },
)
