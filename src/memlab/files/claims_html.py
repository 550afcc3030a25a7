"""Claims as a page shows them: folded by verdict, each row with its id to link to.

What filters them on a page is a few lines in the book's own script; without it nothing is hidden.
"""

from __future__ import annotations

from ..base.message import Message
from ..base.messages import say

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from .claims import Claim, Claims

LANGUAGES = {"S0": "pt-BR", "S1": "zh-TW", "S3": "pt-BR"}  # of the notes; the others are English
COLUMNS = {"id": "11%", "claim": "37%", "found": "34%", "judged by": "18%"}  # and their widths


def as_html(claims: Claims) -> str:
    """One fold for each verdict; the claim's own words and figures, and what became of them."""
    from . import claims_picture  # when asked for: the command line never does

    by = {v: [one for one in claims.claims if one.verdict == v] for v in claims.counts()}
    folds = [_fold(verdict, claims_picture.key(verdict), few) for verdict, few in by.items()]
    words = _said("Show the claims that have these words")
    fates = claims.of_the_note().counts() or claims.counts()
    drawn = claims_picture.picture(claims.claims, fates) if claims.claims else ""
    return f'<div class="memlab-claims" data-filter="{words}">{drawn}{"".join(folds)}</div>'


def _fold(verdict: str, key: str, claims: list[Claim]) -> str:
    """A table, for which the book allows no style of its own; on a phone each row is a card."""
    wide = "".join(f'<col width="{share}">' for share in COLUMNS.values())
    head = "".join(f'<th scope="col">{_said(name)}</th>' for name in COLUMNS)
    rows = "".join(map(_row, claims))
    ours = sum(one.new for one in claims)
    many: object = len(claims) - ours
    if ours:
        many = Message("{1}, and {2} added while auditing", len(claims) - ours, ours)
    name = _said(verdict)
    count = _said(Message("{1}: {2}", verdict, many)).removeprefix(name)
    return (
        f"<details><summary>{key}<span>{name}</span>{count}</summary>"
        f'<table class="memlab-ledger claims"><colgroup>{wide}</colgroup>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></details>"
    )


def _row(one: Claim) -> str:
    """The id is a link to itself, so that a reader can pass a claim on."""
    ids = "".join(f'<span id="{_escaped(name)}"></span>' for name in one.also or ())
    name = f'<th scope="row">{ids}<a href="#{_escaped(one.id)}">{_escaped(one.id)}</a></th>'
    ours = _small("added while auditing") if one.new else ""
    claim = f"{_said(one.claim)}{_small(one.figures)}{_quoted(one)}{ours}"
    found = f"{_said(one.result)}{_right(one)}{_small(one.reason)}"
    body = "".join(f'<td class="words">{cell}</td>' for cell in (claim, found, _judged(one)))
    return f'<tr id="{_escaped(one.id)}">{name}{body}</tr>'


def _right(one: Claim) -> str:
    """What belongs there, where that is not what was found."""
    if not one.right_figure or one.right_figure in one.result:
        return ""
    return f"<br><b>{_said(Message('right: {1}', one.right_figure))}</b>"


def _quoted(one: Claim) -> str:
    """The note's own words, which no language changes, and the lines where they stand.

    The book makes a link of each line that its chapter shows, by the place that is named here.
    """
    if not one.quote:
        return ""
    note = one.id.partition("-")[0]
    words = f'<q lang="{LANGUAGES.get(note, "en")}">{_escaped(one.quote)}</q>'
    lines = "".join(
        f' <small data-place="note-{int(note[1:]):03}-{line}">{_said(Message("line {1}", line))}'
        "</small>"
        for line in dict.fromkeys((one.line, *(one.also or {}).values()))
    )
    return f"<br>{words}{lines}"


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
