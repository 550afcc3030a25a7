"""What keeps a translation from being printed: gaps, broken marks, terms translated two ways."""

import csv
import json
import re
from functools import cache

import catalogue
import guard
import outputs
import sources
from blocks import SILENT

TERMS = catalogue.LOCALE / "terms.csv"
PACKAGE = sources.ROOT / "src" / "memlab" / "locale"
LEFT = ("not translated", "fuzzy")  # how a problem begins that only time will mend
QUOTED = re.compile(r"<q\b.*?</q>")  # in its own language
PLACES = re.compile(r"\{\w+\}")
# A dotted name, a call of one, a flag, a name in quotes: no language says these in its own words.
CODE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?:\(\S*)?|(?<!\S)--[\w-]+|'\w+'")
IDEOGRAPH = re.compile(r"[\u4e00-\u9fff]")


def problems(language, name):
    """What is wrong with a page's catalogue, a line each."""
    found, blocks = [], sources.blocks_of(name)
    messages = {catalogue.block_of(m): m for m in catalogue.read(language, name)}
    if list(messages) != blocks:
        found.append("the page has changed: python tools/i18n update")
    for block in blocks:
        message = messages.get(block)
        if message is None or not message.msgstr:
            found.append(f"{LEFT[0]}: {block[:60]!r}")
        elif message.fuzzy:
            found.append(f"{LEFT[1]}: {block[:60]!r}")
        else:
            found += [f"{block[:60]!r}: {line}" for line in entry(language, block, message.msgstr)]
    found += [
        f"{LEFT[1]}: {outputs.STALE} {name}"
        for path in sources.chapters()
        if path.stem == name and outputs.kept(language, path) is None
    ]
    return found


def complete(language, name):
    """Whether a page has a catalogue and every entry of it may be printed."""
    messages = catalogue.read(language, name)
    return bool(messages) and all(m.msgstr and not m.fuzzy for m in messages)


def marked(language, name):
    """Whether a page says above its text that a part of it is English still."""
    return any(line.startswith(LEFT) for line in problems(language, name))


def entry(language, english, translated):
    """What is wrong with one translation; an empty one is only missing."""
    if not translated:
        return []
    english, _ = catalogue.in_context(english)
    found = guard.problems(english, translated)
    if sorted(PLACES.findall(english)) != sorted(PLACES.findall(translated)):
        found.append("the places {1}, {2} … of its numbers are not the same")
    if language == "zh-TW":
        found += simplified(translated)
    return found + two_ways(language, english, translated)


def simplified(text):
    """Ideographs that Taiwan's own encoding does not have: Simplified ones, nearly always."""
    strange = sorted({c for c in IDEOGRAPH.findall(text) if not _in_big5(c)})
    return [f"not written in Taiwan: {' '.join(strange)}"] if strange else []


def _in_big5(character):
    try:
        character.encode("cp950")
    except UnicodeEncodeError:
        return False
    return True


@cache
def terms():
    """The rows of terms.csv, longest English term first."""
    if not TERMS.exists():
        return []
    with TERMS.open(encoding="utf-8", newline="") as file:
        return sorted(csv.DictReader(file), key=lambda row: -len(row["en"]))


@cache
def _patterns(language):
    """Of each row of terms.csv: its term in English text, and the words that are never said."""
    column, found = language.replace("-", "_"), []
    for row in terms():
        here = re.compile(rf"\b{re.escape(row['en'])}s?\b", re.I)
        never = []
        for word in filter(None, row.get(f"never_{column}", "").split("|")):
            # Ideographs have no blanks around them; a word of letters is a word of its own.
            edge = "" if IDEOGRAPH.search(word) else r"\b"
            never.append((word.strip(), re.compile(edge + re.escape(word.strip()) + edge, re.I)))
        found.append((row, here, never))
    return found


def two_ways(language, english, translated):
    """Terms whose translation is fixed and not found; words that the language never uses."""
    column = language.replace("-", "_")
    rest = CODE.sub(" ", PLACES.sub(" ", SILENT.sub(" ", QUOTED.sub(" ", english))))
    found, said = [], translated.casefold()
    for row, here, _ in _patterns(language):
        if not here.search(rest):
            continue
        rest = here.sub(" ", rest)  # "optimizer state" is one term, not also "state"
        allowed = [word.strip().casefold() for word in row.get(column, "").split("|")]
        if row.get("fixed") == "yes" and not any(word and word in said for word in allowed):
            found.append(f"{row['en']!r} is {row[column]!r} here (terms.csv)")
    for row, _, never in _patterns(language):
        for word, pattern in never:
            if pattern.search(translated):
                found.append(f"{word!r} is not said here, but {row[column]!r} (terms.csv)")
    return found


def compiled(language):
    """The text of the file in the package that memlab.base.messages reads; none without words."""
    words = catalogue.translations(language, sources.MESSAGES)
    return json.dumps(words, ensure_ascii=False, indent=0, sort_keys=True) + "\n" if words else ""


def uncompiled():
    """Languages whose file in the package is not what their catalogue says, or has none."""
    languages = {*catalogue.languages(), *(path.stem for path in PACKAGE.glob("*.json"))}
    return sorted(each for each in languages if _in_package(each) != compiled(each))


def compile_messages(languages):
    """Write what memlab prints into the package; a language without a word has no file there."""
    for language in languages:
        path, text = PACKAGE / f"{language}.json", compiled(language)
        if not text:
            path.unlink(missing_ok=True)
        elif _in_package(language) != text:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")


def _in_package(language):
    path = PACKAGE / f"{language}.json"
    return path.read_text(encoding="utf-8") if path.exists() else ""
