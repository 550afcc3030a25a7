"""What a rehearsal changes of other libraries, and how all of it is put back."""

import sys
from collections.abc import Iterable
from contextlib import ExitStack
from functools import lru_cache
from typing import Any

MISSING = object()
REMEMBERS = type(lru_cache(len))


class Changes(ExitStack):
    """Replaces names for the length of its block; the last change is undone first."""

    def replace(self, owner: Any, name: str, value: Any) -> Any:
        """Set `owner.name`; returns what was there, or MISSING.

        What an owner only inherits is inherited again at the end.
        """
        own = vars(owner).get(name, MISSING)
        before = getattr(owner, name, MISSING)
        setattr(owner, name, value)
        if own is MISSING:
            self.callback(delattr, owner, name)
        else:
            self.callback(setattr, owner, name, own)
        return before

    def replace_all(self, owner: Any, values: dict[str, Any]) -> None:
        """Set the names of `values` that the owner knows."""
        for name, value in values.items():
            if hasattr(owner, name):
                self.replace(owner, name, value)

    def emptied(self, shared: dict[Any, Any]) -> None:
        """Let what a library keeps for the process begin empty, and be as it was at the end."""
        before = dict(shared)
        shared.clear()

        def back() -> None:
            shared.clear()
            shared.update(before)

        self.callback(back)

    def remembered(self, package: str) -> None:
        """Let what the modules of a package have as globals be at the end as it is now."""
        for name, module in list(sys.modules.items()):
            if name == package or name.startswith(f"{package}."):
                self.callback(_remind, vars(module), dict(vars(module)))

    def everywhere(self, before: Any, after: Any) -> None:
        """Put `after` in the place of a function in every module that imported it by its name.

        after       stands in no other place: by it the places are found again
        """
        _exchange(before, after)
        self.callback(_exchange, after, before)

    def answers(self, packages: Iterable[str]) -> None:
        """Let packages forget what they remember of this machine, now and at the end.

        Libraries ask once whether there is a GPU, or a package, and keep the answer (lru_cache).
        """
        names = tuple(packages)
        _forget(names)
        self.callback(_forget, names)


def _remind(names: dict[str, Any], before: dict[str, Any]) -> None:
    names.update(before)


def _exchange(before: Any, after: Any) -> None:
    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", None) or {}
        for name in [name for name, value in list(names.items()) if value is before]:
            names[name] = after


def _forget(packages: tuple[str, ...]) -> None:
    for module in list(sys.modules.values()):
        home = getattr(module, "__name__", None) or ""
        if not isinstance(home, str) or home.partition(".")[0] not in packages:
            continue
        for value in list(vars(module).values()):
            # a question about the machine takes no arguments that would have to be given
            if isinstance(value, REMEMBERS) and not _needs(value):
                value.cache_clear()


def _needs(function: Any) -> bool:
    """Whether a call has to give an argument."""
    code = getattr(getattr(function, "__wrapped__", None), "__code__", None)
    if code is None:
        return True
    return code.co_argcount > len(function.__wrapped__.__defaults__ or ())
