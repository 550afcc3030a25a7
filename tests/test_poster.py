"""The poster of the step: its figures are the simulation's, and a room can read all of it."""

import json
import re
import shutil
import xml.etree.ElementTree as ET
from math import atan, degrees

import browser
import poster
import pytest

from memlab import Model, Run, text
from memlab.base.message import asked, is_message
from memlab.fit import limit_of
from memlab.step import Lora, simulate
from memlab.step.core.moments import hills

SVG = "{http://www.w3.org/2000/svg}"
LANGUAGES = ["en", *poster.catalogue.languages()]
LLAMA = Model.preset("llama-3-8b")
RUN = Run(batch=1, tokens=8192)
HOME = "https://someone.github.io/memlab/"
CAPITAL, POINT = 0.716, 25.4 / 72  # of Helvetica's size; millimetres
# Texts that touch each other, or leave the sheet: boxes of what is written, less the air above and
# below capitals.
OVERLAP = """() => {
  const found = [], boxes = [...document.querySelectorAll("text")].map(text => {
    const { x, y, width, height } = text.getBBox(), air = 0.14 * height, low = y + height - air;
    return { said: text.textContent, left: x, right: x + width, top: y + air, low };
  });
  const [, , wide, high] = document.querySelector("svg").getAttribute("viewBox").split(" ");
  boxes.forEach((a, i) => {
    if (a.left < 24 || a.top < 24 || a.right > wide - 24 || a.low > high - 24)
      found.push(`leaves the sheet: ${a.said}`);
    for (const b of boxes.slice(i + 1))
      if (a.left < b.right && b.left < a.right && a.top < b.low && b.top < a.low)
        found.push(`${a.said} | ${b.said}`);
  });
  return found;
}"""


@pytest.fixture(scope="module")
def drawings():
    return {each: drawn(each) for each in LANGUAGES}


def drawn(language, address=HOME):
    words = {}
    for name in ("memlab", "site"):
        words |= {} if language == "en" else poster.catalogue.translations(language, name)
    return poster.poster(words, language, address)


def said(svg):
    return [one.text for one in ET.fromstring(svg).iter(f"{SVG}text")]


def test_every_figure_is_the_simulations(drawings):
    shown = said(drawings["en"])
    step, (room, _) = simulate(LLAMA, "bf16", RUN), limit_of("H100 80GB")
    tops = {name: text(found.total()) for name, found in hills(step).items()}
    assert f"peak {text(step.peak.bytes)}" in shown
    for phase in ("forward", "backward", "optimizer"):
        assert f"{phase} {tops[phase]}" in shown
    assert " ".join(shown).count(text(room)) == 1
    rows = shown[shown.index("the run as it is") :]
    for name, change in poster.REMEDIES.items():
        less = simulate(LLAMA, "bf16", RUN.replace(**change))
        sizes = [text(found.total()) for found in hills(less).values()]
        at = rows.index(name)
        cells = rows[at + 1 : at + 1 + 10]
        cells = [cell for cell in cells if len(cell) > 1][:5]
        assert cells == [*sizes, "yes" if less.peak.bytes <= room else "no"], name


def test_a_formula_gives_what_is_written_beside_it(drawings):
    shown = said(drawings["en"])
    shape = {"L": LLAMA.layers, "D": LLAMA.d_model, "F": LLAMA.d_ff, "N": LLAMA.heads}
    shape |= {"K": LLAMA.kv_heads, "H": LLAMA.head_dim, "V": LLAMA.vocab, "T": RUN.tokens}
    shape["P"] = LLAMA.parameter_count
    for letter, value in shape.items():
        assert f" {letter}={value:,} " in f" {' '.join(shown)}", letter
    for _, _, name, formula, _ in poster.TERMS:
        at = shown.index(name)
        size = int(eval(formula.replace("·", "*"), {"__builtins__": {}}, shape))
        assert text(size) in shown[at : at + 2], name
    drawn_formulas = " ".join(shown).replace(" ", "")
    assert all(formula.replace(" ", "") in drawn_formulas for *_, formula, _ in poster.TERMS)


