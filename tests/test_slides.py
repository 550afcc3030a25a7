"""Slides from the cells of the chapters: what stands on them, and that a room can read it."""

import html
import json
import re
import shutil

import browser
import pytest
import slides
from decks.blocks import blocks, rendered, sentences
from decks.deck import Deck
from test_calculator_page import until

MOST = 30  # slides of a deck
LEAST = 16  # px of a letter
ROOMS = {"16:9": (1280, 720), "4:3": (1024, 768)}
LOOKED_AT = [
    ("en", "02_weights"),
    ("pt-BR", "25_sharding"),
    ("zh-TW", "07_step"),
]
TAG = re.compile(r"<[^>]*>")
# Of the slide that is shown: texts beyond its edge, and letters that are too small. Of a formula's
# letters indices are left out, which are small beside others; of a figure all letters count.
READ = """() => {
  const slide = document.querySelector("section.present .slide"), found = [];
  const edge = slide.getBoundingClientRect(), hidden = slide.matches(".tall");
  const texts = document.createTreeWalker(slide, NodeFilter.SHOW_TEXT);
  for (let text; (text = texts.nextNode()); ) {
    const parent = text.parentElement;
    if (!text.data.trim() || (hidden && parent.closest("h2"))) continue;
    const range = document.createRange();
    range.selectNodeContents(text);
    for (const box of range.getClientRects())
      if (box.left < edge.left - 1 || box.right > edge.right + 1 || box.top < edge.top - 1 ||
          box.bottom > edge.bottom + 1) { found.push(`leaves the slide: ${text.data}`); break; }
    const svg = parent.closest("svg");
    const scale = svg ? svg.getScreenCTM().a : edge.width / slide.offsetWidth;
    const size = parseFloat(getComputedStyle(parent.closest("math") ?? parent).fontSize) * scale;
    if (size < %f) found.push(`${size.toFixed(1)} px: ${text.data}`);
  }
  return found;
}""" % (LEAST - 0.01)


def deck(name):
    path = slides.ROOT / "notebooks" / f"{name}.ipynb"
    return Deck(json.loads(path.read_text(encoding="utf-8")), name)


def shown(slide):
    return "\n".join(slide.parts)


@pytest.fixture(scope="module")
def program():
    if not any(map(shutil.which, browser.PROGRAMS)):
        pytest.skip("no browser")
    if not (slides.REVEAL / "dist").is_dir():
        pytest.skip("no node: reveal.js is not installed")
    with browser.chromium() as running:
        yield running


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The decks that are looked at: (language, chapter) -> folder."""
    if not (slides.REVEAL / "dist").is_dir():
        pytest.skip("no node: reveal.js is not installed")
    out = tmp_path_factory.mktemp("slides")
    made = {}
    for language, name in LOOKED_AT:
        notebook = slides.notebooks(language, [name], tmp_path_factory.mktemp("laid"))[name]
        made[language, name] = slides.write(Deck(notebook, name), language, out)
    return made


def opened(program, folder, size, log):
    page = program.new_page(viewport=dict(zip(("width", "height"), size, strict=True)))
    page.set_default_timeout(300_000)
    page.on("console", lambda message: log.append(message.text))
    page.on("pageerror", lambda error: log.append(str(error)))
    page.on("request", lambda request: log.append(request.url) if ":" in other(request.url) else 0)
    page.goto((folder / "index.html").as_uri())
    page.wait_for_selector("html[data-ready]", state="attached")
    return page


def other(url):
    """An address, without the beginning that the deck's own files have."""
    return url.removeprefix("file:")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("One. Two (see b. C). Three", ["One.", "Two (see b. C).", "Three"]),
        ("**Guess.** Two, e.g. This. End.", ["**Guess.**", "Two, e.g. This.", "End."]),
        ("At $D = 1. 5$ or `a. B`. *So.* 1.5.", ["At $D = 1. 5$ or `a. B`.", "*So.*", "1.5."]),
        ("1. *One*: a. Two.", ["1. *One*: a.", "Two."]),
        ("**先預測。**兩個。寫下（也許。）好", ["**先預測。**", "兩個。", "寫下（也許。）好"]),
    ],
)
def test_a_sentence_ends_where_it_ends(text, said):
    assert sentences(text) == said


def test_blocks_are_told_apart_and_rendered_without_styles_or_dead_links():
    text = "(x)=\n# T\n\nA [b](c.ipynb) {cite}`d`.\n\n:::{table}\n:class: wide\n\n"
    text += "| a | b |\n|--:|---|\n| 1 | $x$ |\n:::\n"
    text += "\n$$\ny\n$$\n\n- e\n- f"
    found = list(blocks(text))
    assert [kind for kind, _ in found] == ["h1", "p", "table", "math", "list"]
    assert found[0] == ("h1", "T") and found[1] == ("p", "A [b](c.ipynb).")
    assert rendered(found[1][1]) == "<p>A b.</p>\n"
    assert "style" not in rendered(found[2][1]) and "<math" in rendered(found[3][1])
    assert 'href="https://a.org"' in rendered("[b](https://a.org)")


def test_every_deck_is_short_and_holds_what_a_chapter_has():
    for path in slides.chapters():
        found = deck(path.stem)
        kinds = [slide.kind for slide in found.slides]
        assert 8 <= len(kinds) <= MOST, path.stem
        assert kinds[0] == "title" and kinds.count("title") == 1
        assert kinds.count("machine") == 1, path.stem
        assert not any(slide.parts == [] for slide in found.slides)
        all_shown = "".join(map(shown, found.slides))
        assert not re.search(r"<li>\s*(<p>\s*</p>)?\s*</li>", all_shown), path.stem
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        drawn = sum(
            "image/svg+xml" in o.get("data", {}) for c in cells for o in c.get("outputs", [])
        )
        assert len(re.findall("<svg", all_shown)) >= drawn
        assert ' style="' not in all_shown and "<style" not in all_shown
        asked = [c for c in cells if "exercise" in c["metadata"].get("tags", [])]
        assert len(re.findall(r"<strong>Exercise", all_shown)) == len(asked)


