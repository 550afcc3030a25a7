"""The first answers with each unseen source's own terms, and those of today, source by source."""

from .. import readings
from ..answers import summary
from . import answers


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


def _both(first, now, wanted):
    readings, answered, _, middle, far = summary([a for a in first if wanted(a)])
    share = f"{answered} ({answered / readings:.0%})"
    errors = "— | —" if middle is None else f"{middle:.1%} | {far:+.1%}".replace("-", "−")
    _, told, _, median, _ = summary([a for a in now if wanted(a)])
    today = "—" if median is None else f"{median:.1%}"
    return f"{readings} | {share} | {errors} | {told} | {today}"
