"""Steps that train adapters alone: which are counted for the page, and how their moments are named.

R rank of an adapter; the other letters are those of memlab.page.peak
"""

from __future__ import annotations

from ..adapters import Lora
from ..adapters.lora import linear_layers
from .peak import letters

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from ..model import Model
    from ..run import Run

EVERY, USUAL = "all", "qv"  # beside which layers: all linear ones, or those that peft takes alone
TARGETS = (EVERY, USUAL)  # of which there are tables
ATTENTION = "attention"  # beside each of its matrices: queries, keys, values and output
CHOSEN = TARGETS + (ATTENTION,)
TIED, EITHER = 6, "either"  # of the parts of a kind's name
BASES: tuple[str | None, ...] = (None, "nf4")
PRECISIONS = ("bf16", "fp32", "autocast")  # in which steps with adapters were counted


def targets_of(model: Model, which: str) -> tuple[str, ...]:
    """The names of the layers that have adapters.

    Source      peft, utils/constants.py: queries and values, or where one matrix makes
                queries, keys and values that one
    """
    layers = linear_layers(model)
    names = tuple(layers)
    if which == EVERY:
        return names
    if which == ATTENTION:
        return tuple([name for name in names if layers[name].component == "attention"])
    return ("q", "v") if "q" in names else ("qkv",)


def which_of(model: Model, lora: Lora, among: tuple[str, ...] = TARGETS) -> str:
    """The way back from `targets_of`, or nothing for other targets; among those with tables."""
    for which in among:
        if sorted(targets_of(model, which)) == sorted(lora.targets):
            return which
    return ""


def table_of(table: str, precision: str, base: str | None, which: str) -> str:
    """The name of a file of moments with adapters, of the family and the precision without."""
    return f"{table}.{precision}.{base or 'lora'}-{which}"


def kind_of(kind: str) -> str:
    """The name of a kind of step in such a file: tables that nobody trains are alike if tied."""
    parts = kind.split(".")
    parts[TIED] = EITHER
    return ".".join(parts)


def letters_of(model: Model, run: Run) -> dict[str, int]:
    """The value of each letter, the rank of the adapters among them."""
    made = letters(model, run)
    if run.lora is not None:
        made["R"] = run.lora.rank
    return made
