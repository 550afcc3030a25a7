"""Words that lead to a page though its title does not have them: `VRAM`, `OOM`, `gemma`, 顯存.

They stand in search_words.toml, by language and page, and become entries of Sphinx's index, which
its search ranks above words of the text: whoever types one of them finds the page first. Below each
page found stand some words of it: of its text, not of its menus and not of its drawings.
"""

import tomllib
from pathlib import Path

from sphinx import addnodes
from sphinx.errors import SphinxError

TABLE = Path(__file__).with_suffix(".toml")
# What Sphinx's search takes for the text of a page, and what is it here.
NONE = '".headerlink", "script", "style"'
TEXT = {'[role="main"]': "article.bd-article", f"[{NONE}]": f'[{NONE}, "svg", ".memlab-about"]'}


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


def excerpts(app, exception):
    """Let the search take its excerpts from the text alone."""
    if exception or app.builder.name != "html":
        return
    tools = Path(app.outdir) / "_static" / "searchtools.js"
    script = tools.read_text(encoding="utf-8")
    for theirs, ours in TEXT.items():
        if theirs not in script and ours not in script:
            raise SphinxError(f"searchtools.js has no {theirs} any more: see to its excerpts")
        script = script.replace(theirs, ours)
    tools.write_text(script, encoding="utf-8")


def setup(app):
    app.connect("doctree-resolved", enter)
    app.connect("build-finished", excerpts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
