"""The figures that every answer has: the card's, and the sum of what is asked of it."""

from __future__ import annotations

from ..terms.context import CONTEXT
from ..units import text
from .asked import card_of
from .command import command, script
from .highest import BUCKETS
from .peak import SHARDED, TERMS

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    from .asked import State
    from .highest import Rows

CACHE = "KV cache"
ORDER: tuple[str, ...] = ("weights", "reference", "master", "gradients", "accumulator", "optimizer")
ORDER += (BUCKETS, "pipeline buffers") + TERMS[1:] + SHARDED + (CACHE,)


def begun(state: State, name: str, parameters: int) -> dict[str, Any]:
    """An answer to a state, still without figures."""
    card = card_of(state)
    limit = max(0, card.limit - CONTEXT)  # as memlab.fit.limit_of
    return {
        "name": name,
        "parameters": parameters,
        "card": card.name,
        "usable": card.limit,
        "limit": limit,
        "limit_text": text(limit),
        "peak": True,
        "moment": "",
        "hills": [],
        "stacks": {},
        "changes": [],
        "sets": [],
        "flags": [],
        "over": [],
        "why": "",
        "divides": "",
        "serving": "",
        "command": command(state),
        "script": script(state),
    }


def summed(found: dict[str, Any], rows: Rows) -> None:
    """Put the rows into an answer, their sum, and whether it fits."""
    limit, total = found["limit"], sum([rows[name][0] for name in rows])
    found["total"], found["total_text"] = total, text(total)
    found["rows"] = [
        {"term": name, "bytes": size, "text": text(size), "formula": formula}
        for name, (size, formula) in [(name, rows[name]) for name in ORDER if name in rows]
    ]
    found["fits"] = total <= limit
    found["left"] = text(abs(limit - total))
