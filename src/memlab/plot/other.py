"""Any matplotlib figure as a picture of the book: the same font, text as text, stable bytes."""

import io
import re

from ..base.messages import say
from .canvas import FONT, Picture


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
    file = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": title}):
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(file, format="svg", metadata={"Title": title, **nothing})
    svg = file.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = svg.replace("<svg ", '<svg role="img" style="max-width:100%;height:auto" ', 1)
    svg = re.sub(r"font: ([\d.]+px)[^;\"]*", lambda m: f"font: {m[1]} {FONT}", svg)
    # Two decimals of a point are more than a screen shows, and half the bytes.
    svg = re.sub(r"\d+\.\d{3,}", lambda m: f"{float(m[0]):.2f}".rstrip("0").rstrip("."), svg)
    return Picture(title, svg)
