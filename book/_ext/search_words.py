"""Words that lead to a page though its title does not have them: `VRAM`, `OOM`, `gemma`, 顯存.

They stand in search_words.toml, by language and page, and become entries of Sphinx's index, which
its search ranks above words of the text: whoever types one of them finds the page first.
"""

import tomllib
from pathlib import Path

from sphinx import addnodes

TABLE = Path(__file__).with_suffix(".toml")


def words(language):
    """Page -> its words in a language, and in English, whose terms all readers type."""
    told = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    known = {page: list(found) for page, found in told["en"].items()}
    for page, found in told.get(language, {}).items() if language != "en" else ():
        known.setdefault(page, []).extend(found)
    return known


def enter(app, doctree, docname):
    language = app.config.language.replace("_", "-")
    found = words(language).get(docname.rpartition("/")[2], [])
    if found:
        entries = [("single", word, "", "main", None) for word in dict.fromkeys(found)]
        doctree.insert(0, addnodes.index(entries=entries))


def setup(app):
    app.connect("doctree-resolved", enter)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
