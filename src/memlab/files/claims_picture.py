"""A note in one look: how many claims met which fate, and what it predicted beside what is right.

The bars have no words of their own: the folds below are their legend, and a label stands beside a
bar as text, in the page's colours and in the reader's language.
"""

from __future__ import annotations

import html

from ..base.messages import say

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from .claims import Claim

# Okabe and Ito 2008, as in memlab.plot.colours, which this room does not import.
FATES = {
    "holds": "#009E73",
    "arithmetic slip": "#F0E442",
    "unit slip": "#56B4E9",
    "wrong model": "#D55E00",
    "missing term": "#E69F00",
    "contradicts itself": "#CC79A7",
    "wrong about an API": "#0072B2",
    "cannot be checked here": "#999999",
}
INK, PAPER = "#1A1A1A", "#FFFFFF"  # numbers are dark, but on the one colour that is darker
MONEY = {"predicted": "#E69F00", "was read": "#999999", "right": "#009E73"}
MONEY |= {"at least, in named tensors": "#009E73"}  # where a list can be only a part
NARROW = 0.035  # of the bar: a part that is smaller shows no number


def picture(claims: list[Claim], verdicts: dict[str, int]) -> str:
    """The bar of all fates, and below it the lines of money, as HTML."""
    money = [words for one in claims for words in (one.money or {}).values()]
    lines = "".join(_money(one, max(map(_amount, money))) for one in claims if one.money)
    return f'<div class="memlab-fates">{_fates(verdicts)}{lines}</div>'


def key(verdict: str) -> str:
    """A small square in the verdict's colour, for the fold that it belongs to."""
    square = f'<rect width="12" height="12" fill="{FATES[verdict]}"/>'
    return f'<svg class="key" aria-hidden="true" width="12" height="12">{square}</svg>'


def _fates(verdicts: dict[str, int]) -> str:
    """One bar over the full width; what it says in colours, the folds say in words."""
    every, at, parts = sum(verdicts.values()), 0, []
    for verdict, count in verdicts.items():
        left, wide, colour = at / every, count / every, FATES[verdict]
        parts.append(f'<rect x="{left:.2%}" width="{wide:.2%}" height="28" fill="{colour}"/>')
        if wide >= NARROW:
            where = (
                f'x="{left + wide / 2:.2%}" y="19" fill="{PAPER if colour == "#0072B2" else INK}"'
            )
            parts.append(f'<text {where} text-anchor="middle" font-size="14">{count}</text>')
        at += count
    return f'<svg aria-hidden="true" width="100%" height="28">{"".join(parts)}</svg>'


def _money(one: Claim, most: float) -> str:
    """What a note says about the figure that it is about, and what is so: a bar each, to scale."""
    assert one.money is not None
    rows = "".join(_line(label, words, most) for label, words in one.money.items())
    claim, name = html.escape(say(one.claim)), html.escape(one.id)
    return f'<p><a href="#{name}">{name}</a> <span>{claim}</span></p><table>{rows}</table>'


def _line(label: str, words: str, most: float) -> str:
    wide = f'width="{_amount(words) / most:.2%}" height="16" fill="{MONEY[label]}"'
    bar = f'<svg aria-hidden="true" width="100%" height="16"><rect {wide}/></svg>'
    said = f'<th scope="row">{html.escape(say(label))}</th>'
    return f"<tr>{said}<td>{bar}</td><td>{html.escape(say(words))}</td></tr>"


def _amount(words: str) -> float:
    """The number before the unit; all of one note have the same."""
    return float(words.split()[0].replace(",", ""))
