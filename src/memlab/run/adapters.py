"""Adapters that a run may have beside LoRA: their kinds, what contradicts them, JSON both ways."""

from __future__ import annotations

from ..adapters import Ia3, Lora, Prompt, Vera
from ..sharding import Sharding

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    from .run import Run

KINDS: dict[str, Any] = {"ia3": Ia3, "vera": Vera, "prompt": Prompt}


def check(run: Run) -> None:
    """Refuse what is none of them, and two at once.

    Raises      TypeError and ValueError that name the field and its value
    """
    if run.lora is not None and not isinstance(run.lora, Lora):
        raise TypeError(f"lora={run.lora!r}; a Lora or None is needed")
    if run.adapter is not None and type(run.adapter) not in KINDS.values():
        raise TypeError(f"adapter={run.adapter!r}; an Ia3, a Vera, a Prompt or None is needed")
    if run.lora is not None and run.adapter is not None:
        raise ValueError(f"lora beside adapter ({run.adapter.told()}); one kind is trained")


def shown(value: Any) -> str:
    """What a message says of a field's value: of adapters what a title would, not all they hold."""
    if isinstance(value, Sharding):
        return str(value)
    return value.told() if hasattr(value, "told") else repr(value)


def as_dict(adapter: Any) -> dict[str, Any]:
    """Its kind and its fields, as JSON has them."""
    (kind,) = [name for name in KINDS if KINDS[name] is type(adapter)]
    return {"kind": kind} | fields_of(adapter)


def fields_of(adapter: Any) -> dict[str, Any]:
    """What is said in each field, as JSON has it."""
    return {name: _listed(getattr(adapter, name)) for name in fields(type(adapter))}


def from_dict(given: dict[str, Any]) -> Any:
    """The adapter that `as_dict` wrote.

    Raises      ValueError for a kind or a field that does not exist
    """
    kind = given.get("kind")
    if kind not in KINDS:
        raise ValueError(f"adapter has kind={kind!r}; known: {', '.join(KINDS)}")
    known = fields(KINDS[kind])
    for name in given:
        if name != "kind" and name not in known:
            raise ValueError(f"adapter {kind} has no field {name!r}; known: {', '.join(known)}")
    return KINDS[kind](**{name: value for name, value in given.items() if name != "kind"})


def fields(kind: Any) -> tuple[str, ...]:
    """The fields of a kind, in order."""
    return kind.__fields__  # type: ignore[no-any-return]


def _listed(value: Any) -> Any:
    return [_listed(one) for one in value] if isinstance(value, tuple) else value
