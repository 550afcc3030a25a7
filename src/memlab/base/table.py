"""Tables of text cells as aligned text and as HTML: how everything in memlab prints."""

from .messages import say
from .safe_text import printable

Table = list[list[str]]

WORDS = ' class="words"'  # figures stand right, words left: the style sheet asks by class
WIDE = 5  # columns; more of them are set smaller, to fit a page


def cell(count: int | None) -> str:
    """A whole number with thousands separators; nothing for a missing one."""
    return "" if count is None else f"{count:,}"


def signed(count: int | None) -> str:
    """A difference in bytes with its sign: "+0 B", "−1,536 B"."""
    return "" if count is None else f"{count:+,} B".replace("-", "−")


def as_text(table: Table, *, foot: int = 0, title: str = "") -> str:
    """Aligned lines: words left, figures right, a rule above the last `foot` rows."""
    worded = _worded(table)
    place = _place(table)
    table = [[_shown(cell, place) if cell else cell for cell in row] for row in table]
    widths = [max(places(row[i]) for row in table) for i in range(len(table[0]))]

    def line(row: list[str]) -> str:
        pairs = zip(row, widths, worded, strict=True)
        return "   ".join(_fill(cell, width, words) for cell, width, words in pairs).rstrip()

    lines = [line(row) for row in table]
    if foot:
        lines.insert(-foot, "─" * max(map(places, lines)))
    return "\n".join(([_shown(title)] if title else []) + lines)


def _shown(text: str, context: str = "") -> str:
    """In the reader's language, and nothing in it that a terminal would obey."""
    return printable(say(text, context), keep="\t\n")


def _place(table: Table) -> str:
    """What a catalogue calls a table: its first heading that says something."""
    return next(filter(None, table[0]), "")


def places(text: str) -> int:
    """Columns that a text takes in a terminal: an ideograph takes two."""
    if text.isascii():
        return len(text)
    import unicodedata  # its tables are large, and English never asks

    return sum(1 + (unicodedata.east_asian_width(c) in "WF") for c in text)


def _fill(cell: str, width: int, words: bool) -> str:
    blanks = " " * (width - places(cell))
    return cell + blanks if words else blanks + cell


def as_html(table: Table, *, foot: int = 0, title: str = "") -> str:
    """The same table as HTML, escaped, with row and column headings for screen readers."""
    import html  # when asked for: the command line never does

    place = _place(table)

    def printed(text: str) -> str:
        return html.escape(say(text, place) if text else text)

    def row(cells: list[str]) -> str:
        rest = "".join(f"<td{_kind(c)}>{printed(c)}</td>" for c in cells[1:])
        return f'<tr><th scope="row">{printed(cells[0])}</th>{rest}</tr>'

    caption = f"<caption>{printed(title)}</caption>" if title else ""
    worded = [False, *_worded(table)[1:]]  # the first column stands left anyway
    head = "".join(
        f'<th scope="col"{WORDS if words else ""}>{printed(c)}</th>'
        for c, words in zip(table[0], worded, strict=True)
    )
    kind = "memlab-ledger wide" if len(table[0]) > WIDE else "memlab-ledger"
    end = len(table) - foot
    tail = f"<tfoot>{''.join(map(row, table[end:]))}</tfoot>" if foot else ""
    return (
        f'<table class="{kind}">{caption}<thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(map(row, table[1:end]))}</tbody>{tail}</table>"
    )


def _worded(table: Table) -> list[bool]:
    """For each column, whether its body has words in it, or only figures."""
    return [any(row[i][:1].isalpha() for row in table[1:]) for i in range(len(table[0]))]


def _kind(cell: str) -> str:
    return WORDS if cell[:1].isalpha() else ""
