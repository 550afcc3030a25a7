"""Markdown as the blocks a translator works on, and back.

The book's own parser says where a block begins and ends, and only the lines of a translated block
are replaced: what nobody translated stays as it was, byte for byte. A block is a paragraph, a
heading, an item of a list, a cell of a table, or the alt text and the caption of a figure. Code,
formulas on lines of their own, labels and comments belong to no block.
"""

import re
from functools import cache

from markdown_it.renderer import RendererHTML
from myst_parser.config.main import MdParserConfig
from myst_parser.parsers.mdit import create_md_parser

# As in _config.yml, which a test compares.
EXTENSIONS = (
    "amsmath",
    "attrs_block",
    "attrs_inline",
    "colon_fence",
    "deflist",
    "dollarmath",
    "substitution",
)
FENCE = re.compile(r"^\s*(`{3,}|:{3,}|~{3,})")
OPTION = re.compile(r"^(\s*:(\w+):\s+)(.+)$")
TRANSLATED_OPTIONS = ("alt", "caption")
PLAIN = ("figure", "image", "raw")  # their argument is a path or a format, not words
# Neither words nor letters: code, formulas, what a link leads to.
SILENT = re.compile(r"`+[^`]*`+|(?<!\\)\$[^$]+\$|\]\([^)]*\)|<[^>]+>|https?://\S+")
TOKEN = re.compile(r"(?!\S*'s\b)\S*\d\S*|\b(?:[KMGT]i?B|B|s|ms|MFLOP|TFLOPS|FLOPs?)\b")


@cache
def parser():
    return create_md_parser(MdParserConfig(enable_extensions=set(EXTENSIONS)), RendererHTML)


def has_words(text):
    """Whether there is anything to translate: a letter outside code, formulas and figures."""
    return bool(re.search(r"[^\W\d_]{2}", TOKEN.sub(" ", SILENT.sub(" ", text))))


def translate(text, say, every=False):
    """The page with `say(block)` in place of each block; None leaves a block as it is.

    every       ask for blocks without words too, such as a cell with a number
    Raises      ValueError for a block whose place in the text cannot be found
    """
    lines = text.split("\n")

    def ask(block):
        return say(block) if every or has_words(block) else None

    return "\n".join(_walk(lines, ask))


def blocks(text):
    """The blocks of a page in order, each on one line."""
    found: list[str] = []
    translate(text, found.append)  # which returns None: nothing changes
    return found


def _walk(lines, say):
    tokens = parser().parse("\n".join(lines) + "\n", {})
    edits = []
    for i, token in enumerate(tokens):
        if token.map is None:
            continue
        start, end = token.map
        end = min(end, len(lines))
        if token.type == "inline":
            if tokens[i - 1].type not in ("th_open", "td_open"):
                edits += _block(lines, start, end, token.content, tokens[i - 1].type, say)
        elif token.type == "table_open":
            edits += [(n, n + 1, [_row(lines[n], say)]) for n in range(start, end)]
        elif token.type in ("fence", "colon_fence"):
            edits += _fence(lines, start, end, token.info.strip(), say)
    done, at = [], 0
    for start, end, new in sorted(edits):
        if start < at:
            raise ValueError(f"line {start + 1} belongs to two blocks: {lines[start]!r}")
        done += lines[at:start] + new
        at = end
    return done + lines[at:]


def _block(lines, start, end, content, kind, say):
    new = say(" ".join(content.split()))
    if new is None:
        return []
    while end > start + 1 and not lines[end - 1].strip():
        end -= 1
    first = content.split("\n")[0].strip()
    column = lines[start].find(first)
    if column < 0:
        raise ValueError(f"line {start + 1}: {first!r} is not where the parser saw it")
    if kind == "dt_open":
        end = start + 1
    tail = lines[start][column + len(first) :] if end == start + 1 else ""
    return [(start, end, [lines[start][:column] + new + tail])]


def _row(row, say):
    """A line of a table; a cell keeps the blanks around it."""
    if re.fullmatch(r"[\s|:-]+", row):
        return row
    cells = re.split(r"(?<!\\)\|", row)
    for i, cell in enumerate(cells):
        words = cell.strip()
        if words and (new := say(words)) is not None:
            cells[i] = cell.replace(words, new, 1)
    return "|".join(cells)


def _fence(lines, start, end, info, say):
    """What a directive says: its title, its alt text and caption, and the blocks inside it."""
    named = re.match(r"\{([\w:-]+)\}\s*(.*)", info)
    if not named and info:
        return []
    if not named and not lines[start].lstrip().startswith(":::"):
        return []
    name, title = named.groups() if named else ("div", "")
    head = lines[start]
    if title and name not in PLAIN and (new := say(title)) is not None:
        head = head.replace(title, new, 1)
    last = end - 1 if FENCE.match(lines[end - 1]) else end
    body, at = [], start + 1
    while at < last and (option := OPTION.match(lines[at])):
        new = say(option[3]) if option[2] in TRANSLATED_OPTIONS else None
        body.append(lines[at] if new is None else option[1] + new)
        at += 1
    if name in ("math", "bibliography", "code-block", "code-cell", "raw"):
        body += lines[at:last]
    else:
        body += _walk(lines[at:last], say)
    return [(start, end, [head, *body, *lines[last:end]])]
