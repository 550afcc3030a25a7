"""The light dataclass behaves like the standard library's, as far as the core uses it."""

import dataclasses
import inspect
import subprocess
import sys

import pytest

from memlab.base.frozen import dataclass, replace


def both(**options):
    """The same class made by memlab and by the standard library."""
    made = []
    for decorate in (dataclass, dataclasses.dataclass):

        class Point:
            x: int
            y: int = 2

            def __post_init__(self):
                if self.x < 0:
                    raise ValueError(f"x={self.x} is negative")

        made.append(decorate(frozen=True, **options)(Point))
    return made


@pytest.mark.parametrize("call", [lambda c: c(1), lambda c: c(1, 5), lambda c: c(y=3, x=1)])
def test_same_values_repr_and_equality(call):
    ours, theirs = map(call, both())
    assert (ours.x, ours.y) == (theirs.x, theirs.y)
    assert repr(ours) == repr(theirs).split(".")[-1]
    assert ours == call(type(ours)) and hash(ours) == hash(call(type(ours)))
    assert ours != replace(ours, x=9) and replace(ours, x=9).x == 9
    assert ours != theirs


@pytest.mark.parametrize("options", [{}, {"kw_only": True}])
def test_same_signature_for_help_and_hints(options):
    ours, theirs = both(**options)
    assert str(inspect.signature(ours)) == str(inspect.signature(theirs))


@pytest.mark.parametrize(
    "arguments", [((), {}), ((1, 2, 3), {}), ((1,), {"z": 1}), ((1,), {"x": 1})]
)
def test_same_refusals(arguments):
    given, named = arguments
    for kind in both():
        with pytest.raises(TypeError):
            kind(*given, **named)


def test_a_value_does_not_change():
    ours = both()[0](1)
    with pytest.raises(AttributeError, match="cannot change 'x' of a Point"):
        ours.x = 2
    with pytest.raises(AttributeError, match="cannot change 'x'"):
        del ours.x
    with pytest.raises(ValueError, match="x=-1 is negative"):
        replace(ours, x=-1)
    with pytest.raises(ValueError, match="frozen=False"):
        dataclass(frozen=False)


def test_the_core_imports_no_dataclasses():
    """What the module is for: the shell's answer does not wait for them."""
    probe = "import memlab.cli, sys; sys.exit('dataclasses' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", probe]).returncode == 0
