"""The tables of the page, from stored errors: classes, sources, the worst, what is refused."""

import json
from collections import Counter

from . import misses
from .answers import summary
from .readings import ROOT, sources
from .stored import stored

GOALS = {"training, one GPU": "2%", "inference": "1%", "several GPUs": "5%"}
MOST = 10


def classes(root):
    """Answered and errors of each class of runs."""
    found = stored()
    head = [
        "| class | readings | answered | counted | median error | worst | goal for the median |"
    ]
    lines = [*head, "|---|---|---|---|---|---|---|"]
    for group in dict.fromkeys(a.reading.group for a in found):
        line = _row([a for a in found if a.reading.group == group])
        lines.append(f"| {group} | {line} | {GOALS[group]} |")
    lines.append(f"| all | {_row(found)} | — |")
    return "\n".join(lines)


def by_source(root):
    """One row a source: where it stands, and how memlab does on it."""
    found = stored()
    head = "| source | licence | date | readings | answered | counted | median error | worst |"
    lines = [head, "|---|---|---|---|---|---|---|---|"]
    for name, told in sources().items():
        where = f"[{told['source']}](https://github.com/{told['repository']})"
        line = _row([a for a in found if a.reading.source == name])
        lines.append(f"| {where} | {told['licence']} | {told['date']} | {line} |")
    return "\n".join(lines)


def worst(root):
    """The counted readings that miss most, each with its reason."""
    found = sorted((a for a in stored() if a.counted), key=lambda a: -abs(a.error))[:MOST]
    lines = ["| reading | posted | predicted | error | why |", "|---|---|---|---|---|"]
    for a in found:
        sizes = f"{a.reading.bytes / 2**30:.2f} GiB | {a.bytes / 2**30:.2f} GiB"
        why = misses.why(a.reading).strip()
        lines.append(f"| `{a.reading.id}` | {sizes} | {_signed(a.error)} | {why} |")
    return "\n".join(lines)


def refused(root):
    """Why readings have no figure, or are not counted, and how many each."""
    counts = Counter(_kind(a.reason) for a in stored() if a.reason)
    lines = ["| reason | readings |", "|---|---|"]
    lines += [f"| {reason} | {count} |" for reason, count in counts.most_common()]
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


def peers(root):
    """Other calculators on the readings that they answer, and memlab on the very same ones."""
    found = json.loads((ROOT / "benchmarks" / "posted.json").read_text(encoding="utf-8"))
    lines = ["| tool | class | answers | median error | worst | memlab's median | worst |"]
    lines += ["|---|---|---|---|---|---|---|"]
    for name, tool in found["tools"].items():
        version = f"{name} {tool['version']}".strip() if tool["version"] else name
        for group, line in tool["groups"].items():
            if line["answers"]:
                said = [_two(line), _two(line["memlab"])]
                lines.append(f"| {version} | {group} | {line['answers']} | {' | '.join(said)} |")
        if not any(line["answers"] for line in tool["groups"].values()):
            lines.append(f"| {version} | — | 0 | — | — | — | — |")
    return "\n".join(lines)


def _two(line):
    return f"{line['median_error']:.1%} | {_signed(line['worst_error'])}"


def _kind(reason):
    return reason.split(":")[0]


def _row(found):
    readings, answered, counted, middle, far = summary(found)
    share = f"{answered} ({answered / readings:.0%})"
    errors = "— | —" if middle is None else f"{middle:.2%} | {_signed(far)}"
    return f"{readings} | {share} | {counted} | {errors}"


def _signed(error):
    return f"{error:+.1%}".replace("-", "−")
