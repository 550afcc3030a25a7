"""A page or a notebook in another language: words replaced, code as it was, outputs as they ran."""

import html
import json
import re
from functools import cache

import catalogue
import formulas
import glossary
import outputs
import sources
from blocks import SILENT, has_words, translate

from memlab.base.numerals import written

TEXT = re.compile(r"<(style)\b.*?</\1>|>([^<>]*[^\s<>][^<>]*)(?=<)", re.S)


def words_of(language, name):
    """All that a source may be told in a language: its own catalogue, and what it quotes."""
    words = catalogue.translations(language, name)
    for block, (chapter, there) in sources.quoted().items():
        if chapter != name and (new := _of(language, chapter).get(there)):
            words.setdefault(block, sources.from_page(new))
    for short, (chapter, whole) in sources.titles().items():
        if new := _of(language, chapter).get(whole):
            words.setdefault(short, new if short == whole else re.split("[:：]", new)[0].strip())
    if name == "glossary":
        words |= glossary.terms(sources.ROOT, language)
    return words


@cache
def _of(language, name):
    return catalogue.translations(language, name)


def speaker(words, missing=None, language=""):
    """A function for `blocks.translate`: the block's translation, or None and a note of it."""

    def say(block):
        if not has_words(block):
            new = numbers(block, language)
            return None if new == block else new
        if block in words:
            return numbers(words[block], language)
        for title in sources.titles():  # a row of a table that leads to a chapter
            if title in block and title in words and not has_words(block.replace(title, "")):
                return numbers(block.replace(title, words[title]), language)
        if missing is not None:
            missing.append(block)
        return None

    return say


def numbers(block, language):
    """A block with its numbers as the language writes them; code and formulas stay."""
    return written(block, language, [found.span() for found in SILENT.finditer(block)])


def page(text, words, missing=None, language=""):
    """A page of Markdown in the language of `words`."""
    done = translate(text, speaker(words, missing, language), every=True)
    return formulas.said(done, words, language)


def notebook(content, words, language, missing=None, kept=None):
    """A notebook in the language of `words`, with the outputs that a run in that language gave.

    Code cells keep their source; the notebook's metadata names the language, so that memlab prints
    in it when the notebook runs.

    kept        id of a cell -> its outputs, by tools/i18n/outputs.py; any other stays as it is
    """
    content = json.loads(json.dumps(content))
    say = speaker(words, missing, language)
    for cell in content["cells"]:
        if cell["cell_type"] == "markdown":
            text = translate("".join(cell["source"]), say, every=True)
            cell["source"] = formulas.said(text, words, language)
        shown = cell["metadata"].get("mystnb", {})
        for kind, key in sources.FIGURE:
            if shown.get(kind, {}).get(key):
                shown[kind][key] = say(shown[kind][key]) or shown[kind][key]
        if new := (kept or {}).get(cell.get("id")):
            outputs.put(cell, new)
    content["metadata"]["memlab"] = {"language": language}
    return content


def markup(svg, say):
    """A drawing with the text between its tags said in the other language."""

    def node(found):
        if found[2] is None:  # what looks like a text and is a rule of its style
            return found[0]
        return f">{html.escape(say(html.unescape(found[2]).strip()), quote=False)}"

    return TEXT.sub(node, svg)
