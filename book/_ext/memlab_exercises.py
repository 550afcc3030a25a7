"""Sphinx extension of this book: under each exercise of a page a field for the answer.

A page has no kernel. Its field asks the judge of the notebook's cell, in the engine of the
calculator (_static/exercises.js, tools/exercise_fields.py). Field and cell both stand in the page;
a style sheet shows the field where a server gives the page, and else the cell: no script can start
the engine from a folder, and none runs on paper.
"""

import html
import json
import re
from pathlib import Path

PLACE = "_static/exercises"
ENGINE = "_static/calculator/micropython.mjs"
CELL = re.compile(
    r'<div class="cell (tag_exercise [^"]*)">(.*?)(?=<div class="cell [^"]*tag_solution)', re.S
)
NAME = re.compile(r'<span class="s2">(?:&quot;|")(ex-[\w-]+)(?:&quot;|")')
# The lines that stand in every cell. What else a cell says belongs to the question, and stays.
LINES = re.compile(r'(<span class="n">answer</span> .*?)(?=</pre>)', re.S)
DOTS = r'<code class="docutils literal notranslate"><span class="pre">\.\.\.</span></code>'
HOW_TO = re.compile(rf"<p>(?:(?!</p>).)*{DOTS}(?:(?!</p>).)*○(?:(?!</p>).)*</p>", re.S)
TITLE = "<p><strong>"
FOLD = re.compile(
    r'(<div class="cell [^"]*\btag_solution\b[^"]*">\s*<details[^>]*>\s*)'
    r"<summary[^>]*>.*?</summary>",
    re.S,
)
SOLUTION = r"\1<summary><p class='admonition-title'>Solution</p></summary>".replace("'", '"')
IN_FIELDS = (
    "Write each answer into its field, as a number, as a size such as 3 GiB or as a calculation "
    "such as 2 * 4096, and press Check: ✓ is right to the last digit, ✗ comes with a hint."
)
BUILT = "What it asks you to build is built in the notebook; the answer can be checked here."
FAILED = "The check did not start: this browser may be too old for it."
FIELD = """<form class="memlab-exercise d-print-none" data-exercise="{name}" data-page="{page}" \
data-right="Right:" data-wrong="Not yet:" data-failed="{failed}" autocomplete="off">
{build}<label id="label-{name}" for="answer-{name}">Your answer</label>
<input id="answer-{name}" type="text" maxlength="200" autocapitalize="off" spellcheck="false" \
aria-labelledby="label-{name} title-{name}" aria-describedby="unit-{name}" />
<span id="unit-{name}" class="memlab-unit">{unit}</span>
<button type="submit" class="btn btn-sm">Check</button>
<p class="memlab-verdict" role="status"></p>
</form>
"""


def known(srcdir, chapter):
    """What the fields of a chapter know, in the pages' language; nothing without an engine."""
    path = Path(srcdir) / PLACE / f"{chapter}.json"
    if not path.exists() or not (Path(srcdir) / ENGINE).exists():
        return {}
    return json.loads(path.read_text(encoding="utf-8"))


def with_fields(body, given, page, source):
    """The HTML of a page with a field under each cell of an exercise.

    given       what its fields know; source: where its notebook is downloaded from
    """
    words, made, at = given.get("words", {}), [], 0

    for cell in CELL.finditer(body):
        (name,) = NAME.findall(cell[2])
        one = given["exercises"][name]
        before = body[at : cell.start()]
        title = before.rindex(TITLE) + len(TITLE) - 1
        before = f'{before[:title]} id="title-{name}"{before[title:]}'
        pattern = f"{{1}} {one['unit']}"
        unit = words.get(pattern, pattern).replace("{1}", "").strip()
        build = ""
        if one["kind"] == "build":
            link = f'<a href="{html.escape(source)}" download>Download the notebook</a>'
            build = f'<p class="memlab-build"><span>{BUILT}</span> {link}</p>\n'
        unit = html.escape(unit)
        field = FIELD.format(name=name, page=page, unit=unit, build=build, failed=FAILED)
        lines = LINES.sub(r'<span class="memlab-by-cell">\1</span>', cell[2], count=1)
        code = re.findall(r"<pre><span></span>(.*?)</pre>", cell[2], re.S)[0]
        whole = "" if code.startswith('<span class="n">answer') else " memlab-given"
        made += [before, f'<div class="cell memlab-cell{whole} {cell[1]}">{lines}', field]
        at = cell.end()
    if made:
        first = made[0]
        for found in [*HOW_TO.finditer(first)][-1:]:
            both = f'<div class="memlab-by-cell">{found[0]}</div><p class="memlab-by-field">'
            both += f"{IN_FIELDS}</p>"
            made[0] = first[: found.start()] + both + first[found.end() :]
    return "".join([*made, body[at:]])


def exercises(app, pagename, templatename, context, doctree):
    """Put the fields under the exercises of a page, and the right word on the folds below them."""
    if doctree is None or "tag_exercise" not in context["body"]:
        return
    body = context["body"]
    page = pagename.rpartition("/")[2]
    if given := known(app.srcdir, page):
        source = context["pathto"](f"_sources/{context['sourcename']}", True)
        body = with_fields(body, given, page, source)
    context["body"] = FOLD.sub(SOLUTION, body)


def setup(app):
    app.connect("html-page-context", exercises, priority=90)  # before its minutes are counted
    return {"parallel_read_safe": True, "parallel_write_safe": True}
