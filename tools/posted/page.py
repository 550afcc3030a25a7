"""The tables of the two pages on other people's GPUs, and README's sentence, from stored figures.

    python research/posted/ask.py --tables      print them

Alone       one printed command a measurement
Own terms   the source's own description, which may add bytes to the product's figure by hand
Traced      those of them whose figure is a trace of the source's own code

A long file: each table counts the same rows in another way, and they are read beside each other.
"""

import re
from collections import Counter

from . import readings
from .misses import KINDS, OWN_REASONS, REASONS, UNEXPLAINED
from .readings import ROOT, summary

NEAR, FAR = 0.05, 0.10
MOST, FEW = 12, 5
KINDS_OF_RUNS = ("training, one GPU", "inference", "several GPUs")
NAMES = ("sources held out", "sources worked on")
HEAD = ("answered", "median error", "within 5%", "within 10%", "more than 5% too low", "worst")
README = ROOT / "README.md"
SENTENCE = re.compile(r"(<!-- posted -->\n).*?(\n<!-- /posted -->)", re.S)


def headline(root):
    """What one command gave, by kinds of runs; of sources that nobody had worked on first."""
    lines = [*_head()]
    for name, found in zip(NAMES, readings.commands(), strict=True):
        lines += [f"| **{name}** | | | | | | |", *_by_kind(found)]
    return "\n".join(lines)


def fresh(root):
    """The same of the sources that nobody had worked on."""
    return "\n".join([*_head(), *_by_kind(readings.commands()[0])])


def worked(root):
    """The same of the sources that were worked on."""
    return "\n".join([*_head(), *_by_kind(readings.commands()[1])])


def _head():
    yield f"| | {' | '.join(HEAD)} |"
    yield "|---" * (len(HEAD) + 1) + "|"


def _by_kind(found):
    """A row for each kind of runs and one for all: how many, how far off, how many near, low."""
    for group in (*KINDS_OF_RUNS, "all"):
        some = [a for a in found if group in (a.reading.group, "all")]
        errors = [a.error for a in some if a.counted]
        counts = (
            sum(abs(e) <= NEAR for e in errors),
            sum(abs(e) <= FAR for e in errors),
            sum(e < -NEAR for e in errors),
        )
        figures, middle, worst = told(some)
        cells = [f"{figures} of {len(some)}", middle, *(part(n, errors) for n in counts), worst]
        yield f"| {group} | {' | '.join(cells)} |"


def part(count, every):
    """A number, and its share of all of them."""
    return f"{count} ({count / len(every):.0%})" if every else str(count)


def told(found):
    """Figures of some answers, their median and the worst, as cells."""
    *_, figures, median, worst = summary(found)
    if not figures:
        return "0", "—", "—"
    return str(figures), f"{median:.1%}", signed(worst)


