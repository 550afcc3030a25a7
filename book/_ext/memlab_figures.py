"""Sphinx extension of this book: drawings stand in the page itself, in the page's own colours.

A stored picture is whole: it has white paper of its own, and looks the same in any viewer. In a
page it gives that up. Paper, ink and grey become the page's (book/_static/memlab.css), so that a
drawing is dark where the page is; the colours of the terms stay, and what is written on one of them
keeps its ink. A page allows no style inside itself: what matplotlib says in styles becomes
attributes.
"""

import html
import json
import re
import xml.etree.ElementTree as ET
from functools import partial
from pathlib import Path

from memlab.plot.canvas import SIZE, width_of
from memlab.plot.colours import GREY, INK, PAPER

SVG = "{http://www.w3.org/2000/svg}"
HREF = "{http://www.w3.org/1999/xlink}href"
ET.register_namespace("", SVG[1:-1])
IMAGE = re.compile(r'<img alt="([^"]*)"[^>]* src="[^"]*_images/([^"/]+\.svg)"[^>]*/>')
INLINE = re.compile(r'<svg xmlns="[^"]*"[^>]* role="img".*?</svg>', re.S)
BOX = '<div class="memlab-figure">{}</div>'
STYLES = {"font-size", "text-anchor", "font-weight"}
STYLES |= {"fill", "fill-opacity", "opacity", "stroke", "stroke-width", "stroke-dasharray"}
STYLES |= {"stroke-dashoffset", "stroke-linejoin", "stroke-linecap", "stroke-opacity"}
# What a drawing has from its paper, and the page's name for it.
INKS = {INK: "ink", "#000000": "ink", "black": "ink"}
PAPERS = {PAPER: "paper"}
WASHES = dict.fromkeys(("#E8E8E8", "#EEEEEE", "#EFEFEF", "#F2F2F2", "#F4F4F4"), "wash")
LINES = dict.fromkeys(("#DDDDDD", "#EEEEEE"), "line")
NEUTRAL = INKS | PAPERS | WASHES | {GREY: "grey"}
POINTS = 4 / 3  # pixels of a point


def adapted(svg, name, words=""):
    """A stored picture as it stands in a page.

    name        what its ids begin with: no other picture of the page has the same
    words       what it shows, for who cannot see it; otherwise its title
    """
    root = ET.fromstring(svg)
    title = root.findtext(f"{SVG}title") or ""
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{SVG}title", f"{SVG}metadata", f"{SVG}style"):
                parent.remove(child)
        _attributes(parent)
    box = [float(part) for part in root.get("viewBox", "").split()]
    wide = root.get("width", "")
    size = float(wide.removesuffix("pt")) * (POINTS if wide.endswith("pt") else 1)
    kept = {"viewBox": root.get("viewBox", ""), "role": "img", "aria-label": words or title}
    kept["font-size"] = root.get("font-size", "10")
    if wide.endswith("pt"):  # matplotlib's: its style sheet has this one rule
        kept |= {"stroke-linejoin": "round", "stroke-linecap": "butt"}
        for text in root.iter(f"{SVG}text"):  # so that the page's style sheet can enlarge them all
            own = float(text.attrib.pop("font-size", "10px").removesuffix("px"))
            if own != 10:
                text.set("font-size", f"{own / 10:g}em")
    root.attrib.clear()
    root.attrib.update({"width": f"{size:g}"} | kept)
    _without_paper(root, box)
    _colour(root)
    _name(root, name)
    return ET.tostring(root, encoding="unicode")


def _attributes(element):
    """Styles as attributes; nothing between the elements."""
    for part in element.attrib.pop("style", "").split(";"):
        key, _, value = part.partition(":")
        if key.strip() in STYLES:
            element.set(key.strip(), value.strip())
    if HREF in element.attrib:
        element.set("href", element.attrib.pop(HREF))
    if element.tag != f"{SVG}text":
        element.text = None
    element.tail = None


def _name(root, name):
    """Ids that nobody names go, the others begin with the picture's own name."""
    text = ET.tostring(root, encoding="unicode")
    named = set(re.findall(r'(?:url\(#|href="#)([\w-]+)', text))
    for element in root.iter():
        if element.get("id") in named:
            element.set("id", f"{name}-{element.get('id')}")
        else:
            element.attrib.pop("id", None)
        for key, value in element.attrib.items():
            if "#" in value and key != "aria-label":
                element.set(key, re.sub(r"(url\(|^)#(?![0-9A-Fa-f]{6}$)", rf"\1#{name}-", value))


def _without_paper(root, box):
    """Take away what lies under the whole drawing."""
    for parent in root.iter():
        for child in parent:
            if str(child.get("fill", "")).upper() == PAPER and _covers(child, box):
                parent.remove(child)
                return


