"""Any matplotlib figure as a picture of the book: the same font, text as text, stable bytes."""

import io
import re
import warnings

from ..base.messages import say
from .canvas import FONT, Picture

DECIMALS = re.compile(r"\d+\.\d{3,}")


def picture(figure, title: str) -> Picture:
    """Turn a matplotlib Figure into a Picture.

    Shapes      figure: matplotlib.figure.Figure, about 6.25 inches wide
    Leaves out  dates and random names, so that drawing twice gives the same bytes
    Raises      ValueError without a title: it is what a screen reader says
    """
    if not title:
        raise ValueError("title is empty; say in a few words what the picture shows")
    import matplotlib
    from matplotlib.text import Text

    title = say(title)
    for words in figure.findobj(Text):
        if words.get_text():
            words.set_text(say(words.get_text()))
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            _say_ticks(axis.get_major_formatter())
    file = io.StringIO()
    with (
        matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": title}),
        warnings.catch_warnings(),
    ):
        # It has no ideographs to measure; the text stays text, and the reader's font has them.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(file, format="svg", metadata={"Title": title, **nothing})
    svg = file.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = svg.replace("<svg ", '<svg role="img" style="max-width:100%;height:auto" ', 1)
    svg = re.sub(r"font: ([\d.]+px)[^;\"]*", lambda m: f"font: {m[1]} {FONT}", svg)
    # Two decimals of a point are more than a screen shows, and half the bytes.
    # In the tags, that is: 1.024 in a text may be more than a thousand.
    svg = re.sub(r"<[^>]*>", lambda tag: DECIMALS.sub(_two, tag[0]), svg)
    return Picture(title, svg)


def _say_ticks(formatter) -> None:
    """Let the labels of an axis be said: they are written anew whenever it is drawn."""
    written = formatter.format_ticks
    formatter.format_ticks = lambda at: [x if "$" in x else say(x) for x in written(at)]


def _two(found: re.Match[str]) -> str:
    return f"{float(found[0]):.2f}".rstrip("0").rstrip(".")
