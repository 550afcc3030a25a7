"""How a check is put to the test: alter what it judges or computes, and ask for the verdict again.

A check whose verdict nothing can turn checks nothing. Most have a figure of the note, which is
altered in the claim. Where the note gives none, or no figure would do, one thing of what is
measured is another one, a setting or real code, and all of it runs anew.

    turns.json      for a claim: other figures, or other words, of it
    SETTINGS        for a check: what is altered, and to what
"""

import json
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from unittest import mock

from audit.settings import SETTINGS

from memlab.base.frozen import replace

TURNS = json.loads(Path(__file__).with_name("turns.json").read_text(encoding="utf-8"))


def turned(module, claim):
    """What the check finds where the claim, or one thing that the check uses, is another."""
    check = getattr(module, claim.check)
    if claim.id in TURNS:
        return check(replace(claim, **TURNS[claim.id]))
    with forgotten(module), ExitStack() as stack:
        for target, value in SETTINGS[claim.check].items():
            name = target if "." in target else f"{module.__name__}.{target}"
            stack.enter_context(mock.patch(name, value))
        return check(claim)


@contextmanager
def forgotten(module):
    """Inside, functions of the module remember nothing from before; afterwards, nothing of it."""
    found = {name: f for name, f in vars(module).items() if hasattr(f, "cache_info")}
    own = {n: cache(f.__wrapped__) for n, f in found.items() if f.__module__ == module.__name__}
    with mock.patch.multiple(module, **own) if own else ExitStack():
        yield
