"""The words of drawings stay apart and inside, in each language, in a page and on a phone."""

import json
import re

import answers
import catalogue
import outputs
import pytest
import sources
import typeface

pytest.importorskip("memlab_figures", reason="no book: Sphinx is not installed")
from labels import SIZES, crowded  # noqa: E402

from memlab.base import messages  # noqa: E402
from memlab.ledger import Ledger  # noqa: E402
from memlab.plot import (  # noqa: E402
    beyond_the_model,
    curves,
    ledger_bar,
    logits_in_time,
    routing,
    turns,
)
from memlab.plot.canvas import (  # noqa: E402
    BOLDER,
    FACE,
    PHONE,
    Canvas,
    advance,
    descends,
    room_of,
    width_of,
)
from memlab.units import GiB  # noqa: E402

PICTURE = re.compile(r"<svg\b.*?</svg>", re.S)
LANGUAGES = ["en", *catalogue.languages()]


def pictures(path, language):
    """(where, SVG) of all that a chapter draws in a language, answers of its sliders included.

    What a language has as English has it is left to English; of an old run it keeps nothing.
    """
    kept = answers.kept_of(path) if language == "en" else outputs.kept(language, path)
    if kept is None:
        return
    if language == "en":
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        cells = {
            cell["id"]: [outputs.shown(one) for one in cell["outputs"]]
            for cell in cells
            if cell["cell_type"] == "code"
        }
    else:
        cells = kept["cells"]
    for name, shown in cells.items():
        for one in shown:
            if isinstance(one, dict) and "image/svg+xml" in one:
                yield name, one["image/svg+xml"]
    for question in kept.get("questions", []):
        for answer in question["answers"]:
            for svg in PICTURE.findall(answer):
                yield question["question"], svg


@pytest.mark.sample(17)
@pytest.mark.parametrize("path", sources.chapters(), ids=lambda path: path.stem)
def test_no_words_of_a_stored_drawing_touch_or_leave_it(path):
    wrong = {
        (language, where, what)
        for language in LANGUAGES
        for where, svg in pictures(path, language)
        for what in crowded(svg)
    }
    assert sorted(wrong) == []


def test_every_language_has_drawings_of_its_own():
    """Of the chapters whose outputs it has; what else it shows is English."""
    for language in set(LANGUAGES) - {"en"}:
        whole = [path for path in sources.chapters() if outputs.kept(language, path) is not None]
        counts = {path.stem: sum(1 for _ in pictures(path, language)) for path in whole}
        assert sum(counts.values()) > 200, counts


def drawn(*words):
    sheet = Canvas()
    sheet.box(100, 20, 100, 40, "#0072B2")
    for place in words:
        sheet.words(*place)
    return sheet.picture("A title", 100).svg


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([(110, 40, "in a box")], []),
        ([(150, 40, "wider than its box", "middle")], ["wider than what it is written in"] * 2),
        ([(101, 40, "optimizer in a box")], ["wider than what it is written in"] * 2),
        ([(0, 80, "one"), (20, 80, "two")], ["'one' and 'two' touch"] * 2),
        ([(0, 80, "one"), (40, 80, "two")], []),
        ([(0, 80, "loss"), (10, 64, "6")], []),
        ([(0, 64, "perda"), (26, 80, "6", "end")], ["'perda' and '6' touch on a phone"]),
        ([(300, 80, "梯度"), (332, 80, "度")], ["touch on a phone"]),
        ([(609, 80, "at the edge", "end")], []),
        ([(612, 80, "beyond it", "end")], ["leaves the drawing"] * 2),
        ([(-12, 80, "before it")], ["leaves the drawing"] * 2),
    ],
)
def test_what_touches_or_leaves_is_found(words, found):
    wrong = list(crowded(drawn(*words)))
    assert len(wrong) == len(found), wrong
    for said, part in zip(wrong, found, strict=True):
        assert part in said


