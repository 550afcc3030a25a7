"""Frozen dataclasses for the core, without the import of `dataclasses`.

That import costs a shell more than all of memlab does (it brings `inspect`, `ast` and `dis`), and
`memlab estimate` shall answer at once. This one behaves like `dataclasses.dataclass(frozen=True)`
for plain fields. Anything beyond that (inheritance, `field`, `asdict`) is not, and not needed.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from dataclasses import replace as replace
else:

    def dataclass(*, frozen, kw_only=False, repr=True):
        """Give a class with annotated fields its constructor, equality, hash and repr."""
        if not frozen:
            raise ValueError("frozen=False; values of the core do not change")

        def decorate(cls):
            names = tuple(cls.__annotations__)
            cls.__fields__ = cls.__match_args__ = names
            made = {"__eq__": _eq, "__hash__": _hash, "__setattr__": _no, "__delattr__": _no}
            if "__init__" not in vars(cls):
                made["__init__"] = _constructor(cls, names, kw_only)
            if repr and "__repr__" not in vars(cls):
                made["__repr__"] = _repr
            for name, function in made.items():
                setattr(cls, name, function)
            return cls

        return decorate

    def replace(value, **changes):
        """A copy with some fields changed, checked like any new one."""
        return type(value)(**{name: getattr(value, name) for name in value.__fields__} | changes)


def not_default(value):
    """The fields of a value whose class gives each a default, less those that stand at it."""
    every = {name: getattr(value, name) for name in value.__fields__}
    return {name: every[name] for name in every if every[name] != getattr(type(value), name)}


def _constructor(cls, names, kw_only):
    """`__init__` with a true signature, so that help() and a notebook's hints show the fields."""
    known = vars(cls)
    words = [f"{name}=known[{name!r}]" if name in known else name for name in names]
    lines = [f"def __init__(self, {'*, ' if kw_only else ''}{', '.join(words)}):"]
    lines += [f"    put(self, {name!r}, {name})" for name in names]
    lines += ["    self.__post_init__()"] if "__post_init__" in known else []
    space = {"known": known, "put": object.__setattr__}
    exec("\n".join(lines), space)
    made = space["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__annotations__ = {**cls.__annotations__, "return": None}
    return made


def _values(self):
    return tuple(getattr(self, name) for name in self.__fields__)


def _eq(self, other):
    return _values(self) == _values(other) if type(other) is type(self) else NotImplemented


def _hash(self):
    return hash(_values(self))


def _repr(self):
    fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__fields__)
    return f"{type(self).__name__}({fields})"


def _no(self, name, *value):
    raise AttributeError(f"cannot change {name!r} of a {type(self).__name__}; make a new one")
