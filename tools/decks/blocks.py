"""A chapter's Markdown as blocks, and a block as HTML without styles of its own."""

import re
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace

from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer, TextLexer

sys.path.append(str(Path(__file__).resolve().parent.parent.parent / "book" / "_ext"))
from memlab_book import mathml  # noqa: E402

# What only the book can resolve: labels, the fences of its directives with their options, roles.
LABEL = re.compile(r"^(?:\([\w-]+\)=|:::.*(?:\n:[\w-]+:.*)*)$\n?", re.M)
ROLE = re.compile(r" ?\{[\w:-]+\}`[^`]*`")
ENDS = re.compile(
    r"(?:(?<=[.!?])|(?<=[.!?]\*)|(?<=[.!?]\*\*)|(?<=[.!?]\)))\s+"
    r"|(?<=[。！？])(?![」）*])|(?<=。\*\*)"
)
NUMBER = re.compile(r"\d+\.")  # of an item of a list
ABBREVIATED = re.compile(r"(?:\bal|\be\.g|\bi\.e|\bvs|\bcf|\bp\. ex|\bSec|\bFig)\.$")
PAIRS = ("**", "`", "$")


@cache
def _parser():
    parser = MarkdownIt("commonmark", {"html": True, "highlight": _coloured}).enable("table")
    dollarmath_plugin(parser, renderer=_formula, allow_digits=False)
    parser.add_render_rule("link_open", _link_open)
    parser.add_render_rule("link_close", _link_close)
    # Text is aligned by the style sheet: a page of slides allows no style inside itself.
    for name in ("td_open", "th_open"):
        parser.add_render_rule(name, _cell)
    return parser


def _coloured(source, language, attributes):
    lexer = PythonLexer() if language == "python" else TextLexer()
    return highlight(source, lexer, HtmlFormatter(nowrap=True))


def coloured(source):
    """A cell's code as HTML."""
    return f'<pre class="code">{_coloured(source, "python", "")}</pre>'


def _formula(text, options):
    node = SimpleNamespace(astext=lambda: text)
    return mathml(node, "block" if options.get("display_mode") else "inline")


def _link_open(self, tokens, at, options, env):
    address = str(tokens[at].attrGet("href"))
    env.setdefault("open", []).append(address.startswith("https://"))
    return self.renderToken(tokens, at, options, env) if env["open"][-1] else ""


def _link_close(self, tokens, at, options, env):  # a link within the book has no place on a slide
    return "</a>" if env["open"].pop() else ""


def _cell(self, tokens, at, options, env):
    return f"<{tokens[at].tag}>"


def rendered(text):
    """A block of Markdown as HTML."""
    return _parser().render(text)


def inline(text):
    """The words of a heading as HTML."""
    return _parser().renderInline(text)


def blocks(text):
    """The blocks of a cell in order: (kind, its Markdown); a list is one block.

    Kinds: h1, h2, h3, p, list, table, math, code, and other.
    """
    text = ROLE.sub("", LABEL.sub("", text))
    lines = text.split("\n")
    kinds = {"paragraph_open": "p", "table_open": "table", "math_block": "math", "fence": "code"}
    kinds |= {"bullet_list_open": "list", "ordered_list_open": "list", "code_block": "code"}
    for token in _parser().parse(text):
        if token.level or token.map is None:
            continue
        source = "\n".join(lines[token.map[0] : token.map[1]]).strip("\n")
        kind = token.tag if token.type == "heading_open" else kinds.get(token.type, "other")
        if kind == "p" and source.startswith("$$"):
            kind = "math"
        yield kind, source.lstrip("# ") if kind[0] == "h" else source


def sentences(text):
    """The sentences of a paragraph; none ends within a formula, code, a bracket or bold type."""
    found, start = [], 0
    for end in ENDS.finditer(text):
        before = text[start : end.start()]
        whole = not any(before.count(sign) % 2 for sign in PAIRS)
        if whole and all(before.count(a) == before.count(b) for a, b in ("()", "[]")):
            if not ABBREVIATED.search(before) and not NUMBER.fullmatch(before):
                found.append(before)
                start = end.end()
    return [*found, text[start:]] if text[start:].strip() else found


def items(text):
    """The items of a list, each with its sign or number, as Markdown."""
    found: list = []
    for line in text.split("\n"):
        if re.match(r"(?:[-*+]|\d+[.)]) ", line) or not found:
            found.append(line)
        else:
            found[-1] += "\n" + line
    return found
