"""What a translation has to keep: formulas, code, links, figures, and the shape of its block."""

import re
from collections import Counter

from blocks import SILENT, parser

DIGITS = re.compile(r"\d+(?:[.,\u00a0\u202f]\d+)*")
MONTHS = "January February March April May June July August September October November December"
MONTH = re.compile(rf"\b(?:{'|'.join(MONTHS.split())})\b")
MONTH_IN_CHINESE = re.compile(r"\d+ ?月")
# Only these may differ: where a line breaks, and how much text stands between two marks.
LOOSE = ("text", "softbreak")


def problems(english, translated):
    """What is wrong with a translation, a line each; nothing where it may be printed."""
    found = []
    if months := len(MONTH.findall(english)):  # what English names has a number in Chinese
        translated = MONTH_IN_CHINESE.sub("月", translated, count=months)
    for what, kept in (("kept as it is", silent), ("figures", figures), ("marks", marks)):
        before, after = kept(english), kept(translated)
        if lost := before - after:
            found.append(f"{what}: missing {_list(lost)}")
        if more := after - before:
            found.append(f"{what}: not in the English {_list(more)}")
    if stray(english) != stray(translated):
        found.append("an asterisk is left in the text: a bold or an italic that does not close")
    if shape(english) != shape(translated):
        found.append("it is read as another kind of block (a list, a heading, two paragraphs)")
    return found


def silent(text):
    """Code, formulas and what links lead to, how often each."""
    return Counter(SILENT.findall(text))


def figures(text):
    """The numbers of the prose, whatever separates their thousands and decimals."""
    return Counter(re.sub(r"\D", "", found) for found in DIGITS.findall(SILENT.sub(" ", text)))


def marks(text):
    """Bold, italics, links …: what the parser makes of them, so a bold that fails is missed."""
    inside = [t for t in parser().parse(text, {}) if t.type == "inline"]
    return Counter(c.type for t in inside for c in t.children if c.type not in LOOSE)


def stray(text):
    """Asterisks that stay text: a mark beside an ideograph did not close."""
    inside = [t for t in parser().parse(text, {}) if t.type == "inline"]
    return sum(c.content.count("*") for t in inside for c in t.children if c.type == "text")


def shape(text):
    return [t.type for t in parser().parse(text, {}) if t.type != "inline"]


def _list(counter):
    return ", ".join(sorted(counter.elements()))
