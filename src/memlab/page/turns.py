"""An answer in turns: the engine works in the page's own thread, which must have a breath."""

from __future__ import annotations

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

A_TURN, DEAR, CHEAP = 8, 4, 1  # what is worked out in one: two peaks, or pools of known weights


class Later(Exception):
    """The turn is over."""


class Known:
    """What has been worked out for a question, so much of it in a turn; without `turns` all."""

    def __init__(self, turns: bool = True) -> None:
        self.question: Any = None
        self.turns, self.left = turns, 0
        self.values: dict[Any, Any] = {}

    def begin(self, question: Any) -> None:
        if self.question != question:
            self.question, self.values = question, {}
        self.left = A_TURN

    def of(self, name: Any, make: Callable[[], Any], cost: int = DEAR) -> Any:
        """What `make` gives, or gave before.

        Raises      Later where a turn has worked out as much as it may
        """
        if name not in self.values:
            if self.turns and self.left < cost:
                raise Later()
            self.left -= cost
            self.values[name] = make()
        return self.values[name]
