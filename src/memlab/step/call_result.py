"""What a simulated call tells: what it holds before and after, its peak, how its cache grows."""

from __future__ import annotations

from ..base.frozen import dataclass
from .core.storage_log import Log
from .core.term_table import Simulated

TERMS = ("weights", "buffers", "inputs", "kv_cache", "activations", "logits", "other")


@dataclass(frozen=True)
class CallPeak:
    """The most bytes of a call, and when.

    moment      forward (up to the output head) or logits
    op          the operator whose result reached it
    contents    bytes by term; they add to `bytes`. While the cache grows, kv_cache holds one tensor
                of one layer twice; other: autocast's copies of the weights
    """

    bytes: int
    moment: str
    op: str
    contents: dict[str, int]


@dataclass(frozen=True, repr=False)
class Call(Simulated):
    """A simulated call.

    rows        weights, buffers, inputs; kv_cache and logits as the call returns them; activations
                and other (autocast's copies of the weights): at the peak, for they all go
    held        all bytes before the call, and after it, while its result is held
    per_token   bytes that each generated token adds to the cache, of all sequences together
    log         every allocation and free
    """

    TERMS = TERMS

    rows: dict[str, int]
    held: dict[str, int]
    held_contents: dict[str, dict[str, int]]
    peak: CallPeak
    per_token: int
    log: Log
