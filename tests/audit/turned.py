"""How a check is put to the test: alter what it judges or computes, and ask for the verdict again.

A check whose verdict nothing can turn checks nothing. Most have a figure of the note, which is
altered in the claim. Where the note gives none, or no figure would do, a setting of what is
measured is another one and all of it runs anew; or one function or constant that the check uses is
altered: its numbers are multiplied, or it gives its first answer to every question, so that
nothing it is asked makes a difference.

    turns.json      for a claim: other words of it; or what is altered, and how
    SETTINGS        for a check: what is set, and to what
"""

import json
from collections.abc import Mapping
from contextlib import ExitStack, contextmanager
from functools import cache, update_wrapper
from numbers import Number
from pathlib import Path
from unittest import mock

import torch
from audit.settings import SETTINGS

from memlab.base.frozen import replace

TURNS = json.loads(Path(__file__).with_name("turns.json").read_text(encoding="utf-8"))
SAME = "the same to each question"


def turned(module, claim):
    """What the check finds where the claim, or one thing that the check uses, is another."""
    check, turn = getattr(module, claim.check), TURNS.get(claim.id, {})
    if turn and "of" not in turn:
        return check(replace(claim, **turn))
    with forgotten(module), ExitStack() as stack:
        if turn:
            stack.enter_context(altered(module, turn["of"], turn["way"]))
        for target, value in ({} if turn else SETTINGS[claim.check]).items():
            name = target if "." in target else f"{module.__name__}.{target}"
            stack.enter_context(mock.patch(name, value))
        return check(claim)


@contextmanager
def altered(module, name, way):
    """Inside, `module` has another thing under this name."""
    thing = getattr(module, name)
    instead = _function(thing, way) if callable(thing) else times(thing, way)
    with mock.patch.object(module, name, instead):
        yield


@contextmanager
def forgotten(module):
    """Inside, functions of the module remember nothing from before; afterwards, nothing of it."""
    found = {name: f for name, f in vars(module).items() if hasattr(f, "cache_info")}
    own = {n: cache(f.__wrapped__) for n, f in found.items() if f.__module__ == module.__name__}
    with mock.patch.multiple(module, **own) if own else ExitStack():
        yield


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
