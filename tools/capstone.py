"""The capstone's tables of book/capstone.md, from memlab/data/capstone/cases.toml.

`tools/book.py` puts them where the page says `<!-- capstone_cases -->`, by way of tools/status.py.
"""

import json

from memlab.capstone import cases, judged
from memlab.capstone.judge import stated
from memlab.cli import check_capstone, check_file
from memlab.cli.check_capstone import Entry, Person
from memlab.estimate import peak
from memlab.units import text

SOLUTIONS = "book/courses/capstone"  # with what the first of them ran, when it was rehearsed
HEAD = "| case | GPU | model | an update | trained | deadline | host and GPU | as it begins |"


def table(root):
    """A row for each case: what is asked, and the peak of the script that it begins with."""
    rows = [HEAD, "|---|---|---|---|---|---|---|---|"]
    for case in cases().values():
        trained = f"adapters, rank {case.rank} or more" if case.rank else "all weights"
        moved = f"{case.moved} GiB" if case.moved else "none"
        cells = [f"{case.number}. {case.title}", case.gpu, case.model]
        cells += [f"{case.sequences} × {case.tokens:,} tokens", trained]
        begins_at = f"{text(peak(*begins(case)))}, in `{case.phase}`, most of it `{case.largest}`"
        cells += [f"{case.forwards:g} forward passes", moved, begins_at]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def begins(case):
    """Model, recipe and run of the script that a case begins with."""
    return case.of_model, case.recipe, case.run


def quality(root):
    """The budget of quality: bits of a weight and of its optimizer states, at least."""
    rows = [
        "| cases | bits of a weight | optimizer state for each trained weight |",
        "|---|---|---|",
    ]
    groups: dict[tuple[int, int], list[str]] = {}
    for case in cases().values():
        groups.setdefault((case.weights, case.states), []).append(f"{case.number}")
    for (weights, states), numbers in groups.items():
        rows.append(f"| {', '.join(numbers)} | {weights} | {states} bits |")
    return "\n".join(rows)


def worked(root):
    """The reference solution of the first case, as it was handed in."""
    return fenced((root / SOLUTIONS / cases()[1].name).read_text(encoding="utf-8"), "python")


def answer(root):
    """What `memlab check --capstone` prints of it, from what was recorded of its rehearsal."""
    case = cases()[1]
    words = stated((root / SOLUTIONS / case.name).read_text(encoding="utf-8"))
    seen = json.loads((root / SOLUTIONS / "observed_01.json").read_text(encoding="utf-8"))
    entry = Entry(1, case.name, judged(case, seen, words))
    parts = check_capstone.parts([Person("", {1: entry}, ())], room=False)
    return fenced(check_file.as_lines(parts), "text")


def fenced(words, language):
    return f"```{language}\n{words.rstrip()}\n```"
