"""`memlab check --out FILE`: its tables and sentences as a page or as Markdown."""

from __future__ import annotations

from ..base.grid import Grid
from ..base.messages import language, say

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Iterable

STYLE = "body{font-family:sans-serif;margin:2em}td,th{padding:.2em .8em;text-align:left}"
STYLE += "table{border-collapse:collapse;margin:1em 0}tr{border-bottom:1px solid #999}"


def as_markdown(parts: list[Grid | str]) -> str:
    """Each table with a rule below its headings, as GitHub's Markdown has it."""

    def line(cells: Iterable[str]) -> str:
        return f"| {' | '.join(_plain(say(cell)) for cell in cells)} |"

    made = []
    for part in parts:
        if isinstance(part, str):
            made.append(_plain(part))
            continue
        head, *rows = part.table
        made.append("\n".join([line(head), "|" + "---|" * len(head), *map(line, rows)]))
    return "\n\n".join(made) + "\n"


def as_page(parts: list[Grid | str]) -> str:
    """One file for a browser, which loads nothing else."""
    from html import escape

    body = "\n".join(
        f"<p>{escape(part)}</p>" if isinstance(part, str) else part._repr_html_() for part in parts
    )
    head = f'<meta charset="utf-8"><title>memlab check</title><style>{STYLE}</style>'
    return (
        f'<!doctype html>\n<html lang="{language()}"><head>{head}</head>\n'
        f"<body>\n{body}\n</body></html>\n"
    )


def _plain(words: str) -> str:
    """Text in which nothing begins a cell, an element or a line of its own."""
    for sign in "\\|<`*_[":
        words = words.replace(sign, "\\" + sign)
    return " ".join(words.split())
