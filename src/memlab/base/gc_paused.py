"""No garbage collection while bytes are counted."""

from __future__ import annotations

import gc


class no_garbage:  # noqa: N801, reads as what it does
    """Bytes must not depend on when Python looks for cycles: `with no_garbage(): ...`.

    collect     whether to look for them once before: real tensors of a cycle take real memory
    """

    def __init__(self, *, collect: bool = True) -> None:
        self.collect = collect

    def __enter__(self) -> None:
        if self.collect:
            gc.collect()
        self.was = gc.isenabled()
        gc.disable()

    def __exit__(self, *error: object) -> None:
        if self.was:
            gc.enable()
