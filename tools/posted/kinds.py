"""Rows of a kind, product alone: one command of each source, large misses, and refusals."""

import re
from collections import Counter

from .asked import answers as asked
from .asked.answers import middle
from .headline import NEAR, signed
from .headline import told as cells
from .misses import KINDS, REASONS, UNEXPLAINED

MOST, FEW = 12, 5


def examples(root):
    """One command of each source that has a figure, as it is typed, and how the source fares."""
    lines = []
    for found in asked.stored():
        for name in dict.fromkeys(a.reading.source for a in found):
            some = [a for a in found if a.reading.source == name]
            first = next((a for a in some if a.counted), None)
            if first is not None:
                figures, median, worst = cells(middle(some))
                said = f"{figures} of {len(some)} readings, {median} at the median, worst {worst}"
                lines += [f"# {name}: {said}", f"$ {first.command}"]
    return "\n".join(["```console", *lines, "```"])


def misses(root):
    """The kinds of rows that one command misses most, with the reason; unseen sources first."""
    lines = ["| rows | figures | lowest | highest | why |", "|---|---|---|---|---|"]
    for found in asked.stored():
        kinds: dict = {}
        for a in found:
            if a.counted and abs(a.error) > NEAR:
                kinds.setdefault(_reason(a), []).append(a)
        for (what, why), some in sorted(kinds.items(), key=lambda kind: -_far(kind[1]))[:MOST]:
            errors = [a.error for a in some]
            low, high = signed(min(errors)), signed(max(errors))
            lines.append(f"| {what} | {len(some)} | {low} | {high} | {why} |")
    return "\n".join(lines)


def _far(some):
    return max(abs(a.error) for a in some)


def _reason(a):
    for pattern, what, why in REASONS:
        if re.search(pattern, a.reading.id):
            return what, why
    return f"{a.reading.source}, {a.reading.group}", UNEXPLAINED


def refused(root):
    """Why readings have no figure, and how many each; what few have in common is one row."""
    lines = ["| why there is no figure | unseen | worked on |", "|---|---|---|"]
    counts = [Counter(kind(a.reason) for a in found if a.reason) for found in asked.stored()]
    every = sum(counts, Counter()).most_common()
    common = [reason for reason, count in every if count > FEW]
    rest = [reason for reason, count in every if count <= FEW]
    for reason in common:
        lines.append(f"| {reason} | {counts[0][reason]} | {counts[1][reason]} |")
    others = " | ".join(str(sum(count[reason] for reason in rest)) for count in counts)
    return "\n".join([*lines, f"| {len(rest)} other reasons | {others} |"])


def kind(reason):
    """A refusal in the words of the page, without what differs from row to row."""
    return next((words for pattern, words in KINDS if re.search(pattern, reason)), reason)
