"""A value of a config.json is of a kind, a number, or one of those known; else it is named."""

from __future__ import annotations

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any


def of_kind(key: str, value: Any, kind: type, needed: str) -> None:
    if type(value) is not kind:
        raise TypeError(f"{key}={value!r} is a {type(value).__name__}; {needed}")


def number(key: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{key}={value!r} is a {type(value).__name__}; a number is needed")


def one_of(key: str, value: Any, known: tuple[str, ...]) -> None:
    if value is not None and value not in known:
        raise ValueError(f"{key}={value!r} is not described; known: {', '.join(known)}")
