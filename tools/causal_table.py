"""The table of the types of language models, from what tools/causal_types.py wrote."""

import json
from collections import Counter

WAYS = {
    "closed form": "described: `memlab estimate` and `memlab trace`",
    "traced": "by their own code: `memlab trace`",
    "refused": "refused",
}


def types(root):
    """How many types each way of answering has, and how far from real steps; then the others."""
    rows = json.loads((root / "book" / "causal_types.json").read_text(encoding="utf-8"))
    count = Counter(row["how"] for row in rows)
    lines = ["| answered | types | run for real | largest difference |", "|---|---|---|---|"]
    for how, words in WAYS.items():
        apart = [
            abs(row["traced"] - row["real"]) for row in rows if row["how"] == how and "real" in row
        ]
        real = f"{len(apart)} | {max(apart):,} B" if apart else "— | —"
        lines.append(f"| {words} | {count[how]} | {real} |")
    lines += ["", "| refused | what it says |", "|---|---|"]
    lines += [
        f"| `{row['type']}` | {_cell(row['why'])} |" for row in rows if row["how"] == "refused"
    ]
    traced = ", ".join(f"`{row['type']}`" for row in rows if row["how"] == "traced")
    return "\n".join([*lines, "", f"Traced by their own code: {traced}."])


def _cell(words):
    """A reason, as it may stand in a cell."""
    return words.replace("|", "/").replace("<", "&lt;")
