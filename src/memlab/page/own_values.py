"""What a control is where its choice is the default: the value that the form shows beside it.

The framework is memlab.run.loops', and what it takes memlab.run.program_defaults'; a control whose
choice is another one shows its default all the same, so that a reader sees what it replaces.
"""

from __future__ import annotations

from ..base.message import Message
from ..families import has_config, record_of
from ..run.loops import LOOPS
from ..run.optimizer_loops import loop_of
from ..run.program_defaults import adamw
from ..step import keys
from . import words as say
from .controls import OWN
from .question import label_of, model_of, recipe_of, run_of

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from .question import State

SWITCHED = {"none": "off", "block": "on"}
UNSAID = {"optimizer_impl": OWN, "attention": OWN, "checkpoint": OWN, "precision": OWN}


def own_values(state: State) -> dict[str, str]:
    """For each control with a default that a framework or a model has: what to call that choice.

    A default that cannot be is no part of it: where a config says what no recipe has, a reader has
    chosen another.
    """
    asked = dict(state)
    asked.update(UNSAID)
    told: dict[str, str] = {}
    for name, value in (("attention", _attention), ("checkpoint", _checkpoint)) + OF_RECIPES:
        try:
            told[name] = _called(_program(name, asked), value(asked))
        except ValueError:
            continue
    return told


def _program(name: str, state: State) -> str:
    """Whose default it is: attention is the model's, what is not AdamW's loop the optimizer's."""
    run = run_of(state)
    if name == "optimizer_impl" and not (state["optimizer"] == "adamw" and adamw(run)):
        return ""
    return "" if name == "attention" else LOOPS[run.loop].called


def _attention(state: State) -> str:
    model = model_of(state)  # of a type that is not described there is none
    if not has_config(model.family):  # nor, here, of one that was recorded
        raise ValueError
    usual = "eager" if record_of(model.family).eager_alone else "sdpa"
    return str(keys.attention(model.config, None, usual))


def _checkpoint(state: State) -> str:
    return SWITCHED[run_of(state).checkpointing]


def _precision(state: State) -> str:
    return label_of(recipe_of(state))


def _optimizer(state: State) -> str:
    return loop_of(recipe_of(state), run_of(state))


OF_RECIPES = (("precision", _precision), ("optimizer_impl", _optimizer))


def _called(program: str, value: str) -> str:
    if program:
        return Message(say.OWN_OF, program=program, value=value)
    return Message(say.OWN_VALUE, value=value)
