"""A card that is not there, on which tensors without values are made."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from memlab.measure.fake_copies import Fakes
from memlab.measure.fake_cuda import begin, known, noted
from memlab.measure.fake_cuda.undo import Changes
from memlab.measure.shapes_mode import shapes_mode
from memlab.measure.step_tracker import StepTracker


@contextmanager
def on_card(
    made: Callable[[Fakes], Any] | None = None,
    *,
    kernel: str = "auto",
    tracker: StepTracker | None = None,
) -> Iterator[Any]:
    """What `made` makes with Fakes on the card; tensors of the block are on it, too.

    tracker     runs in the block; backward needs one
    """
    shapes = shapes_mode()
    with Changes() as changes:
        begin(changes, "cuda", tracker or StepTracker("cuda"), kernel)
        changes.enter_context(shapes)
        found = None if made is None else made(Fakes(shapes, "cuda"))
        known(changes, shapes, noted())
        if tracker is not None:
            changes.enter_context(tracker)
        changes.enter_context(torch.device("cuda"))
        yield found
