"""How a check is put to the test: alter what it judges or computes, and ask for the verdict again.

A check whose verdict nothing can turn checks nothing. Most have a figure of the note, which is
altered in the claim. Where the note gives none, or no figure would do, one function or constant
that the check uses is altered: its numbers are multiplied, or it gives its first answer to every
question, so that nothing it is asked makes a difference; or it is replaced by one of WORLDS.

    turns.json      for each claim with a check: other words of the claim; or what is altered, and
                    how; or "world"
"""

import json
from collections.abc import Mapping
from contextlib import contextmanager
from functools import update_wrapper
from numbers import Number
from pathlib import Path
from unittest import mock

import torch
from audit.worlds import WORLDS

from memlab.base.frozen import replace

TURNS = json.loads(Path(__file__).with_name("turns.json").read_text(encoding="utf-8"))
TIMES = (0, 0.001, 0.1, 0.5, 2, 10, 1000)
SAME = "the same to each question"


def turned(module, claim):
    """What the check finds where the claim, or one thing that the check uses, is another."""
    check, turn = getattr(module, claim.check), TURNS[claim.id]
    if turn == "world":
        with forgotten(module), _entered(module, WORLDS[claim.check]):
            return check(claim)
    if "of" in turn:
        with altered(module, turn["of"], turn["way"]):
            return check(claim)
    return check(replace(claim, **turn))


def _entered(module, world):
    """Names of the module, or a context of its own where the check asks a library."""
    return world() if callable(world) else mock.patch.multiple(module, **world)


def ways(thing):
    """The ways in which a function or a constant can be altered, the simplest first."""
    return [SAME, *TIMES] if callable(thing) else list(TIMES)


@contextmanager
def altered(module, name, way):
    """Inside, `module` has another thing under this name."""
    thing = getattr(module, name)
    instead = _function(thing, way) if callable(thing) else times(thing, way)
    with forgotten(module), mock.patch.object(module, name, instead):
        yield


@contextmanager
def forgotten(module):
    """What functions of the module cached inside is forgotten afterwards."""
    cached = [f for f in vars(module).values() if hasattr(f, "cache_info")]
    before = [f.cache_info().currsize for f in cached]
    yield
    for function, size in zip(cached, before, strict=True):
        if function.cache_info().currsize != size:
            function.cache_clear()


def _function(thing, way):
    first = []

    def instead(*args, **kwargs):
        if way == SAME and first:
            return first[0]
        found = thing(*args, **kwargs)
        first.append(found)
        return found if way == SAME else times(found, way)

    return instead if isinstance(thing, type) else update_wrapper(instead, thing)


def times(value, factor):
    """A number, or the numbers inside, multiplied; anything else as it is."""
    if isinstance(value, bool):
        return value if factor else not value
    if isinstance(value, int | float):
        return type(value)(value * factor)
    if isinstance(value, Number | torch.Tensor):
        return value * factor
    if isinstance(value, Mapping):
        return {key: times(each, factor) for key, each in value.items()}
    if type(value) in (tuple, list):
        return type(value)(times(each, factor) for each in value)
    return value
