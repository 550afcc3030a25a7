"""A sheet to draw on, in pixels, and the picture it becomes: SVG, written by hand.

Nothing but text is written, so the same call gives the same bytes on every machine, and a reader's
font, a translator and a screen reader find every word.
"""

import re
from html import escape
from pathlib import Path

from ..base.messages import Localized, say
from .colours import GREY, INK, PAPER, ink_on

# At 620 px a picture fills a page's column; on a phone of 360 px its letters are still 8 px high.
WIDTH, MARGIN, SIZE = 600, 10, 14
FONT = "Helvetica, Arial, 'Noto Sans', sans-serif"
# Advance widths of the characters from space to ~ in hundredths of the size: those of DejaVu Sans,
# the widest of the fonts a reader may have, so that what fits here fits everywhere.
ADVANCE = [
    int(width)
    for width in (
        "32 40 46 84 64 95 78 27 39 39 50 84 32 36 32 34 64 64 64 64 64 64 64 64 64 64 34 34 84 "
        "84 84 53 100 68 69 70 77 63 58 77 75 29 29 66 56 86 75 79 60 79 69 63 61 73 68 99 69 "
        "61 69 39 34 39 84 50 50 61 63 55 63 62 35 63 63 28 28 58 28 97 63 61 63 63 41 52 39 63 "
        "59 82 59 59 52 64 34 64 84 "
    ).split()
]

# On a phone a page sets them larger (book/_static/memlab.css), in the book's own face, Source Sans
# 3 adjusted to 108 %: its advance widths, and of its bold face those times BOLDER.
PHONE, BOLDER = 16, 1.05
FACE = [
    int(width)
    for width in (
        "22 31 46 54 54 89 66 27 33 33 45 54 27 34 27 38 54 54 54 54 54 54 54 54 54 54 27 27 54 "
        "54 54 46 91 59 64 62 66 57 53 67 70 28 52 63 52 79 70 72 61 72 61 58 58 70 56 85 55 51 "
        "58 33 38 33 54 54 59 54 60 49 60 54 32 54 59 27 27 53 28 90 59 59 60 60 37 45 37 59 50 "
        "78 48 50 46 33 26 33 54 "
    ).split()
]

# What a line may be cut after: a word, or an ideograph with the comma or full stop it carries.
WORD = re.compile(
    r"[\u3000-\u9fff\uff00-\uffef][、。，；：）」]*\s*|[^\s\u3000-\u9fff\uff00-\uffef]+\s*"
)


class Picture:
    """An SVG that a notebook shows by itself; `save` writes it to a file."""

    def __init__(self, title: str, svg: str) -> None:
        self.title = title
        self.svg = svg

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<Picture: {self.title}>"

    def save(self, path: str | Path) -> None:
        """Write the SVG to a file.

        Raises      ValueError for a name that does not end in .svg
        """
        if Path(path).suffix != ".svg":
            raise ValueError(f"path={str(path)!r} does not end in .svg, the one format written")
        Path(path).write_text(self.svg, encoding="utf-8")