def test_the_prediction_comes_before_its_figure_and_nothing_of_the_text_is_lost():
    found = deck("07_step")
    first, figure = found.slides[1], found.slides[2]
    assert "Predict first." in shown(first) and "do 1 and 3 together?" in shown(first)
    assert figure.kind == "figure" and "One step of Llama-3-8B" in shown(figure)
    titles = [slide.title for slide in found.slides]
    points = found.slides[titles.index("Key points")]
    assert "<table>" in shown(points) and "The peak is a moment." in shown(points)
    machine = next(slide for slide in found.slides if slide.kind == "machine")
    assert "def sketch(" in TAG.sub("", shown(machine))
    everything = "".join(shown(slide) + "".join(slide.notes) for slide in found.slides)
    path = slides.ROOT / "notebooks" / "07_step.ipynb"
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "markdown":
            for kind, source in blocks("".join(cell["source"])):
                if kind in ("p", "math", "table", "code"):
                    assert rendered(source) in everything, source
    # The answer to a slider's question, and the solutions, are the speaker's.
    assert "What you should have seen." not in "".join(map(shown, found.slides))
    notes = html.unescape(TAG.sub("", "".join(n for slide in found.slides for n in slide.notes)))
    assert "What you should have seen." in notes and "def checkpointed(" in notes
    assert "Visualize and understand GPU memory" in notes


def test_a_cell_may_overrule_the_rules():
    title = {
        "cell_type": "markdown",
        "metadata": {},
        "source": "# T\n\n## A\n\nOne. Two.\n\nThree. Four.",
    }
    plain, whole, notes = (
        Deck({"cells": [title | {"metadata": {"slides": rule} if rule else {}}]}, "x").slides[1:]
        for rule in ("", "whole", "notes")
    )
    assert "Two" not in shown(plain[0]) and "Two" in plain[0].notes[0]
    assert "Four." in shown(whole[0]) and notes == []
    with pytest.raises(ValueError, match="'all': notes or whole"):
        Deck({"cells": [title | {"metadata": {"slides": "all"}}]}, "x")


@pytest.mark.parametrize("room", ROOMS)
@pytest.mark.parametrize(("language", "name"), LOOKED_AT)
def test_nothing_leaves_a_slide_and_all_can_be_read(program, folders, language, name, room):
    log: list = []
    page = opened(program, folders[language, name], ROOMS[room], log)
    assert page.evaluate("document.documentElement.lang") == language
    count = page.evaluate("Reveal.getTotalSlides()")
    assert 8 <= count <= MOST
    for at in range(count):
        page.evaluate(f"Reveal.slide({at})")
        assert page.evaluate(READ) == [], (name, at + 1)
    assert log == []
    # What is read is what is seen: larger letters leave the slide, smaller ones are found.
    page.evaluate("document.querySelector('section.present .slide').style.fontSize = '90px'")
    assert any(line.startswith("leaves") for line in page.evaluate(READ))
    page.evaluate("document.querySelector('section.present .slide').style.fontSize = '15px'")
    assert any("15.0 px" in line for line in page.evaluate(READ))
    page.close()


def test_the_speaker_has_a_window_whose_arrows_move_the_room(program, folders):
    page = opened(program, folders["en", "02_weights"], ROOMS["16:9"], [])
    page.evaluate("Reveal.slide(3)")
    with page.expect_popup() as popup:
        page.keyboard.press("s")
    notes = popup.value
    now = notes.locator(".slides > section.now")
    assert "Attention compares tokens" in now.locator("aside.notes").inner_text()
    notes.keyboard.press("ArrowRight")
    until(page, lambda: page.evaluate("Reveal.getIndices().h") == 4)
    notes.wait_for_selector(".slides > section:nth-of-type(5).now", state="attached")
    notes.close()
    page.close()


def test_a_deck_is_printed_one_slide_to_a_sheet(program, folders):
    folder = folders["en", "02_weights"]
    data = slides.printed(program, folder).read_bytes()
    count = (folder / "index.html").read_text(encoding="utf-8").count("<section>")
    assert len(re.findall(rb"/Type\s*/Page\b(?!s)", data)) == count
    assert re.findall(rb"/MediaBox\s*\[0 0 (\d+)", data)[0] == b"960"  # points of 1,280 px


def test_a_deck_asks_nobody_and_its_contents_lead_to_it(folders):
    for (language, name), folder in folders.items():
        text = (folder / "index.html").read_text(encoding="utf-8")
        assert slides.POLICY in text and ' style="' not in text
        assert re.findall(r'(?:src|<link[^>]* href)="(?:https?:)?//', text) == []
        for file in re.findall(r'(?:src|<link[^>]* href)="([^"]+)"', text):
            assert (folder / file).is_file(), file
        lead = slides.contents(language, folder.parent.parent).read_text(encoding="utf-8")
        assert f'href="{name}/index.html"' in lead


def test_an_unknown_chapter_is_refused_by_name(capsys):
    with pytest.raises(SystemExit):
        slides.main(["07_stop"])
    assert "no chapter '07_stop'; known: one_sheet, 01_formats" in capsys.readouterr().err
