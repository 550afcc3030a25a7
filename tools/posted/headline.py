"""What a reader gets: the tables and the sentence of the product alone, from stored figures.

Alone       one printed command a reading: tools/posted/asked
Own terms   the source's own mapping, which may add bytes to the product's figure by hand
Traced      those of them whose figure is a trace of the source's own code
"""

import re

from .asked import answers as asked
from .asked.answers import middle
from .readings import ROOT
from .stored import stored
from .unseen import answers as unseen

NEAR = 0.05
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
            cells = [*told(middle(some)), *told(middle(theirs))[:2]]
            cells += told(middle([a for a in theirs if a.reading.id in traced]))[:2]
            lines.append(f"| {group} | {len(some)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _both():
    fresh, worked = asked.stored()
    yield "sources that nobody had worked on", fresh, unseen.stored()[1]
    yield "sources that were worked on", worked, stored()


def told(summary):
    """Figures, their median and the worst, as cells."""
    _, figures, median, worst = summary
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


def beside(others):
    """Rows for the table of calculators: what this page's answers are worth, and dashes."""
    fresh, _ = asked.stored()
    for group in dict.fromkeys(a.reading.group for a in fresh):
        figures, median, worst = told(middle([a for a in fresh if a.reading.group == group]))
        what = f"[errors on strangers' GPUs, one command each: {group}](#posted-page)"
        yield [what, f"{median}, {worst} ({figures})", *["—"] * others]


def sentence():
    """What README says, so that it says what the page says: a line for each kind of runs."""
    fresh, _ = asked.stored()
    lines = []
    for group in dict.fromkeys(a.reading.group for a in fresh):
        some = [a for a in fresh if a.reading.group == group]
        figures, median, worst = told(middle(some))
        lines.append(f"- {group}: {figures} of {len(some)} readings answered, {median} off at the")
        lines[-1] += f" median, {worst} at worst"
    return "\n".join(lines)


def readme():
    """README.md with its sentence made anew."""
    text = README.read_text(encoding="utf-8")
    return SENTENCE.sub(lambda m: m[1] + sentence() + m[2], text)


def signed(error):
    """As a share, with a real minus."""
    return f"{error:+.1%}".replace("-", "−")
