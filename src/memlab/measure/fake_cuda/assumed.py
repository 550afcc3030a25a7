"""What a rehearsal assumed, each with the line that asked and how often; and what it left out."""

import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from ...base.message import Message
from ...base.messages import say
from .lines import Lines

# Option: what it may be; the first is taken where nothing is said.
POLICIES = {"routing": ("even", "fullest"), "mask": ("all", "half")}


def policies(said: str | None) -> dict[str, str]:
    """What `--assume routing=fullest,mask=half` means.

    Raises      ValueError for an unknown name or value
    """
    found = {name: values[0] for name, values in POLICIES.items()}
    for part in filter(None, (said or "").split(",")):
        name, _, value = part.partition("=")
        if value not in POLICIES.get(name, ()):
            known = "; ".join(f"{n}={' or '.join(values)}" for n, values in POLICIES.items())
            raise ValueError(f"cannot assume {part!r}; known: {known}")
        found[name] = value
    return found


@dataclass
class Assumed:
    """Counts of both.

    assumed     (what, line) -> times
    skipped     what was not run -> times
    """

    lines: Lines
    policy: dict[str, str]
    assumed: Counter[tuple[str, str]] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)

    def note(self, pattern: str, **values: Any) -> None:
        """Something was assumed here."""
        where = self.lines.of(sys._getframe(1))
        line = where.library if where.library.code else where.reader
        self.assumed[Message(pattern, **values), f"{line.where} {line.code}".strip()] += 1

    def told(self) -> list[str]:
        """A line for each assumption, the most frequent first: how often, what, and where."""
        counts = self.assumed.most_common()
        return [f"assumed {times} × {say(what)}   {where}" for (what, where), times in counts]

    def skip(self, pattern: str, **values: Any) -> None:
        """Something was not run."""
        self.skipped[Message(pattern, **values)] += 1
