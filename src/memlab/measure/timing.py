"""How many times as long: two ways to do the same, timed in turns on one machine."""

from collections.abc import Callable
from time import process_time


def time_ratio(
    way: Callable[[], object], before: Callable[[], object], *, rounds: int = 5
) -> float:
    """Processor time of one call of `way`, as a multiple of one call of `before`.

    Formula     min over the rounds of the one / min over the rounds of the other
    Unit        none; 1.3 is 30 per cent longer
    Source      the least of several times is the least disturbed: Python's own `timeit` says so
    Leaves out  time that a device spends: on CUDA, synchronize at the end of both. Each is called
                once before the clock runs. The ratio differs from machine to machine: show it in a
                figure, never in prose
    Raises      ValueError for less than one round
    """
    if rounds < 1:
        raise ValueError(f"rounds={rounds} is less than 1")
    least = [float("inf"), float("inf")]
    for call in (before, way):
        call()
    for _ in range(rounds):
        # In turns, so that a machine that grows slower under way slows both.
        for i, call in enumerate((before, way)):
            start = process_time()
            call()
            least[i] = min(least[i], process_time() - start)
    return least[1] / max(least[0], 1e-9)
