"""What a translation has to keep: formulas, code, links, figures, and the shape of its block."""

import re
from collections import Counter
from decimal import Decimal

from blocks import SILENT, parser

DIGITS = re.compile(r"\d+(?:[.,\u00a0\u202f]\d+)*")
# As catalogues write numbers, in every language: the page turns them (memlab.base.numerals).
NUMBER = re.compile(r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?")
# Powers of ten with a name: 197 million is 197 milhões and 1.97 億.
POWERS = {"million": 6, "milhão": 6, "milhões": 6, "billion": 9, "bilhão": 9, "bilhões": 9}
POWERS |= {"trillion": 12, "trilhão": 12, "trilhões": 12, "萬": 4, "百萬": 6, "億": 8, "兆": 12}
POWERS |= {"M": 6, "B": 9}  # 70B are 70 billion; bytes stand apart, 70 B
POWER = re.compile(r"(?:[ -]?(mil\w+|bi\w+|tri\w+|百?萬|[億兆])|([MB])(?![A-Za-zÀ-ÿ]))")
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
    """The values of the numbers of the prose; a version, 2.13.0, counts as it is written."""
    rest = SILENT.sub(" ", text)
    return Counter(_value(found[0], rest[found.end() :]) for found in DIGITS.finditer(rest))


def _value(found, after):
    """The number as a plain decimal, times the power of ten that is named behind it."""
    if not NUMBER.fullmatch(found):
        return found
    power = POWER.match(after)
    zeros = POWERS.get(power[1] or power[2], 0) if power else 0
    value = Decimal(found.replace(",", "")).scaleb(zeros)
    return f"{value.normalize():f}"


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
