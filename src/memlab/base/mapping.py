"""A dict that does not change, so that a value which holds one can be hashed and compared."""

from __future__ import annotations

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    Base = dict[str, Any]
else:
    Base = dict


class FrozenDict(Base):
    """Names and plain values, as JSON has them; what lies inside is not to be changed either.

    Raises      AttributeError for a change
    """

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self))  # equal dicts have equal names; values may be dicts and lists

    def __reduce__(self) -> Any:
        """How it travels to another process: as a dict, of which that process makes one again."""
        return type(self), (dict(self),)

    def _no(self, *_: Any, **__: Any) -> Any:
        raise AttributeError("this dict does not change; make a new one")

    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = _no
    __ior__ = _no  # type: ignore[assignment]
