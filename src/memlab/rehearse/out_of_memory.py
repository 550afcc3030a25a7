"""Where a card has no more: PyTorch's message, and the lines behind the request that failed."""

from typing import NamedTuple

from ..measure.line_tracker import Line


class Failure(NamedTuple):
    """Where a card has no more: PyTorch's message, the step, and the two lines."""

    message: str
    step: int
    phase: str
    reader: Line
    library: Line
