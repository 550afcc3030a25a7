"""A stored picture in a page: the page's paper and ink, the terms' own colours, no style inside."""

import re
import xml.etree.ElementTree as ET

import pytest
from test_site import PAGES, SITE

from memlab.plot.canvas import Canvas
from memlab.plot.colours import GREY, INK, PAPER

pytest.importorskip("sphinx", reason="no book: Sphinx is not installed")
from memlab_figures import IMAGE, INLINE, adapted  # noqa: E402

BLUE, ORANGE = "#0072B2", "#E69F00"


def drawn(*calls):
    sheet = Canvas()
    for name, *given in calls:
        getattr(sheet, name)(*given)
    return sheet.picture("A title", 100).svg


def fills(svg):
    """What each text is written in, by its words."""
    return {text.text: text.get("fill") for text in ET.fromstring(svg).iter() if text.text}


def test_ink_and_paper_are_the_pages_and_colours_stay():
    svg = adapted(
        drawn(
            ("box", 0, 0, 100, 40, ORANGE),
            ("box", 0, 50, 100, 40, BLUE),
            ("words", 50, 20, "on a colour", "middle"),
            ("words", 50, 70, "white on a colour", "middle", PAPER),
            ("words", 300, 20, "on paper"),
            ("words", 300, 70, "grey", "end", GREY),
            ("line", 0, 95, 100, 95),
        ),
        "d1",
        'What "it" shows',
    )
    assert fills(svg) == {
        "on a colour": INK,
        "white on a colour": PAPER,
        "on paper": "var(--memlab-ink)",
        "grey": "var(--memlab-grey)",
    }
    assert svg.count(f'fill="{ORANGE}"') == svg.count(f'fill="{BLUE}"') == 1
    assert svg.count('stroke="var(--memlab-paper)"') == 2 and 'stroke="var(--memlab-grey)"' in svg
    assert f'fill="{PAPER}"' not in svg.replace("white on a colour", "").split("<text")[0]
    root = ET.fromstring(svg)
    assert root.attrib["aria-label"] == 'What "it" shows' and root.attrib["role"] == "img"
    assert root.attrib["viewBox"] == "-10 -10 620 120" and "height" not in root.attrib
    assert " style=" not in svg and "<title" not in svg


def test_what_lies_on_top_counts_also_under_a_slanted_edge():
    svg = adapted(
        drawn(
            ("area", "M0 100L100 0L200 100Z", ORANGE),
            ("words", 100, 80, "in the hill", "middle"),
            ("words", 20, 20, "beside it", "middle"),
            ("box", 60, 70, 80, 20, PAPER),
            ("words", 100, 80, "on a patch", "middle"),
            ("box", 400, 0, 40, 40, INK),
            ("words", 420, 20, "1", "middle", PAPER),
        ),
        "d1",
    )
    ink, paper = "var(--memlab-ink)", "var(--memlab-paper)"
    assert fills(svg) == {"in the hill": INK, "beside it": ink, "on a patch": ink, "1": paper}
    assert ET.fromstring(svg).get("aria-label") == "A title"


def test_matplotlibs_styles_become_attributes():
    plt = pytest.importorskip("matplotlib.figure")
    from memlab.plot.other import picture

    figure = plt.Figure(figsize=(6.25, 3))
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color=BLUE)
    axes.set_title("a line")
    svg = adapted(picture(figure, "A line").svg, "d2")
    assert not re.search(r"style|metadata|xlink|<title|font-family", svg)
    assert 'width="600"' in svg and 'font-size="10"' in svg and 'font-size="1.2em"' in svg
    assert f'stroke="{BLUE.lower()}"' in svg and "#000000" not in svg
    ids = re.findall(r' id="([^"]+)"', svg)
    named = re.findall(r'(?:url\(#|href="#)([^")]+)', svg)
    assert ids and set(ids) == set(named) and all(each.startswith("d2-") for each in ids)


def test_a_colour_that_looks_like_an_id_is_none():
    hatched = '<rect x="0" y="0" width="9" height="9" fill="url(#p) #EEEEEE"/>'
    pattern = '<defs><pattern id="p"><path d="M0 0V6" stroke="#A6A6A6"/></pattern></defs>'
    svg = drawn().replace("</svg>", f"{pattern}{hatched}</svg>")
    done = adapted(svg, "d3")
    assert 'fill="url(#d3-p) #EEEEEE"' in done and 'id="d3-p"' in done and "#A6A6A6" in done


@pytest.mark.skipif(not PAGES, reason="no book: `make book` builds it")
def test_every_drawing_of_the_site_stands_in_its_page():
    pages = {name: (SITE / name).read_text(encoding="utf-8") for name in PAGES}
    assert not any(IMAGE.search(text) for text in pages.values())
    drawings = [found for text in pages.values() for found in INLINE.findall(text)]
    assert len(drawings) > 75 * len(list(SITE.glob("*/intro.html")))
    for drawing in drawings:
        assert "<title" not in drawing and 'aria-label=""' not in drawing
    assert not list(SITE.glob("*/_images/*.svg"))
    answers = [
        path.read_text(encoding="utf-8") for path in SITE.glob("*/_static/answers/07_*.json")
    ]
    assert answers and all("var(--memlab-ink)" in text for text in answers)
