"""The tables and the sentence of the page of posted readings, from stored figures.

Alone       one printed command a reading
Own terms   the source's own description, which may add bytes to the product's figure by hand
Traced      those of them whose figure is a trace of the source's own code
"""

import re
from collections import Counter

from . import readings
from .misses import KINDS, REASONS, UNEXPLAINED
from .readings import ROOT, summary

NEAR = 0.05
MOST, FEW = 12, 5
README = ROOT / "README.md"
SENTENCE = re.compile(r"(<!-- posted -->\n).*?(\n<!-- /posted -->)", re.S)


def headline(root):
    """Kinds of runs: the product alone, the sources' own terms, traces; unseen sources first."""
    head = "| | readings | **product alone** | median | worst | with own terms | median | traced |"
    lines = [f"{head} median |"]
    lines.append("|---" * 9 + "|")
    for name, alone, own in _both():
        lines.append(f"| **{name}** | | | | | | | | |")
        for group in [*dict.fromkeys(a.reading.group for a in alone), "all"]:
            some = [a for a in alone if group in (a.reading.group, "all")]
            theirs = [a for a in own if group in (a.reading.group, "all")]
            traced = {a.reading.id for a in some if a.traced}
            cells = [*told(some), *told(theirs)[:2]]
            cells += told([a for a in theirs if a.reading.id in traced])[:2]
            lines.append(f"| {group} | {len(some)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _both():
    fresh, worked = readings.commands()
    yield "sources that nobody had worked on", fresh, readings.unseen()[1]
    yield "sources that were worked on", worked, readings.answers()


def told(found):
    """Figures of some answers, their median and the worst, as cells."""
    *_, figures, median, worst = summary(found)
    if not figures:
        return "0", "—", "—"
    return str(figures), f"{median:.1%}", signed(worst)


def shares(root):
    """Of the figures: how many lie within 5 %, how many are too low by more, how many composed."""
    lines = ["| | figures of one command | within 5% | more than 5% too low | "]
    lines[0] += (
        "more than 5% too high | figures with a source's own terms | with bytes added by hand |"
    )
    lines.append("|---" * 7 + "|")
    for name, alone, own in _both():
        errors = [a.error for a in alone if a.counted]
        by_hand = {a.reading.id for a in alone if a.composed}
        mine = [a for a in own if a.bytes is not None]
        counts = (
            sum(abs(e) <= NEAR for e in errors),
            sum(e < -NEAR for e in errors),
            sum(e > NEAR for e in errors),
        )
        cells = [f"{count} ({count / len(errors):.0%})" for count in counts]
        added = sum(a.reading.id in by_hand for a in mine)
        cells += [str(len(mine)), f"{added} ({added / len(mine):.0%})"]
        lines.append(f"| {name} | {len(errors)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _groups():
    """Each kind of runs of sources that nobody had worked on, with its answers."""
    fresh, _ = readings.commands()
    for group in dict.fromkeys(a.reading.group for a in fresh):
        yield group, [a for a in fresh if a.reading.group == group]


def beside(others):
    """Rows for the table of calculators: what this page's answers are worth, and dashes."""
    for group, some in _groups():
        figures, median, worst = told(some)
        what = f"[errors on strangers' GPUs, one command each: {group}](#posted-page)"
        yield [what, f"{median}, {worst} ({figures})", *["—"] * others]


def sentence():
    """What README says, so that it says what the page says: a line for each kind of runs."""
    lines = []
    for group, some in _groups():
        figures, median, worst = told(some)
        lines.append(f"- {group}: {figures} of {len(some)} readings answered, {median} off at the")
        lines[-1] += f" median, {worst} at worst"
    return "\n".join(lines)


def readme():
    """README.md with its sentence made anew."""
    text = README.read_text(encoding="utf-8")
    return SENTENCE.sub(lambda m: m[1] + sentence() + m[2], text)


def examples(root):
    """One command of each source that has a figure, as it is typed, and how the source fares."""
    lines = []
    for found in readings.commands():
        for name in dict.fromkeys(a.reading.source for a in found):
            some = [a for a in found if a.reading.source == name]
            first = next((a for a in some if a.counted), None)
            if first is not None:
                figures, median, worst = told(some)
                said = f"{figures} of {len(some)} readings, {median} at the median, worst {worst}"
                lines += [f"# {name}: {said}", f"$ {first.command}"]
    return "\n".join(["```console", *lines, "```"])


def misses(root):
    """The kinds of rows that one command misses most, with the reason; unseen sources first."""
    lines = ["| rows | figures | lowest | highest | why |", "|---|---|---|---|---|"]
    for found in readings.commands():
        kinds: dict = {}
        for a in found:
            if a.counted and abs(a.error) > NEAR:
                kinds.setdefault(_reason(a), []).append(a.error)
        far = sorted(kinds.items(), key=lambda kind: -max(map(abs, kind[1])))
        for (what, why), errors in far[:MOST]:
            low, high = signed(min(errors)), signed(max(errors))
            lines.append(f"| {what} | {len(errors)} | {low} | {high} | {why} |")
    return "\n".join(lines)


def _reason(a):
    for pattern, what, why in REASONS:
        if re.search(pattern, a.reading.id):
            return what, why
    return f"{a.reading.source}, {a.reading.group}", UNEXPLAINED


def refused(root):
    """Why readings have no figure, and how many each; what few have in common is one row."""
    lines = ["| why there is no figure | unseen | worked on |", "|---|---|---|"]
    counts = [Counter(_kind(a.reason) for a in some if a.reason) for some in readings.commands()]
    every = sum(counts, Counter()).most_common()
    common = [reason for reason, count in every if count > FEW]
    rest = [reason for reason, count in every if count <= FEW]
    for reason in common:
        lines.append(f"| {reason} | {counts[0][reason]} | {counts[1][reason]} |")
    others = " | ".join(str(sum(count[reason] for reason in rest)) for count in counts)
    return "\n".join([*lines, f"| {len(rest)} other reasons | {others} |"])


def _kind(reason):
    """A refusal in the words of the page, without what differs from row to row."""
    return next((words for pattern, words in KINDS if re.search(pattern, reason)), reason)


def by_source(root):
    """One row a source that was worked on: where it stands, and how its own description does."""
    every = readings.answers()
    head = "| source | licence | date | readings | answered | counted | median error | worst |"
    lines = [head, "|---|---|---|---|---|---|---|---|"]
    for name, head in readings.sources().items():
        where = f"[{head['source']}](https://github.com/{head['repository']})"
        found = summary([a for a in every if a.reading.source == name])
        _, _, counted, middle, far = found
        errors = "— | —" if middle is None else f"{middle:.2%} | {signed(far)}"
        cells = f"{_answered(found)} | {counted} | {errors}"
        lines.append(f"| {where} | {head['licence']} | {head['date']} | {cells} |")
    return "\n".join(lines)


def unseen_sources(root):
    """The first errors of each source that nobody had worked on, and those of today."""
    first, now = readings.unseen()
    head = (
        "| source | date | readings | answered | median error | worst | today: answered | median |"
    )
    lines = [head, "|---|---|---|---|---|---|---|---|"]
    for name, head in readings.sources(readings.UNSEEN).items():
        where = head.get("address") or f"https://github.com/{head['repository']}"
        found, new = (summary([a for a in f if a.reading.source == name]) for f in (first, now))
        *_, middle, far = found
        errors = "— | —" if middle is None else f"{middle:.1%} | {signed(far)}"
        today = "—" if new[3] is None else f"{new[3]:.1%}"
        cells = f"{_answered(found)} | {errors} | {new[1]} | {today}"
        lines.append(f"| [{head['source']}]({where}) | {head['date']} | {cells} |")
    return "\n".join(lines)


def _answered(found):
    return f"{found[0]} | {found[1]} ({found[1] / found[0]:.0%})"


def impossible(root):
    """The readings that lie below what their own recipe needs."""
    lines = ["| reading | posted | what its recipe needs at least |", "|---|---|---|"]
    for a in readings.answers():
        if a.reason.startswith("cannot be"):
            needs = int(a.reason.split()[-2].replace(",", ""))
            gib = f"{a.reading.bytes / 2**30:.2f} GiB | {needs / 2**30:.2f} GiB"
            lines.append(f"| `{a.reading.id}` | {gib} |")
    return "\n".join(lines)


def signed(error):
    """As a share, with a real minus."""
    return f"{error:+.1%}".replace("-", "−")
