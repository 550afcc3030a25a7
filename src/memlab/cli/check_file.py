"""What `memlab check` shows: its tables and sentences as text, as Markdown, or as a page."""

from __future__ import annotations

from ..base.messages import language, say

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..base.grid import Grid

    Part = Grid | str | list[str]

STYLE = ":root{color-scheme:light dark}body{font-family:sans-serif;margin:2em}"
STYLE += "td,th{padding:.2em .8em;text-align:left}"
STYLE += "table{border-collapse:collapse;margin:1em 0}tr{border-bottom:1px solid #999}"


def as_lines(parts: list[Part]) -> str:
    """Text, as a terminal shows it."""
    return "\n\n".join("\n".join(p) if isinstance(p, list) else str(p) for p in parts)


def as_markdown(parts: list[Part]) -> str:
    """Each table with a rule below its headings, as GitHub's Markdown has it."""

    def line(cells: Iterable[str]) -> str:
        return f"| {' | '.join(_plain(say(cell)) for cell in cells)} |"

    made = []
    for part in parts:
        if isinstance(part, str):
            made.append(_plain(part))
        elif isinstance(part, list):
            made.append("\n".join(f"- {_plain(each)}" for each in part))
        else:
            head, *rows = part.table
            made.append("\n".join([line(head), "|" + "---|" * len(head), *map(line, rows)]))
    return "\n\n".join(made) + "\n"


def as_page(parts: list[Part]) -> str:
    """One file for a browser, which loads nothing else."""
    from html import escape

    made = []
    for part in parts:
        if isinstance(part, str):
            made.append(f"<p>{escape(part)}</p>")
        elif isinstance(part, list):
            items = "".join(f"<li>{escape(each)}</li>" for each in part)
            made.append(f"<ul>{items}</ul>")
        else:
            made.append(part._repr_html_())
    head = f'<meta charset="utf-8"><title>memlab</title><style>{STYLE}</style>'
    body = "\n".join(made)
    return (
        f'<!doctype html>\n<html lang="{language()}"><head>{head}</head>\n'
        f"<body>\n{body}\n</body></html>\n"
    )


def _plain(words: str) -> str:
    """Text in which nothing begins a cell, an element or a line of its own."""
    for sign in "\\|<`*_[":
        words = words.replace(sign, "\\" + sign)
    return " ".join(words.split())
