"""Import a library without what it says about itself on the way."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet() -> Iterator[None]:
    """While the block runs, nothing below an error is logged, and no warning is shown.

    On import torchao reports, with the time of day, kernels that only some GPUs have, and torch
    reports a registration of torchao's; a notebook's stored output could never match those lines.
    After the block every logger is as it was: whether they speak is their owner's decision.
    """
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