def own_terms(root):
    """One command beside a description by hand and a trace of the source's own code."""
    lines = ["| | one command: answers | median error | code for the source: answers | "]
    lines[0] += "median error | answers with bytes added | trace of its code: answers | "
    lines[0] += "median error |"
    lines.append("|---" * 8 + "|")
    theirs = (readings.unseen()[1], readings.answers())
    for name, alone, own in zip(NAMES, readings.commands(), theirs, strict=True):
        lines.append(f"| **{name}** | | | | | | | |")
        by_hand = {a.reading.id for a in alone if a.composed}
        traced = {a.reading.id for a in alone if a.traced}
        for group in (*KINDS_OF_RUNS, "all"):
            some = [a for a in alone if group in (a.reading.group, "all")]
            mine = [a for a in own if group in (a.reading.group, "all")]
            answered = [a for a in mine if a.bytes is not None]
            count = sum(a.reading.id in by_hand for a in answered)
            added = f"{count} of {len(answered)} ({count / len(answered):.0%})"
            cells = [*told(some)[:2], *told(mine)[:2], added]
            cells += told([a for a in mine if a.reading.id in traced])[:2]
            lines.append(f"| {group} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _groups():
    """Each kind of runs of sources that nobody had worked on, with its answers."""
    found, _ = readings.commands()
    for group in KINDS_OF_RUNS:
        yield group, [a for a in found if a.reading.group == group]


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
        errors = [a.error for a in some if a.counted]
        near, low = sum(abs(e) <= NEAR for e in errors), sum(e < -NEAR for e in errors)
        lines.append(f"- {group}: {figures} of {len(some)} measurements answered, {median} off at")
        lines[-1] += f" the median, {near} within 5%, {low} more than 5% too low, worst {worst}"
    return "\n".join(lines)


def readme():
    """README.md with its sentence made anew."""
    text = README.read_text(encoding="utf-8")
    return SENTENCE.sub(lambda m: m[1] + sentence() + m[2], text)


def examples(root):
    """One command of each source that has a figure, as it is typed, and how the source fares."""
    lines = []
    heads = readings.sources(readings.UNSEEN) | readings.sources()
    for kind, found in zip(NAMES, readings.commands(), strict=True):
        lines.append(f"# --- {kind} ---")
        for name in dict.fromkeys(a.reading.source for a in found):
            some = [a for a in found if a.reading.source == name]
            first = next((a for a in some if a.counted), None)
            if first is not None:
                figures, median, worst = told(some)
                said = f"{figures} of {len(some)} answered, median error {median}, worst {worst}"
                lines += [f"# {heads[name]['source']}: {said}", f"$ {first.command}"]
    return "\n".join(["```console", *lines, "```"])


def misses(root):
    """The kinds of rows that one command misses most, with the reason; unseen sources first."""
    lines = [*_missed()]
    for name, found in zip(NAMES, readings.commands(), strict=True):
        lines += [f"| **{name}** | | | | |", *_far(found, REASONS, MOST)]
    return "\n".join(lines)


def own_misses(root):
    """The kinds of rows of those sources that are missed most even with the source's own terms."""
    return "\n".join([*_missed(), *_far(readings.unseen()[1], OWN_REASONS, MOST)])


def _missed():
    yield "| what was run | answers more than 5% off | errors from | errors to | why |"
    yield "|---|---|---|---|---|"


def _far(found, reasons, most):
    """Rows of the kinds that are missed most: how many are missed, how far, and why."""
    kinds: dict = {}
    for a in found:
        if a.counted and abs(a.error) > NEAR:
            kinds.setdefault(_reason(a, reasons), []).append(a.error)
    far = sorted(kinds.items(), key=lambda kind: -max(map(abs, kind[1])))
    for (what, why), errors in far[:most]:
        low, high = signed(min(errors)), signed(max(errors))
        yield f"| {what} | {len(errors)} | {low} | {high} | {why} |"


def _reason(a, reasons):
    for pattern, what, why in reasons:
        if re.search(pattern, a.reading.id):
            return what, why
    return f"{a.reading.source}, {a.reading.group}", UNEXPLAINED


def refused(root):
    """Why measurements have no figure, and how many each; what few have in common is one row."""
    lines = ["| why there is no figure | held out | worked on |", "|---|---|---|"]
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
    head = "| source | license | date | answered | counted | median error | worst |"
    lines = [head, "|---|---|---|---|---|---|---|"]
    for name, head in readings.sources().items():
        where = f"[{head['source']}](https://github.com/{head['repository']})"
        found = summary([a for a in every if a.reading.source == name])
        _, _, counted, middle, far = found
        errors = "— | —" if middle is None else f"{middle:.2%} | {signed(far)}"
        cells = f"{_answered(found)} | {counted} | {errors}"
        lines.append(f"| {where} | {head['licence']} | {head['date']} | {cells} |")
    return "\n".join(lines)


def unseen_sources(root):
    """The first errors of each source that nobody had worked on, and those of this edition."""
    first, now = readings.unseen()
    head = (
        "| source | date | first answers | median error | worst | answers in this edition "
        "| median error in this edition |"
    )
    lines = [head, "|---|---|---|---|---|---|---|"]
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
    return f"{found[1]} of {found[0]}"


def impossible(root):
    """The readings that lie below what their own recipe needs."""
    lines = ["| measurement | published | what its recipe needs at least |", "|---|---|---|"]
    for a in readings.answers():
        if a.reason.startswith("cannot be"):
            needs = int(a.reason.split()[-2].replace(",", ""))
            gib = f"{a.reading.bytes / 2**30:.2f} GiB | {needs / 2**30:.2f} GiB"
            lines.append(f"| `{a.reading.id}` | {gib} |")
    return "\n".join(lines)


def signed(error):
    """As a share, with a real minus."""
    return f"{error:+.1%}".replace("-", "−")


TABLES = (headline, own_terms, misses, refused, own_misses, by_source, unseen_sources)


def tables():
    """All of them as text, for somebody who wants no page."""
    return "\n\n".join(table(ROOT) for table in TABLES)