def _covers(element, box):
    corners = _corners(element)
    if not corners:
        return False
    xs, ys = [x for x, _ in corners], [y for _, y in corners]
    wide, high = max(xs) - min(xs), max(ys) - min(ys)
    return wide >= box[2] - 1 and high >= box[3] - 1


def _colour(root):
    """Give what is neutral the page's colours, but not to what is written on a colour."""
    painted: list = []  # (corners, colour), the later ones on top
    aside = {id(each) for name in ("defs", "clipPath") for d in root.iter(SVG + name) for each in d}
    for element in root.iter():
        fill, stroke = (str(element.get(key, "")).upper() for key in ("fill", "stroke"))
        if element.tag == f"{SVG}text":
            below = _below(painted, _middle(element))
            if below is None and (not fill or fill in NEUTRAL and fill != PAPER):
                _set(element, "fill", NEUTRAL.get(fill, "ink"))
            elif below == "ink" and fill == PAPER:
                _set(element, "fill", "paper")
            elif not fill:
                element.set("fill", INK)
            continue
        if fill in NEUTRAL:
            _set(element, "fill", NEUTRAL[fill])
        if name := (NEUTRAL | LINES).get(stroke):
            _set(element, "stroke", name)
        if fill and fill != "NONE" and id(element) not in aside:
            if corners := _corners(element):
                kind = NEUTRAL.get(fill) or (None if "URL" in fill else fill)
                painted.append((corners, kind if kind not in ("paper", "wash") else None))


def _set(element, key, name):
    element.set(key, f"var(--memlab-{name})")


def _middle(text):
    """A point in the middle of a text."""
    wide = 0.85 * width_of(text.text or "")  # of the widest letters
    shift = {"middle": 0, "end": -0.5}.get(text.get("text-anchor", ""), 0.5) * wide
    return float(text.get("x", 0)) + shift, float(text.get("y", 0)) - 0.35 * SIZE


def _below(painted, point):
    """The colour on which a point lies: None on the page's own, or on what is as pale."""
    return next((colour for corners, colour in reversed(painted) if _inside(corners, point)), None)


def _corners(element):
    """The corners of a rectangle, or of a path of straight lines."""
    if element.tag == f"{SVG}rect":
        at = {key: element.get(key, "0") for key in ("x", "y", "width", "height")}
        if "%" in "".join(at.values()):
            return []
        x, y, wide, high = map(float, at.values())
        return [(x, y), (x + wide, y), (x + wide, y + high), (x, y + high)]
    x = y = 0.0
    corners = []
    for command, numbers in re.findall(r"([A-Za-z])([^A-Za-z]*)", element.get("d", "")):
        values = [float(number) for number in re.findall(r"-?[\d.]+", numbers)]
        if command.upper() not in "MLHVZ":
            return []
        if command in "HV":
            x, y = (values[-1], y) if command == "H" else (x, values[-1])
        elif command in "hv":
            x, y = (x + values[-1], y) if command == "h" else (x, y + values[-1])
        elif command in "ML":
            x, y = values[-2:]
        corners.append((x, y))
    return corners


def _inside(corners, point):
    """Whether a point lies in a polygon: a ray from it crosses the edge an odd number of times."""
    x, y = point
    odd = False
    for (x1, y1), (x2, y2) in zip(corners, corners[1:] + corners[:1], strict=True):
        if (y1 > y) != (y2 > y) and x < (x2 - x1) * (y - y1) / (y2 - y1) + x1:
            odd = not odd
    return odd


def draw(app, pagename, templatename, context, doctree):
    """Put every drawing of a page into it."""
    body = context.get("body") or ""
    places = {name: path for path, name in app.builder.images.items()}
    count = 0

    def inline(match):
        nonlocal count
        count += 1
        return adapted(match[0], f"d{count}")

    def from_file(match):
        nonlocal count
        count += 1
        svg = (Path(app.srcdir) / places[match[2]]).read_text(encoding="utf-8")
        return adapted(svg[svg.index("<svg") :], f"d{count}", html.unescape(match[1]))

    context["body"] = IMAGE.sub(from_file, INLINE.sub(inline, body))


def _boxed(match, name):
    return BOX.format(adapted(match[0], name))


def finish(app, exception):
    """Drawings in answers, which a script shows, as in pages; files that no page names go."""
    if exception or app.builder.format != "html":
        return
    site = Path(app.outdir)
    for path in (site / "_static" / "answers").glob("[0-9]*.json"):
        kept = json.loads(path.read_text(encoding="utf-8"))
        for i, question in enumerate(kept["questions"]):
            kept["questions"][i]["answers"] = [
                INLINE.sub(partial(_boxed, name=f"q{i}"), one) for one in question["answers"]
            ]
        path.write_text(json.dumps(kept, ensure_ascii=False), encoding="utf-8")
    for path in (site / "_images").glob("*.svg"):
        path.unlink()


def setup(app):
    app.connect("html-page-context", draw, priority=900)  # once its words were counted
    app.connect("build-finished", finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