def test_the_peak_stands_at_the_line_of_code_that_runs_then(drawings):
    where, at, most = poster.peak()
    step = simulate(LLAMA, "bf16", RUN, every_layer=True)
    totals, held = [], 0
    for _, change, _ in step.log.events:
        held += change
        totals.append(held)
    event = totals.index(max(totals))
    assert most == max(totals) == step.peak.bytes
    marks = step.log.marks
    assert marks["second.backward"] <= event < marks["second.optimizer"]
    root = ET.fromstring(drawings["en"])
    lines = [one for one in root.iter(f"{SVG}text") if one.text == "loss.backward()"]
    assert len(lines) == 2 and [one.get("font-weight") for one in lines] == ["bold", None]
    event = step.replay(limit_of("H100 80GB")[0]).out_of_memory.event
    assert marks["second.forward"] < event < marks["second.loss"]
    layer = [layer for begun, layer in step.log.entered if begun <= event][-1]
    assert f"layer {layer + 1} of 32" in said(drawings["en"])


def test_a_remedy_names_what_it_makes_smaller():
    fallen = {name: set(poster.remedy(name)[1]) for name in poster.REMEDIES}
    assert fallen["the run as it is"] == set()
    assert fallen["fused AdamW"] == {"other"} and fallen["loss in chunks"] == {"logits"}
    assert fallen["gradient checkpointing"] == {"activations"}
    assert fallen["half the tokens"] == {"activations", "logits"}
    lora = fallen["LoRA on q and v, rank 16"]
    assert lora >= {"gradients", "optimizer"} and "weights" not in lora
    assert poster.REMEDIES["LoRA on q and v, rank 16"]["lora"] == Lora(16)


def test_remedies_are_those_of_the_chapters():
    code = ""
    for name in ("one_sheet", "07_step"):
        path = poster.ROOT / "notebooks" / f"{name}.ipynb"
        code += "".join("".join(c["source"]) for c in json.loads(path.read_text("utf-8"))["cells"])
    for change in list(poster.REMEDIES.values())[1:]:
        pairs = (
            f'"{key}": {value!r}'.replace("'", '"')
            for key, value in change.items()
            if key != "lora"
        )
        assert all(pair in code for pair in pairs), change
    assert '"lora": Lora(16)' in code


def test_letters_are_read_from_two_metres(drawings):
    for svg in drawings.values():
        assert 'width="594mm" height="420mm"' in svg
        sizes = [float(one.get("font-size")) for one in ET.fromstring(svg).iter(f"{SVG}text")]
        high = min(sizes) * CAPITAL * POINT
        assert 60 * degrees(atan(high / 2000)) >= 10, high
        assert " style=" not in svg and "@import" not in svg


@pytest.fixture(scope="module")
def program():
    if not any(map(shutil.which, browser.PROGRAMS)):
        pytest.skip("no browser")
    with browser.chromium() as running:
        yield running


def test_nothing_overlaps_or_leaves_the_sheet(program, drawings):
    page = program.new_page()
    for language, svg in drawings.items():
        page.set_content(svg)
        assert page.evaluate(OVERLAP) == [], language
    moved = drawings["en"].replace('text-anchor="end"', "")
    page.set_content(moved)
    assert any("|" in line for line in page.evaluate(OVERLAP))
    page.close()


def test_it_is_printed_on_one_sheet_of_a2(program, drawings, tmp_path):
    data = poster.printed(program, drawings["en"], tmp_path / "x.pdf").read_bytes()
    assert len(re.findall(rb"/Type\s*/Page\b(?!s)", data)) == 1
    wide, high = map(float, re.findall(rb"/MediaBox\s*\[0 0 ([\d.]+) ([\d.]+)", data)[0])
    assert abs(wide - poster.WIDE) < 1 and abs(high - poster.HIGH) < 1


def test_the_address_is_there_where_it_is_set(drawings, monkeypatch):
    assert HOME in said(drawings["en"])
    assert not any("http" in (line or "") for line in said(drawn("en", "")))
    monkeypatch.setenv("MEMLAB_REPOSITORY", "https://github.com/some-one/memory")
    assert poster.address() == "https://some-one.github.io/memory/"
    monkeypatch.delenv("MEMLAB_REPOSITORY")
    assert poster.address() == ""


def test_a_translator_is_given_all_that_the_poster_says(monkeypatch):
    import sources

    heard: set = set()
    rendered = poster.rendered
    monkeypatch.setattr(
        poster,
        "rendered",
        lambda told, *rest: (heard.update(asked(told)), rendered(told, *rest))[1],
    )
    drawn("en")
    known = {*sources.blocks_of("site"), *sources.blocks_of("memlab")}
    assert {words for words in heard if is_message(words)} - known == set()
    assert set(poster.WORDS) <= known