@pytest.mark.skipif(not typeface.faces(), reason="no node package with the text face")
def test_words_are_measured_in_the_pages_own_face():
    font = pytest.importorskip("fontTools.ttLib")
    percent = int(re.search(r"size-adjust: (\d+)%", typeface.FACE)[1])
    wide = {}
    for weight in ("400", "600"):
        file = f"source-sans-3-latin-{weight}-normal.woff"  # the same glyphs, without Brotli
        face = font.TTFont(typeface.PACKAGE / "files" / file)
        names, metrics = face.getBestCmap(), face["hmtx"]
        em = face["head"].unitsPerEm
        wide[weight] = [metrics[names[c]][0] * percent / em for c in range(32, 127)]
    assert [round(each) for each in wide["400"]] == FACE
    assert sum(wide["600"]) / sum(wide["400"]) == pytest.approx(BOLDER, abs=0.02)


def test_a_phone_sets_words_as_large_as_is_reckoned_with():
    sheet = (sources.ROOT / "book" / "_static" / "memlab.css").read_text(encoding="utf-8")
    ours = re.search(r"\.memlab-figure > svg\[aria-label\] \{[^}]*font-size: (\d+)px", sheet)
    other = re.search(r'\.memlab-figure > svg\[width="600"\] \{[^}]*font-size: (\d+)px', sheet)
    assert (int(ours[1]), int(other[1])) == (SIZES["memlab"][1], SIZES["matplotlib"][1])


def test_what_is_wider_on_a_phone():
    assert room_of("梯度") == 32 > width_of("梯度")
    assert room_of("0000") == width_of("0000")
    assert descends("perda") and not descends("loss") and not descends("損失")


ROW = re.compile(r'<rect x="([\d.]+)" y="([\d.]+)" width="[\d.]+" height="44"')
LABEL = re.compile(r'<text x="0" y="([\d.]+)"[^>]*>([^<]+)</text>')


def touching(svg):
    """The labels of a ledger bar's rows that reach the bars on a phone."""
    rows = [(float(x), float(y)) for x, y in ROW.findall(svg)]
    beside = {
        words: min(x for x, _ in rows)
        for at, words in LABEL.findall(svg)
        if any(y - 6 <= float(at) <= y + 52 for _, y in rows)
    }
    wide = {words: sum(advance(c, FACE) for c in words) * PHONE / 100 for words in beside}
    return [words for words, left in beside.items() if wide[words] + 1 > left]


@pytest.mark.parametrize("path", sources.chapters(), ids=lambda path: path.stem)
def test_no_label_of_a_row_touches_its_bar(path):
    pairs = [(language, svg) for language in LANGUAGES for _, svg in pictures(path, language)]
    assert [(lang, words) for lang, svg in pairs for words in touching(svg)] == []


def test_a_row_of_many_ideographs_has_the_room_that_it_takes_on_a_phone():
    rows = {"最佳化器，之後": Ledger.of("derived", {"weights": GiB})}
    svg = ledger_bar(rows, title="").svg
    assert "最佳化器，之後" in svg and touching(svg) == []
    assert touching(svg.replace("最佳化器，之後", "最佳化器，之後的")) == ["最佳化器，之後的"]


LOOPS = {"Trainer": ([("three copies of the logits", "logits", 12 * GiB)], "gone with a flag")}


@pytest.mark.parametrize("language", LANGUAGES)
def test_drawings_give_the_words_of_a_language_their_room(language, monkeypatch):
    monkeypatch.setattr(messages, "_chosen", [language])
    many = {"rank 0": [(f"F{i}", i, 1) for i in range(12)] + [("B0", 40, 2)]}
    for picture in (
        routing([(0, 1), (0, 3), (3, 4)], experts=6, title="A layer of experts"),
        logits_in_time(4096, vocab=151936),
        beyond_the_model(94 * GiB, LOOPS),
        curves({"fp32": [5.6, 4.2, 3.1], "bf16": [6.0, 4.3, 3.0]}),
        turns(many),
    ):
        assert list(crowded(picture.svg)) == [], picture


def test_a_turn_too_short_for_its_digits_has_no_number():
    many = {"rank 0": [(f"F{i}", i, 1) for i in range(12)] + [("B11", 40, 2)]}
    said = re.findall(r">(\d+)<", turns(many).svg)
    assert said == [*map(str, range(1, 10)), "12"]
