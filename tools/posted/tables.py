"""The tables of the second half of the page, from stored errors: sources, and what cannot be."""

from .answers import summary
from .headline import signed
from .readings import sources
from .stored import stored


def by_source(root):
    """One row a source: where it stands, and how its own mapping does on it."""
    found = stored()
    head = "| source | licence | date | readings | answered | counted | median error | worst |"
    lines = [head, "|---|---|---|---|---|---|---|---|"]
    for name, told in sources().items():
        where = f"[{told['source']}](https://github.com/{told['repository']})"
        line = _row([a for a in found if a.reading.source == name])
        lines.append(f"| {where} | {told['licence']} | {told['date']} | {line} |")
    return "\n".join(lines)


def impossible(root):
    """The readings that lie below what their own recipe needs."""
    lines = ["| reading | posted | what its recipe needs at least |", "|---|---|---|"]
    for a in stored():
        if a.reason.startswith("cannot be"):
            needs = int(a.reason.split()[-2].replace(",", ""))
            gib = f"{a.reading.bytes / 2**30:.2f} GiB | {needs / 2**30:.2f} GiB"
            lines.append(f"| `{a.reading.id}` | {gib} |")
    return "\n".join(lines)


def _row(found):
    readings, answered, counted, middle, far = summary(found)
    share = f"{answered} ({answered / readings:.0%})"
    errors = "— | —" if middle is None else f"{middle:.2%} | {signed(far)}"
    return f"{readings} | {share} | {counted} | {errors}"
