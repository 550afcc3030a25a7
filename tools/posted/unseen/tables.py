"""The tables of the test that memlab could not see: by class, by source, and what it refused."""

from collections import Counter

from .. import readings
from ..answers import summary
from . import answers


def classes(root):
    """The first errors of each class of runs, and those of today."""
    first, now = answers.stored()
    lines = ["| class | readings | answered | median error | worst | today: answered | median |"]
    lines.append("|---|---|---|---|---|---|---|")
    groups = dict.fromkeys(a.reading.group for a in first)
    for group in groups:
        lines.append(f"| {group} | {_both(first, now, lambda a, g=group: a.reading.group == g)} |")
    lines.append(f"| all | {_both(first, now, lambda a: True)} |")
    return "\n".join(lines)


def by_source(root):
    """The first errors of each source, and those of today."""
    first, now = answers.stored()
    head = (
        "| source | date | readings | answered | median error | worst | today: answered | median |"
    )
    lines = [head, "|---|---|---|---|---|---|---|---|"]
    for name, told in readings.sources(answers.FOLDER).items():
        address = told.get("address") or f"https://github.com/{told['repository']}"
        line = _both(first, now, lambda a, n=name: a.reading.source == n)
        lines.append(f"| [{told['source']}]({address}) | {told['date']} | {line} |")
    return "\n".join(lines)


def refused(root):
    """Why readings had no figure at first, and how many each."""
    first, _ = answers.stored()
    counts = Counter(a.reason for a in first if a.reason)
    lines = ["| reason | readings |", "|---|---|"]
    lines += [f"| {reason} | {count} |" for reason, count in counts.most_common()]
    return "\n".join(lines)


def _both(first, now, wanted):
    readings, answered, _, middle, far = summary([a for a in first if wanted(a)])
    share = f"{answered} ({answered / readings:.0%})"
    errors = "— | —" if middle is None else f"{middle:.1%} | {far:+.1%}".replace("-", "−")
    _, told, _, median, _ = summary([a for a in now if wanted(a)])
    today = "—" if median is None else f"{median:.1%}"
    return f"{readings} | {share} | {errors} | {told} | {today}"
