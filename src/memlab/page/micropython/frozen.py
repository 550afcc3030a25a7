"""Mounted in the place of memlab.base.frozen in MicroPython, which drops annotations.

The fields are those of the real classes: `memlab.page.files` reads them where they are known.
"""

FIELDS: dict = {}


def dataclass(*, frozen, kw_only=False, repr=True):
    """Give a class its constructor and equality; that nothing changes later is CPython's to see."""

    def decorate(cls):
        names = FIELDS[cls.__name__]
        defaults = {name: getattr(cls, name) for name in names if hasattr(cls, name)}

        def construct(self, *values, **named):
            if len(values) > (0 if kw_only else len(names)):
                raise TypeError(f"{cls.__name__}: {len(values)} values without a name")
            given = {}
            for name, value in zip(names, values):  # noqa: B905  MicroPython has no strict
                given[name] = value
            for name in named:
                if name not in names or name in given:
                    raise TypeError(f"{cls.__name__} has no free field {name!r}")
                given[name] = named[name]
            for name in names:
                if name not in given and name not in defaults:
                    raise TypeError(f"{cls.__name__}: {name} is missing")
                object.__setattr__(self, name, given.get(name, defaults.get(name)))
            if hasattr(self, "__post_init__"):
                self.__post_init__()

        def equal(self, other):
            return type(other) is type(self) and all(
                [getattr(self, name) == getattr(other, name) for name in names]
            )

        cls.__fields__ = names
        cls.__init__ = construct
        cls.__eq__ = equal
        cls.__hash__ = lambda self: hash(tuple([getattr(self, name) for name in names]))
        return cls

    return decorate


def replace(value, **changes):
    """A copy with some fields changed, checked like any new one."""
    fields = {name: getattr(value, name) for name in value.__fields__}
    return type(value)(**(fields | changes))


def not_default(value):
    """The fields of a value whose class gives each a default, less those that stand at it."""
    every = {name: getattr(value, name) for name in value.__fields__}
    return {name: every[name] for name in every if every[name] != getattr(type(value), name)}
