"""Where the words of a drawing stand in a page: reckoned from the face's metrics, by no browser."""

import re
import xml.etree.ElementTree as ET
from typing import NamedTuple

from memlab_figures import SVG, adapted

from memlab.plot.canvas import BOLDER, FACE, PHONE, SIZE, advance, descends

# Pixels of its letters, in a page and on a phone (book/_static/memlab.css).
SIZES = {"memlab": (SIZE, PHONE), "matplotlib": (10, 11)}
# Units of the drawing: between words side by side, between two lines, from words to the edge of the
# sheet or of the box that they are written in.
BESIDE, BELOW, EDGE = 2.0, 1.0, 0.5
MOVED = re.compile(r"translate\(([-\d.]+)[ ,]+([-\d.]+)\)")
TURNED = re.compile(r"rotate\(-90\b")


class Words(NamedTuple):
    """A text and the box of its ink."""

    text: str
    left: float
    top: float
    right: float
    bottom: float
    place: tuple[str | None, ...]  # what the lines of one label have in common


def words_of(root, size):
    """(order of painting, Words) of each text of a drawing."""
    for order, text in enumerate(root.iter()):
        if text.tag != f"{SVG}text" or not (text.text or "").strip():
            continue
        share = text.get("font-size", "1em")
        scale = size * float(share.removesuffix("em"))
        bold = BOLDER if text.get("font-weight") in ("bold", "600", "700") else 1
        wide = sum(advance(c, FACE) for c in text.text) / 100 * scale * bold
        ideographs = any(c >= "\u2e80" for c in text.text)
        up = (0.86 if ideographs else 0.72) * scale
        down = (0.23 if descends(text.text) else 0.1 if ideographs else 0.01) * scale
        shift = {"middle": 0.5, "end": 1.0}.get(text.get("text-anchor"), 0.0) * wide
        box = (-shift, -up, wide - shift, down)
        moves = text.get("transform", "")
        if TURNED.search(moves):
            box = (box[1], -box[2], box[3], -box[0])
        x, y = float(text.get("x", 0)), float(text.get("y", 0))
        if moved := MOVED.search(moves):
            x, y = x + float(moved[1]), y + float(moved[2])
        place = (text.get("text-anchor"), text.get("x"), text.get("fill"))
        yield order, Words(text.text, x + box[0], y + box[1], x + box[2], y + box[3], place)


def boxes_of(root):
    """(order of painting, left, top, right, bottom, fill) of each rectangle that is seen."""
    aside = {id(one) for name in ("defs", "clipPath") for d in root.iter(SVG + name) for one in d}
    for order, box in enumerate(root.iter()):
        if box.tag == f"{SVG}rect" and id(box) not in aside:
            x, y, wide, high = (float(box.get(key, 0)) for key in ("x", "y", "width", "height"))
            yield order, x, y, x + wide, y + high, box.get("fill", "")


def crowded(svg):
    """What is wrong with the words of a stored picture, as it stands in a page and on a phone."""
    root = ET.fromstring(adapted(svg[svg.index("<svg") :], "d"))
    kind = "matplotlib" if root.get("width") == "600" else "memlab"  # as the style sheet asks
    left, top, wide, high = map(float, root.get("viewBox").split())
    for size, where in zip(SIZES[kind], ("in a page", "on a phone"), strict=True):
        found = list(words_of(root, size))
        for i, (order, one) in enumerate(found):
            out = max(left - one.left, one.right - left - wide)
            if max(out, top - one.top, one.bottom - top - high) > -EDGE:
                yield f"{one.text!r} leaves the drawing {where}"
            for _, other in found[i + 1 :]:
                if _touch(one, other):
                    yield f"{one.text!r} and {other.text!r} touch {where}"
            if _leaves(one, [box for box in boxes_of(root) if box[0] < order]):
                yield f"{one.text!r} is wider than what it is written in, {where}"


def _touch(one, other):
    across = max(one.left, other.left) - min(one.right, other.right)
    along = max(one.top, other.top) - min(one.bottom, other.bottom)
    # The lines of one label are as close as the lines of a text.
    return across < BESIDE and along < (0 if one.place == other.place else BELOW)


def _leaves(words, below):
    """Whether words reach over the side of the coloured box in whose middle they stand."""
    x, y = (words.left + words.right) / 2, (words.top + words.bottom) / 2
    for _, left, top, right, bottom, fill in reversed(below):
        if left <= x <= right and top <= y <= bottom:
            on_colour = fill != "none" and "paper" not in fill
            return on_colour and min(words.left - left, right - words.right) < EDGE
    return False
