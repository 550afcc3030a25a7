"""Answers that the page has no tables for: the step itself is simulated, in CPython.

`memlab.step` lives on reference counts, which MicroPython lacks. Where a reader asks for a step
that was not counted beforehand, the page starts a CPython with the whole package in it, and asks
this module; whatever memlab describes on a command line it describes there.
"""

from __future__ import annotations

import json

from ..base.message import Message, dumps
from ..ledger import Ledger
from ..model import Model
from ..recipe import Recipe
from ..run import Run
from ..step.core.moments import hills
from ..step.simulate import simulate
from . import simulated_words as say
from .answer import ORDER, answered
from .controls import checked
from .peak import CACHE
from .question import run_of
from .supported import Unknown, why
from .table_peak import HILLS, Highest

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from .table_peak import Lookup, Rows


def answer(state: str, advise: bool = False) -> str:
    """What the page shows for a state in JSON, as memlab.page.answer.answer.

    A step that memlab does not describe comes back as {"refused": why}.
    """
    try:
        found = answered(json.loads(state), _no_table, advise, Counted)
        asked = checked(json.loads(state))
        run = run_of(asked)
    except (ValueError, TypeError) as error:
        return dumps({"error": why(error)})
    if not found["peak"]:
        return dumps({"refused": Message(say.NOT_COUNTED, why=found["why"])})
    if run.devices.ranks > 1 and not run.devices.fsdp:
        found["leaves_out"].append(say.LEFT_BY_RANKS)
    return dumps(found)


def _no_table(name: str, kind: str) -> str:
    return ""


class Counted(Highest):
    """The highest moment of a step that was simulated now; of several ranks, of the fullest one.

    What a pipeline's last rank joins at the end is in the hill of the loss: it is all logits.

    Raises      Unknown where memlab.step.simulate refuses
    """

    def __init__(self, model: Model, recipe: Recipe, run: Run, lookup: Lookup) -> None:
        try:
            step = simulate(model, recipe, run)
        except ValueError as reason:
            raise Unknown(why(reason)) from None
        found = hills(step)
        tops = {name: found[name].total() for name in HILLS if name in found}
        self.moment = next(name for name in tops if tops[name] == step.peak.bytes)
        self._held = {name: _named(found[name]) for name in found}
        self.hills = tops
        self.total = step.peak.bytes

    def rows(self) -> Rows:
        """What is held then: {term: (bytes, formula)}."""
        held = self._held[self.moment]
        return {name: (held[name], say.TENSOR_BY_TENSOR) for name in held}

    def stack(self, hill: str) -> dict[str, int]:
        """What the top of a hill is made of: {term: bytes}."""
        return self._held[hill]


def _named(ledger: Ledger) -> dict[str, int]:
    """Terms as the page names them, in its order: what it has no name for is `other`."""
    made: dict[str, int] = {}
    for row in ledger.rows:
        name = CACHE if row.term == "kv_cache" else row.term
        name = name if name in ORDER else "other"
        made[name] = made.get(name, 0) + (row.derived or 0)
    return {name: made[name] for name in ORDER if made.get(name)}
