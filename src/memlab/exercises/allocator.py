"""Exercises of the allocator."""

from ..model import Model
from ..model.tensors import tensors_of
from ..terms.allocator import segment_for
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
    """Bytes requested and reserved when each parameter of Llama-3-8B gets a bf16 tensor."""
    sizes = [2 * t.numel for t in tensors_of(Model.preset("llama-3-8b")) for _ in range(t.copies)]
    return sum(sizes), replay([("alloc", *pair) for pair in enumerate(sizes)]).reserved[-1]


def _unused() -> int:
    requested, reserved = _loaded()
    return reserved - requested


exercise(
    "ex-allocator-1",
    answer=lambda: _longer(False) - _longer(True),
    hint="Plain: 14 MiB do not fit into 12. Expandable: one range, in pages of 20 MiB. Subtract.",
    wrong={
        lambda: _longer(False): "Those are plain segments. And expandable ones?",
        lambda: _longer(True): "Those are expandable segments. And plain ones?",
        lambda: 36 * MiB: "Expandable segments grow by whole pages of 20 MiB.",
    },
)

exercise(
    "ex-allocator-2",
    answer=lambda: _reserved(6, 9, 7),
    hint="All three are between 1 and 10 MiB. What is left of the first segment after each?",
    wrong={
        lambda: 3 * segment_for(6 * MiB): "The second fits into the rest of the first segment.",
        lambda: segment_for(6 * MiB): "6 and 9 fit; are 7 MiB left of the 20?",
        lambda: 22 * MiB: "That is what is requested. Segments come whole.",
        lambda: 24 * MiB: "Multiples of 2 MiB are for 10 MiB and more.",
    },
)


def _story() -> tuple[int, int]:
    """Bytes allocated and reserved when the nine tensors of the page have come, six have gone."""
    sizes = (("a", 8), ("g", 4), ("b", 8))
    events = [("alloc", f"{n}{i}", size * MiB) for i in "123" for n, size in sizes]
    done = replay([*events, *(("free", f"{n}{i}", 0) for i in "123" for n in "ab")])
    return done.allocated[-1], done.reserved[-1]


exercise(
    "ex-allocator-3",
    answer=lambda: _story()[1] - _story()[0],
    hint="The message prints what is allocated, and what is reserved but unallocated.",
    wrong={
        lambda: _story()[1]: "That is all that is reserved; some of it is allocated.",
        lambda: _story()[0]: "That is what is allocated: the gradients.",
        lambda: 8 * MiB: "That is the largest gap. There are six of them.",
    },
)

exercise(
    "ex-allocator-4",
    answer=_unused,
    hint="Which matrices have less than 10 MiB? How many fit into 20? And the norms are small.",
    wrong={
        lambda: 32 * (segment_for(8 * MiB) - 16 * MiB): "And the segment of the norms?",
        lambda: 64 * (segment_for(8 * MiB) - 8 * MiB): "k and v of a layer share a segment.",
        lambda: _loaded()[1]: "That is all that is reserved; subtract what was requested.",
    },
)
