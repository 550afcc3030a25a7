"""Catalogues: one PO file for each page and language, in book/locale/<language>/<page>.po.

A file has the blocks of its page in order and nothing that changes by itself: no line numbers, no
dates. A changed English block keeps its old translation, marked fuzzy, until somebody has looked.
"""

import io
import re
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po, write_po

LOCALE = Path(__file__).resolve().parents[2] / "book" / "locale"
# What Babel writes into each header and a clock or a machine decides.
MOVING = re.compile(
    r'^"(?:POT-Creation-Date|PO-Revision-Date|Last-Translator|Report-Msgid-Bugs-To|Generated-By|'
    r'Language-Team|Plural-Forms):.*\\n"\n',
    re.M,
)
CONTEXT = "\x04"  # between a context and its message, as in memlab.base.messages
WAS = "was: "  # a comment with the English that a fuzzy translation belongs to


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
        return Catalog(locale=language.replace("-", "_"), fuzzy=False)
    with path.open("rb") as file:
        try:
            return read_po(file, locale=language.replace("-", "_"), abort_invalid=True)
        except Exception as error:  # Babel raises several kinds
            raise ValueError(f"{path.name} of {language} is no catalogue: {error}") from None


def update(language, page, blocks):
    """Bring a catalogue to the blocks of its page; returns whether its file changed."""
    catalogue = read(language, page)
    template = Catalog(fuzzy=False)
    for block in blocks:
        words, context = in_context(block)
        template.add(words, context=context)
    catalogue.update(template, update_header_comment=False)
    ordered = Catalog(
        locale=language.replace("-", "_"),
        fuzzy=False,
        header_comment="#",
        project="memlab",
        version="0",
    )
    for block in dict.fromkeys(blocks):
        words, context = in_context(block)
        old = catalogue.get(words, context)
        comments = old.user_comments if old.fuzzy else []
        if old.previous_id:  # Babel writes it, and does not read it again
            comments = [WAS + old.previous_id[0]]
        ordered.add(
            words,
            old.string,
            flags=old.flags,
            user_comments=comments,
            context=context,
        )
    return write(language, page, ordered)


def write(language, page, catalogue):
    """Write a catalogue unless its file says the same already."""
    file = io.BytesIO()
    write_po(file, catalogue, width=100, ignore_obsolete=True)
    text = MOVING.sub("", file.getvalue().decode())
    text = re.sub(r"\A(?:#.*\n)*", f"# {page}: English to {language}, block by block.\n", text)
    path = path_of(language, page)
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return True


def translations(language, page):
    """What may be printed: English -> translation, without the fuzzy and the empty ones."""
    found = (m for m in read(language, page) if m.id and m.string and not m.fuzzy)
    return {block_of(message): message.string for message in found}


def in_context(block):
    """(words, context) of a block; no context but where a message is for one place alone."""
    context, mark, words = block.rpartition(CONTEXT)
    return words, context if mark else None


def block_of(message):
    """An entry of a catalogue as a block, its context before it."""
    return message.id if message.context is None else f"{message.context}{CONTEXT}{message.id}"


def fill(language, page, words):
    """Put translations into a catalogue, English -> translation; returns those it has no place for.

    An entry that gets one is no longer fuzzy.
    """
    catalogue = read(language, page)
    for english, translated in words.items():
        if message := catalogue.get(*in_context(english)):
            message.string = translated
            message.flags.discard("fuzzy")
            message.user_comments = []
    write(language, page, catalogue)
    return [english for english in words if catalogue.get(*in_context(english)) is None]
