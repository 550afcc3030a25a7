"""The largest number with which a step fits: one search for the shell, Python and the page."""

from __future__ import annotations

from ..run import Run
from ..run.fields import MOST_PARTS

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable


def sized(run: Run, what: str, n: int) -> Run:
    """The run with a batch or tokens of this size."""
    # A search begins with fewer rows than anybody would cut.
    size = {what: n}
    batch, tokens = size.get("batch", run.batch), size.get("tokens", run.tokens or 1)
    chunks = min(run.chunks, batch * tokens, MOST_PARTS)
    if chunks != run.chunks:
        size["loss_chunks"] = chunks
    return run.replace(**size)


def least_tokens(run: Run) -> int:
    """The shortest sequence of such a run: a step learns to predict from one token the next."""
    return 2 if run.phase == "train" else 1


def largest(held: Callable[[int], int], limit: int, least: int, most: int) -> int:
    """The largest n in least … most with held(n) <= limit, or 0; what is held grows with n.

    It grows nearly in a line, so most tries are where the line through the two nearest ends meets
    the limit. Every third is half-way, for where it does not.
    """
    if held(least) > limit:
        return 0
    below, low, high, tries = 0, least, most + 1, 0
    while high - low > 1:
        tries += 1
        start, end = (low, high) if high <= most else (below, low)
        grows = held(end) - held(start) if start else 0
        if tries % 3 == 0 and high <= most:
            n = (low + high) // 2
        elif grows > 0:
            n = low + (limit - held(low)) * (end - start) // grows
        else:
            n = 2 * low
        n = min(max(n, low + 1), high - 1)
        if held(n) <= limit:
            below, low = low, n
        else:
            high = n
    return low
