"""The checks of the claims as pages: an anchor for each function, a link to it in each row.

The code of a note's checks is tests/audit/note_<note>.py. A page shows the whole file in its order,
the imports last, and before each check a heading to link to, with the claims that it judges. The
pages have no words of their own: a file's name, a chapter's title and code are the same, or known,
in each language.
"""

import ast
import json
import re
import shutil

from memlab.files.claims import FOLDER

CHECKS = "tests/audit"
# What every check returns, and how the tests put each of them to the test.
SHARED = ("judge", "turned", "settings")
IMPORTS = "`import`"
# The last cell of a claim's row, as memlab.files.claims_html writes it for a claim with a check.
JUDGED = re.compile(
    r'(<tr id="S(\d)-\d+">(?:(?!</tr>).)*<td class="words">)<code>(\w+)</code>(?=</td></tr>)', re.S
)
# A line of the note, as memlab.files.claims_html writes it.
LINE = re.compile(r'<small data-place="(note-\d+-\d+)">([^<]*)</small>')


def anchor(note, check):
    """Where a check stands in the pages, from a chapter of the book."""
    return f"../checks/note_{note}.html#{_id(note, check)}"


def linked(text):
    """A table of claims whose checks are links to their code."""

    def link(found):
        note = f"{int(found[2]):03}"
        return f'{found[1]}<a href="{anchor(note, found[3])}"><code>{found[3]}</code></a>'

    return JUDGED.sub(link, text)


def placed(text, places):
    """A table of claims in which those lines of the note are links that the chapter shows."""

    def link(found):
        words = f"<small>{found[2]}</small>"
        return f'<a href="#{found[1]}">{words}</a>' if found[1] in places else words

    return LINE.sub(link, text)


def link(notebook):
    """The notebook with the tables of claims in its outputs linked; it is changed in place."""
    places = set(re.findall(r'id=\\?"(note-\d+-\d+)\\?"', json.dumps(notebook)))
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            shown = output.get("data", {})
            if "text/html" in shown:
                shown["text/html"] = placed(linked("".join(shown["text/html"])), places)
    return notebook


def stage(root, source):
    """Lay the pages, and the files that they show, into the folder `source`/checks."""
    files = sorted((root / CHECKS).glob("note_*.py"))
    if not files:
        return
    pages = source / "checks"
    pages.mkdir()
    for file in files:
        shutil.copy(file, pages)
        (pages / f"{file.stem}.md").write_text(page(root, file), encoding="utf-8")
    for name in SHARED:
        shutil.copy(root / CHECKS / f"{name}.py", pages)
        (pages / f"{name}.md").write_text(_titled(f"{name}.py") + _shown(f"{name}.py"), "utf-8")


def page(root, file):
    """The page of a note's checks, as MyST Markdown."""
    note, text = file.stem.removeprefix("note_"), file.read_text(encoding="utf-8")
    judged: dict[str, list[str]] = {}
    for one in json.loads((FOLDER / f"{note}.json").read_text(encoding="utf-8")):
        if one["check"]:
            judged.setdefault(one["check"], []).append(one["id"])
    chapter = _chapter(root, note)
    parts = [_titled(file.name) + f"{{doc}}`/notebooks/{chapter}`\n"]
    itself, imports, *functions = pieces(text, judged)
    for name, first, last in [itself, *functions, imports]:
        if (name, first, last) == imports:
            parts.append(f"## {IMPORTS}\n")
        if name in judged:
            back = (f'<a href="../notebooks/{chapter}.html#{x}">{x}</a>' for x in judged[name])
            parts.append(f"({_id(note, name)})=\n## `{name}`\n\n{' · '.join(back)}\n")
        parts.append(_shown(file.name, f"{first}-{last}"))
    return "\n".join(parts)


def pieces(text, checks):
    """(the check's name or an empty one, first line, last line), in order and without a gap.

    What the file says of itself is the first, its imports are the second.

    Raises      ValueError for a check that the file lacks
    """
    lines, at = text.splitlines(), 1
    found: list[tuple[str, int, int]] = []
    body = ast.parse(text).body
    for kind in (ast.Expr, ast.Import | ast.ImportFrom):
        ends = [node.end_lineno or 0 for node in body if isinstance(node, kind)]
        last = max(ends, default=at - 1)
        found, at = [*found, ("", at, last)], last + 1
    for node in body:
        if (name := getattr(node, "name", "")) in checks:
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
            found += [("", at, first - 1), (name, first, node.end_lineno)]
            at = node.end_lineno + 1
    found.append(("", at, len(lines)))
    if missing := sorted(set(checks) - {name for name, _, _ in found}):
        raise ValueError(f"no function for the checks {', '.join(missing)}")
    return [piece for piece in found if any(map(str.strip, lines[piece[1] - 1 : piece[2]]))]


def _id(note, check):
    """As docutils makes an id of a label: without underscores."""
    return f"check-{note}-{check.replace('_', '-')}"


def _chapter(root, note):
    """The chapter that shows the claims of a note."""
    (path,) = (
        path
        for path in (root / "notebooks").glob("[0-9]*.ipynb")
        if f'read(\\"{note}\\")' in path.read_text(encoding="utf-8")
    )
    return path.stem


def _titled(name):
    # The file's own name, in every language. A search for words shall find what explains them.
    return f"---\nnosearch: true\n---\n\n# `{CHECKS}/{name}`\n\n"


def _shown(name, lines=""):
    only = f":lines: {lines}\n" if lines else ""
    return f":::{{literalinclude}} {name}\n:language: python\n{only}:::\n"
