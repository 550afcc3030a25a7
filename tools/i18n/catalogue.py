"""Catalogues: one PO file for each page and language, in book/locale/<language>/<page>.po.

A file has the blocks of its page in order, each with its place, and nothing that changes by itself:
no line numbers, no dates. Lines are not wrapped, as `msgcat --no-wrap` writes them, so that what an
editor saves differs in the entry that was translated and nowhere else. A changed English block
keeps its old translation, marked fuzzy and with the old English, until somebody has looked; one
that moved to another page brings its translation along.
"""

import difflib
import re
import textwrap
from pathlib import Path

import polib
from babel.messages.plurals import get_plural

LOCALE = Path(__file__).resolve().parents[2] / "book" / "locale"
CONTEXT = "\x04"  # between a context and its message, as in memlab.base.messages
PLACES = re.compile(r"^#: .{77,}$", re.M)  # the only lines that gettext wraps all the same
VALUES = re.compile(r"\{\w+\}")
MOST_PLACES = 4  # of an entry: a label that thirty chapters have is found in the first of them


def folder(language):
    """Where a language's catalogues lie: pt-BR in pt_BR."""
    return LOCALE / language.replace("-", "_")


def languages():
    """The languages that have catalogues, as the site names them."""
    found = [path for path in LOCALE.glob("*") if path.is_dir()] if LOCALE.is_dir() else []
    return sorted(path.name.replace("_", "-") for path in found)


def path_of(language, page):
    return folder(language) / f"{page}.po"


def read(language, page):
    """The catalogue of a page, empty where there is none yet.

    Raises      ValueError for a file that is no catalogue, by its name
    """
    path = path_of(language, page)
    if not path.exists():
        return polib.POFile(wrapwidth=0)
    try:
        return polib.pofile(path.read_text(encoding="utf-8"), wrapwidth=0)
    except OSError as error:
        raise ValueError(f"{path.name} of {language} is no catalogue: {error}") from None


def update(language, page, blocks, places=None, moved=None):
    """Bring a catalogue to the blocks of its page; returns whether its file changed.

    places      block -> where it stands, and what it is there: `places.places`
    moved       block -> translation, of all pages: `compendium`
    """
    old = read(language, page)
    kept = {block_of(entry): entry for entry in old if not entry.obsolete}
    gone = {block: entry for block, entry in kept.items() if block not in blocks and entry.msgstr}
    made = template(page, blocks, places)
    made.header = f"{page}: English to {language}, block by block."
    name = language.replace("-", "_")
    mine = {"Language": name, "Plural-Forms": get_plural(name).plural_forms}
    made.metadata = old.metadata | made.metadata | mine  # what an editor wrote there stays
    for entry in made:
        block = block_of(entry)
        if found := kept.get(block):
            entry.msgstr, entry.tcomment = found.msgstr, found.tcomment
            entry.flags[:0] = ["fuzzy"] * found.fuzzy
            entry.previous_msgid = found.previous_msgid
        elif block in (moved or {}):
            entry.msgstr = moved[block]
        elif near := difflib.get_close_matches(block, gone, 1):
            found = gone[near[0]]
            entry.msgstr, entry.flags[:0] = found.msgstr, ["fuzzy"]
            entry.previous_msgid = found.previous_msgid or found.msgid
    return write(path_of(language, page), made)


def template(page, blocks, places=None):
    """The catalogue of a page without a language: what a .pot file has."""
    made = polib.POFile(wrapwidth=0)
    made.header = f"{page}: English, block by block."
    made.metadata = {
        "Project-Id-Version": "memlab 0",
        "Language": "",
        "MIME-Version": "1.0",
        "Content-Type": "text/plain; charset=UTF-8",
        "Content-Transfer-Encoding": "8bit",
    }
    for block in dict.fromkeys(blocks):
        words, context = in_context(block)
        where, what = (places or {}).get(block, ((), ""))
        entry = polib.POEntry(msgid=words, msgctxt=context, comment=what)
        entry.occurrences = [(place, "") for place in list(dict.fromkeys(where))[:MOST_PLACES]]
        if VALUES.search(words) and "\\" not in words:  # an editor says where one is lost
            entry.flags.append("python-brace-format")
        made.append(entry)
    return made


def write(path, catalogue):
    """Write a catalogue unless its file says the same already."""
    text = PLACES.sub(_lines, str(catalogue))
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return True


def _lines(found):
    return textwrap.fill(
        found[0][3:],
        79,
        initial_indent="#: ",
        subsequent_indent="#: ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def translations(language, page):
    """What may be printed: English -> translation, without the fuzzy and the empty ones."""
    found = (e for e in read(language, page) if e.msgstr and not e.fuzzy and not e.obsolete)
    return {block_of(entry): entry.msgstr for entry in found}


def compendium(language, pages):
    """What all these pages say: block -> translation, those of the first page that has it."""
    found: dict[str, str] = {}
    for page in reversed(list(pages)):
        found |= translations(language, page)
    return found


def in_context(block):
    """(words, context) of a block; no context but where a message is for one place alone."""
    context, mark, words = block.rpartition(CONTEXT)
    return words, context if mark else None


def block_of(entry):
    """An entry of a catalogue as a block, its context before it."""
    return entry.msgid if entry.msgctxt is None else f"{entry.msgctxt}{CONTEXT}{entry.msgid}"


def fill(language, page, words):
    """Put translations into a catalogue, English -> translation; returns those it has no place for.

    An entry that gets one is no longer fuzzy.
    """
    catalogue = read(language, page)
    there = {block_of(entry): entry for entry in catalogue if not entry.obsolete}
    for english, translated in words.items():
        if entry := there.get(english):
            entry.msgstr, entry.previous_msgid = translated, None
            entry.flags = [flag for flag in entry.flags if flag != "fuzzy"]
    write(path_of(language, page), catalogue)
    return [english for english in words if english not in there]
