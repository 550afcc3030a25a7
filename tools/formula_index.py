"""The index of formulas: a row for each public function of memlab.terms, from its docstring.

`tools/book.py` puts `formulas` where book/api.md says `<!-- formulas -->`, and `letters` where
book/cheat-sheet.md says `<!-- letters -->`, so the pages say what the functions say.
"""

import importlib
import inspect
import pkgutil
import re
from html import escape

import api

from memlab import adapters, terms

# Modules that are not named after the chapter that tells them.
TOLD_IN = {
    "autocast": "mixed-precision",
    "dropout": "activations",
    "tied": "weights",
    "host": "offloading",
    "recurrent": "kv-cache",
    "engine_pool": "serving",
    "low_rank": "small-optimizers",
    "optimizer_step": "small-optimizers",
    "linear_cross_entropy": "logits",
    "chunk_rows": "logits",
    "sharded_step": "divide-model",
    "divided_text": "divide-text",
    "expandable": "allocator",
    "replay": "allocator",
    "segments": "allocator",
    "workspaces": "allocator",
}
# k and t are letters of one module each, and q, k, v elsewhere.
LETTER = re.compile(r"(?<![A-Za-z_.`])([B-Zb]|k(?= (?:=|m|\\?>))|t(?= of))(?:_(\w+))?(?![\w'])")
SECTION = r"^{} +(.*(?:\n +.*)*)"


def letters(root):
    """The letters of the notation page's first table, in one line."""
    page = (root / "book" / "notation.md").read_text(encoding="utf-8")
    table = page[page.index("| letter |") :].partition("\n\n")[0]  # those that no page redefines
    rows = re.findall(r"^\| \$(\w)\$ \| ([^|,:]+)", table, re.M)
    return " · ".join(f"*{letter}* {words.strip()}" for letter, words in rows)


def index(root):
    """A heading, the module's letters and a table for each module, in the order of the chapters."""
    found = []
    rooms = [(each.name, room) for room in (terms, adapters) for each in _modules(room)]
    for name, room in sorted(rooms, key=lambda one: one[0]):
        module = importlib.import_module(f"{room.__name__}.{name}")
        if functions := public(module):
            path = chapter(root, TOLD_IN.get(name, name).replace("_", "-"))
            found.append((path.name if path else "~", name not in TOLD_IN, module, functions, path))
    found.sort(key=lambda one: (one[0], not one[1]))
    return "\n\n".join(section(*one[2:]) for one in found)


def _modules(room):
    return pkgutil.iter_modules(room.__path__)


def public(module):
    """The functions that a module defines for others, in its order."""
    return [
        function
        for name, function in vars(module).items()
        if inspect.isfunction(function)
        and function.__module__ == module.__name__
        and not name.startswith("_")
    ]


def section(module, functions, path):
    """One module: its heading, the letters it defines for itself, its table."""
    title, _, rest = module.__doc__.partition("\n")[0].partition(": ")
    title = rest.rstrip(".") if "_" in title else title  # not the name of a function
    link = f"[{path.stem[:2].lstrip('0')}](notebooks/{path.name})" if path else "—"
    rows = [row(function, link) for function in functions]
    own = legend(module.__doc__)
    lines = [["function", "formula", "unit", "source", "chapter"], *map(cells, rows)]
    head, *body = ("".join(f"<td>{html(cell)}</td>" for cell in line) for line in lines)
    inside = "".join(f"<tr>{line}</tr>" for line in body)
    table = f"<thead><tr>{head.replace('td>', 'th>')}</tr></thead><tbody>{inside}</tbody>"
    table = f'<table class="table memlab-index">{table}</table>'
    table = f'<div class="pst-scrollable-table-container">{table}</div>'
    words = f"{title}." + (f" {own}." if own else "")
    return f"### `{module.__name__}`\n\n{api.raw(f'<p>{html(words)}</p>{table}')}"


def row(function, link):
    """| name | formula | unit | source | chapter |"""
    doc = inspect.getdoc(function) or ""
    formula = part(doc, "Formula")
    formula = typeset(formula) if formula else typeset(doc.partition("\n")[0])
    unit = re.split(r"[,;]", part(doc, "Unit") or "—")[0]
    source = sources(part(doc, "Source") or "—")
    return f"| `{function.__name__}` | {formula} | {unit} | {source} | {link} |"


def cells(row):
    return re.split(r" \| ", row.removeprefix("| ").removesuffix(" |"))


def html(words):
    """Markdown's code, italics, lowered indices and links as HTML, which nobody is to translate."""
    words = escape(words, quote=False).replace(".ipynb)", ".html)")
    words = re.sub(r"\{sub\}`([^`]*)`", r"<sub>\1</sub>", words)
    words = re.sub(r"`([^`]*)`", r"<code>\1</code>", words)
    words = re.sub(r"(?<!\\)\*([^*\\]+)\*", r"<em>\1</em>", words)
    words = re.sub(r"(?<!\\)\[([^\]]*)\]\(([^)]*)\)", r'<a href="\2">\1</a>', words)
    return api.english(re.sub(r"\\(.)", r"\1", words))


def part(doc, name):
    """What a docstring says under one of its headings, on one line, or nothing."""
    found = re.search(SECTION.format(name), doc, re.M)
    if not found:
        return ""
    lines = [line.strip() for line in found[1].splitlines()]
    # "copy      I + C" opens an entry of a list: the sheet sets its name off by a colon.
    lines = [re.sub(r"^(\w+) {2,}", r"; \1: ", line) for line in lines]
    return re.sub(r"\s+", " ", " ".join(lines)).replace(" ;", ";").strip("; ").replace(";;", ";")


def typeset(text):
    """Letters in italics, indices lowered, and nothing that Markdown would read otherwise."""
    parts = re.split(r"(`[^`]*`)", text)
    for i in range(0, len(parts), 2):
        plain = re.sub(r"([\\*<>|\[\]])", r"\\\1", parts[i])
        plain = LETTER.sub(
            lambda found: f"*{found[1]}*" + (f"{{sub}}`{found[2]}`" if found[2] else ""), plain
        )
        parts[i] = re.sub(r"(\w+)_(?=\w)", r"\1\\_", plain)
    return "".join(parts)


def sources(text):
    """A source with its links: papers by number, pages by their address."""
    parts = re.split(r"(`[^`]*`|https?://\S+)", text)
    for i, words in enumerate(parts):
        if words.startswith("http"):
            parts[i] = re.sub(r"(https?://([\w.-]+)\S*)", r"[\2](\1)", words)
        elif not words.startswith("`"):
            words = re.sub(r"([\\*<>|\[\]_])", r"\\\1", words)
            parts[i] = re.sub(r"arXiv:([\d.]+\d)", r"[\1](https://arxiv.org/abs/\1)", words)
    return "".join(parts)


def legend(doc):
    """The letters that a module's docstring defines, or nothing: "R rows · V vocabulary"."""
    for paragraph in doc.split("\n\n")[1:]:
        line = re.sub(r"\s+", " ", paragraph).strip().rstrip(".")
        if " · " in line and re.match(r"[A-Z]\w? ", line):
            return typeset(re.sub(r" ·$", "", line))
    return ""


def chapter(root, label):
    """The notebook whose first cell carries this label, or None."""
    for path in sorted((root / "notebooks").glob("[0-9][0-9]_*.ipynb")):
        if re.search(rf'"\({label}\)=(\\n)?"', path.read_text(encoding="utf-8")):
            return path
    return None
