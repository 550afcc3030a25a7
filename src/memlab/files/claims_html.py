"""Claims as a page shows them: folded by verdict, each row with its id to link to.

What filters them on a page is a few lines in the book's own script; without it nothing is hidden.
"""

from __future__ import annotations

from ..base.message import Message
from ..base.messages import say

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from .claims import Claim

LANGUAGES = {"S0": "pt-BR", "S1": "zh-TW", "S3": "pt-BR"}  # of the notes; the others are English
HEAD = ("id", "claim", "found", "right", "judged by")


def as_html(claims: list[Claim], verdicts: dict[str, int]) -> str:
    """One fold for each verdict; the claim's own words and figures, and what became of them."""
    from . import claims_picture  # when asked for: the command line never does

    folds = [
        _fold(verdict, claims_picture.key(verdict), [c for c in claims if c.verdict == verdict])
        for verdict in verdicts
    ]
    words = _said("Show the claims that have these words")
    drawn = claims_picture.picture(claims, verdicts) if claims else ""
    return f'<div class="memlab-claims" data-filter="{words}">{drawn}{"".join(folds)}</div>'


def _fold(verdict: str, key: str, claims: list[Claim]) -> str:
    head = "".join(f'<th scope="col">{_said(name)}</th>' for name in HEAD)
    rows = "".join(map(_row, claims))
    return (
        f"<details><summary>{key}<span>{_said(verdict)}</span>: {len(claims)}</summary>"
        '<table class="memlab-ledger claims">'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></details>"
    )


def _row(one: Claim) -> str:
    """The id is a link to itself, so that a reader can pass a claim on."""
    name = f'<th scope="row"><a href="#{_escaped(one.id)}">{_escaped(one.id)}</a></th>'
    claim = f"{_said(one.claim)}{_small(one.figures)}{_quoted(one)}"
    found = f"{_said(one.result)}{_small(one.reason)}"
    cells = (claim, found, _said(one.right_figure or ""), _judged(one))
    body = "".join(f'<td class="words">{cell}</td>' for cell in cells)
    return f'<tr id="{_escaped(one.id)}">{name}{body}</tr>'


def _quoted(one: Claim) -> str:
    """The note's own words, which no language changes, and the line where they stand."""
    if not one.quote:
        return ""
    language = LANGUAGES.get(one.id.partition("-")[0], "en")
    words = f'<q lang="{language}">{_escaped(one.quote)}</q>'
    return f"<br>{words} <small>{_said(Message('line {1}', one.line))}</small>"


def _judged(one: Claim) -> str:
    """The function that computes it, in tests/audit; or where it was read; or neither."""
    if one.check:
        return f"<code>{_escaped(one.check)}</code>"
    if not one.source:
        return _said("neither check nor source")
    return f'<a href="{_escaped(one.link)}">{_said(Message("source: {1}", one.source))}</a>'


def _small(words: str) -> str:
    return f"<br><small>{_said(words)}</small>" if words else ""


def _said(words: str) -> str:
    return _escaped(say(words)) if words else ""


def _escaped(words: str) -> str:
    import html  # when asked for: the command line never does

    return html.escape(words)