class Canvas:
    """Shapes and words in pixels, y downward; `picture(title, height)` closes it."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    def box(self, x: float, y: float, width: float, height: float, fill: str, edge=PAPER) -> None:
        self.parts.append(
            f'<rect x="{n(x)}" y="{n(y)}" width="{n(width)}" height="{n(height)}" '
            f'fill="{fill}" stroke="{edge}"/>'
        )

    def line(self, x1: float, y1: float, x2: float, y2: float, colour=GREY, dash="") -> None:
        style = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(f'<path d="M{n(x1)} {n(y1)}L{n(x2)} {n(y2)}" stroke="{colour}"{style}/>')

    def trace(self, points: list[tuple[float, float]], colour: str, dash="") -> None:
        """A line through the points, in order."""
        path = "M" + "L".join(f"{n(x)} {n(y)}" for x, y in points)
        style = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(
            f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2"{style}/>'
        )

    def area(self, path: str, fill: str) -> None:
        self.parts.append(f'<path d="{path}" fill="{fill}"/>')

    def dot(self, x: float, y: float) -> None:
        self.parts.append(f'<circle cx="{n(x)}" cy="{n(y)}" r="4" fill="{INK}" stroke="{PAPER}"/>')

    def words(self, x: float, y: float, text: str, at="start", colour=INK, bold=False) -> None:
        """Text whose middle lies at height y; x is where it starts, its middle or its end."""
        style = "" if at == "start" else f' text-anchor="{at}"'
        style += ' font-weight="bold"' if bold else ""
        base, said = n(y + 0.35 * SIZE), escape(say(text), quote=False)
        self.parts.append(f'<text x="{n(x)}" y="{base}" fill="{colour}"{style}>{said}</text>')

    def key(self, x: float, y: float, entries: list[tuple[str, str]]) -> float:
        """Coloured squares with their words, in lines as wide as the sheet; the height used."""
        left, top = x, y
        for words, colour in entries:
            wide = 18 + width_of(words)
            if x > left and x + wide > WIDTH:
                x, y = left, y + 20
            self.box(x, y - 6, 12, 12, colour, edge=GREY)
            self.words(x + 17, y, words)
            x += wide + 14
        return y - top + 20

    def picture(self, title: str, height: float) -> Picture:
        wide, high = WIDTH + 2 * MARGIN, n(height + 2 * MARGIN)
        corner = f"{-MARGIN} {-MARGIN} {wide} {high}"
        size = f'width="{wide}" height="{high}" viewBox="{corner}"'
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-size="{SIZE}" '
            f'font-family="{FONT}" style="max-width:100%;height:auto">'
        )
        title = say(title)
        place = f'x="{-MARGIN}" y="{-MARGIN}" width="{wide}" height="{high}"'
        paper = f'<rect {place} fill="{PAPER}"/>'
        lines = [head, f"<title>{escape(title, quote=False)}</title>", paper, *self.parts, "</svg>"]
        return Picture(title, "\n".join(lines) + "\n")


def n(value: float) -> str:
    """A coordinate with one decimal at most: a tenth of a pixel is the end of what one sees."""
    return f"{round(value, 1) + 0.0:.1f}".removesuffix(".0")


def width_of(text: str, bold: bool = False) -> float:
    """Pixels that a line of text takes in the reader's language, at most."""
    hundredths = sum(advance(c) for c in say(text))
    return hundredths * SIZE / 100 * (1.1 if bold else 1)


def room_of(text: str, bold: bool = False) -> float:
    """Pixels that a line of text takes in a page on a phone, whose letters are larger.

    For choosing where words go: never less than `width_of`, by which all is laid out.
    """
    hundredths = sum(advance(c, FACE) for c in say(text))
    return max(width_of(text, bold), hundredths * PHONE / 100 * (BOLDER if bold else 1))


def descends(text: str) -> bool:
    """Whether a letter of a line, in the reader's language, reaches below it."""
    return not set("gjpqyçQ,;|()[]{}").isdisjoint(say(text))


def advance(character: str, widths: list[int] = ADVANCE) -> int:
    """Hundredths of the size that a character takes; an accent takes none of its own."""
    if not character.isascii():
        import unicodedata  # its tables are large, and English seldom asks

        plain = unicodedata.normalize("NFD", character)[0]
        character = plain if plain.isalpha() else character
    return widths[ord(character) - 32] if " " <= character <= "~" else 100


def wrap(text: str, wide: float, bold: bool = False) -> list[str]:
    """The text in lines of at most so many pixels, cut at spaces, or beside an ideograph."""
    lines = [""]
    for word in WORD.findall(say(text)):
        longer = Localized(lines[-1] + word)
        if lines[-1] and width_of(Localized(longer.rstrip()), bold) > wide:
            lines.append(Localized(word))
        else:
            lines[-1] = longer
    return [Localized(line.rstrip()) for line in lines]


def heading(canvas: Canvas, title: str) -> float:
    """Write the title at the top; the height below which there is room."""
    lines = wrap(title, WIDTH, bold=True) if title else []
    for i, line in enumerate(lines):
        canvas.words(0, 12 + 20 * i, line, bold=True)
    return 20 * len(lines) + (10 if lines else 0)


__all__ = ["PHONE", "SIZE", "WIDTH", "Canvas", "Picture", "descends", "heading", "ink_on", "n"]
__all__ += ["room_of", "width_of", "wrap"]
