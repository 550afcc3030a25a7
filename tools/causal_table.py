"""The tables of the types of language models, from what tools/causal_types.py wrote."""

import json
from collections import Counter

from memlab.families import RECORDED

PRECISIONS = ("fp32", "bf16", "autocast")
WAYS = {
    "closed form": "described: `memlab estimate` and `memlab trace`",
    "recorded": "recorded: `memlab estimate` and `memlab trace`",
    "traced": "neither, traced anew each time: `memlab trace`",
    "refused": "refused",
}


def types(root):
    """How many types each way of answering has, and how far from real steps."""
    rows = _rows(root)
    count = Counter(row["how"] for row in rows)
    lines = ["| kind, and who answers | types | types run for real | largest difference |"]
    lines.append("|---|---|---|---|")
    for how, words in WAYS.items():
        apart = [
            abs(row["traced"] - row["real"]) for row in rows if row["how"] == how and "real" in row
        ]
        real = f"{len(apart)} | {max(apart):,} B" if apart else "— | —"
        lines.append(f"| {words} | {count[how]} | {real} |")
    return "\n".join(lines)


def listed(root):
    """The types that are refused, each with its reason, and the names of those that are traced."""
    rows = _rows(root)
    lines = ["| refused | what it says |", "|---|---|"]
    lines += [
        f"| `{row['type']}` | {_cell(row['why'])} |" for row in rows if row["how"] == "refused"
    ]
    traced = ", ".join(f"`{row['type']}`" for row in rows if row["how"] == "traced")
    recorded = ", ".join(f"`{row['type']}`" for row in rows if row["how"] == "recorded")
    lists = [f"Recorded from their own code: {recorded}.", ""]
    lists += [f"Traced by their own code: {traced}."]
    return "\n".join([*lines, "", *lists, "", _page(root, rows)])


def _rows(root):
    rows = json.loads((root / "book" / "causal_types.json").read_text(encoding="utf-8"))
    for row in rows:
        if row["how"] == "traced" and row["type"] in RECORDED:
            row["how"] = "recorded"
    return rows


def _page(root, rows):
    """What the calculator of the page says without an installation, which has no code to trace."""
    page = root / "book" / "calculator"
    tables = json.loads((page / "types.json").read_text(encoding="utf-8"))["types"]
    described = sum(row["how"] == "closed form" for row in rows)
    names = [path.name.split(".") for path in (page / "peaks").glob("*.json")]
    peaks = len({words[0] for words in names if words[1] in PRECISIONS})  # no loop's, no rank's
    cached = sum(bool(table["cache"]) for table in tables.values())
    return (
        f"The [calculator](calculator.md) has no code to trace. Of the {described} types that are "
        f"described it gives a step's peak for {peaks} and for the rest what stays between two "
        f"steps, as for {len(tables)} types more, {cached} of them with a KV cache; it refuses "
        f"{len(rows) - described - len(tables)} by name."
    )


def _cell(words):
    """A reason, as it may stand in a cell."""
    return words.replace("|", "/").replace("<", "&lt;")
