"""Trace a mixture that asks its router which experts to run: under an assumed routing, and another.

`transformers` multiplies the rows of all experts in one grouped product, which no routing changes.
A few types loop over their experts instead, and what they allocate follows the load of each.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..measure.routed import Routed
from ..measure.traced import Trace
from ..measure.untraceable import CannotTrace
from ..units import text
from .causal import GROUPED, Causal

EXPERTS = re.compile(r"(?<!shared_)experts$|^zero_expert_num$")
PER_TOKEN = re.compile(r"experts?_per_tok|top_?k")
EVEN = (
    "routing: experts run one after the other, and the routing is assumed even, as many rows for "
    "each; with every token at the same experts the peak is {size}"
)


def routed(model: Causal, once: Callable[[], Trace], refused: CannotTrace) -> Trace:
    """What `once` traces if every token's experts are assumed; `refused` where that is no help.

    Raises      `refused`, unless its model is a mixture, and the trace is possible so
    """
    if not choices(model)[0]:
        raise refused
    try:
        with Routed(*choices(model), "even"):
            even = once()
        if GROUPED in even.notes:  # what its code read was no choice of a router
            return even
        with Routed(*choices(model), "fullest"):
            fullest = once()
    except CannotTrace:
        raise refused from None
    even.notes = (*even.notes, EVEN.format(size=text(fullest.peak)))
    return even


def choices(model: Causal) -> tuple[set[int], set[int]]:
    """How many experts a router may choose among, and how many it chooses, by the config."""
    numbers = list(_numbers({**model.config, **model.text.to_dict()}))
    experts = {value for key, value in numbers if EXPERTS.search(key)}
    # Some route to experts that compute nothing as well, in one row of scores.
    experts |= {sum(experts)} if experts else set()
    return experts, {value for key, value in numbers if PER_TOKEN.search(key)}


def is_assumed(step: Trace) -> bool:
    """Whether a routing was assumed for a trace."""
    return any(note.startswith("routing:") for note in step.notes)


def _numbers(config: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Every whole number of a config, objects inside it included."""
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from _numbers(value)
        elif type(value) is int:
            yield key, value
