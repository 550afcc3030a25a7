"""What a tracker sees beside a peak's figure, and how far a derived peak is from it, by term."""

from __future__ import annotations

from ..base.frozen import dataclass

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Mapping

# What a step holds beside what stays: one row, since only a label tells logits from activations.
STEP = "activations, logits and other"
STAYS = ("weights", "buffers", "gradients", "optimizer", "inputs")


@dataclass(frozen=True)
class Watched:
    """The peak by term, and what each step leaves behind for good.

    terms       bytes at the peak, as `terms` sums them
    grows       bytes of one step; None: too few steps were seen to tell
    """

    terms: Mapping[str, int]
    grows: int | None = None


def terms(contents: Mapping[str, int]) -> dict[str, int]:
    """Bytes by term, as far as a tracker tells terms apart."""
    found = {name: contents.get(name, 0) for name in STAYS}
    found[STEP] = sum(contents.values()) - sum(found.values())
    return {name: size for name, size in found.items() if size}


def apart(one: Mapping[str, int], other: Mapping[str, int]) -> int:
    """By how many bytes two peaks differ, term by term."""
    names = {*one, *other}
    return sum(abs(one.get(name, 0) - other.get(name, 0)) for name in names)
