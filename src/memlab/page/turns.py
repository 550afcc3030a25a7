"""An answer in turns: the engine works in the page's own thread, which must have a breath."""

from __future__ import annotations

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

A_TURN = 2  # peaks or pools that are worked out in one


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

    def of(self, name: Any, make: Callable[[], Any]) -> Any:
        if name not in self.values:
            if self.turns and not self.left:
                raise Later()
            self.left -= 1
            self.values[name] = make()
        return self.values[name]
