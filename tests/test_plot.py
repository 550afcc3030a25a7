"""Pictures: the book's colours, text as text, nothing outside the sheet, the same bytes twice."""

import re
import warnings
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import pytest

from memlab.base import messages
from memlab.base.numerals import written
from memlab.fit import limit_of
from memlab.formats import format_of, names
from memlab.ledger import Ledger, Row
from memlab.model import Model
from memlab.plot import (
    COLOURS,
    beyond_the_model,
    bits,
    block_tables,
    curves,
    decision,
    ledger_bar,
    logits_in_time,
    matrices,
    page_tables,
    picture,
    ratios,
    routing,
    saved_layer,
    timeline,
    turns,
    who_holds,
)
from memlab.plot.canvas import MARGIN, WIDTH, width_of
from memlab.plot.colours import PAPER, colour_of, contrast, in_order, ink_on
from memlab.plot.layout import PARTS, parts
from memlab.plot.ticks import step_of
from memlab.run import Run
from memlab.step import simulate
from memlab.units import GiB, MiB
from memlab.units import text as sized

SVG = "{http://www.w3.org/2000/svg}"
GPT2 = simulate(Model.preset("gpt2"), "bf16", Run(tokens=64)).saved
LOOPS = {
    "plain loop": ([("three copies of the logits", "logits", 12 * GiB)], "gone with a flag"),
    "a loop with a longer name": (
        [("a second model", "reference", 15 * GiB), ("a tile", "other", GiB)],
        "a flag whose words are so many that they need a second line below the row they belong to",
    ),
    "nothing": ([], "no flag"),
}
LAYER = simulate(Model.preset("llama-3-8b"), "bf16", Run(tokens=8192)).saved


HELD = {
    "DDP": [{"weights": [(0, 1)] * 2}, {"weights": [(0, 1)] * 2, "gradients": [None, (0, 1)]}],
    "a way with a long name": [{"weights": [(0.25, 0.5), None]}] * 2,
}


@pytest.fixture
def ledger():
    rows = [
        Row("optimizer", derived=4 * GiB, measured=4 * GiB + 832),
        Row("weights", derived=2 * GiB, measured=2 * GiB),
        Row("gradients", derived=2 * GiB, measured=2 * GiB),
    ]
    return Ledger("A model · a recipe", rows)


class Tracker:
    """What a tracker shows of a step: up through the forward pass, down through the backward."""

    def __init__(self, count):
        half = count // 2
        self.layers = [
            {"weights": 40 * MiB, "activations": min(i, count - i) * MiB, "inputs": 512}
            for i in range(count)
        ]
        self.timeline = [
            SimpleNamespace(
                index=i, total=sum(layer.values()), phase="forward" if i <= half else "backward"
            )
            for i, layer in enumerate(self.layers)
        ]

    def contents(self, at):
        return self.layers[at]


def words(drawn):
    return [text.text for text in ET.fromstring(drawn.svg).iter(f"{SVG}text")]


def test_a_limit_in_bytes_is_named_as_short_as_it_can_be(ledger):
    assert "limit 24 GiB" in words(ledger_bar(ledger, limit=24 * GiB))
    assert "limit 24 GiB" in words(ledger_bar(ledger, limit=24 * GiB + 1))


def fills(drawn, tag="rect"):
    return [shape.get("fill") for shape in ET.fromstring(drawn.svg).iter(f"{SVG}{tag}")]


def spans(drawn):
    """(left, right, baseline) of each text, by the widths that the layout reckons with."""
    for text in ET.fromstring(drawn.svg).iter(f"{SVG}text"):
        wide = width_of(text.text, text.get("font-weight") == "bold")
        share = {"middle": 0.5, "end": 1.0}.get(text.get("text-anchor"), 0.0)
        left = float(text.get("x")) - share * wide
        yield left, left + wide, float(text.get("y")), text.text


def pictures(ledger):
    small = Ledger.of("derived", {term: (i + 1) * 2**20 for i, term in enumerate(COLOURS)})
    return [
        ledger_bar(ledger),
        ledger_bar(ledger, limit="24 GiB"),
        ledger_bar(ledger, limit="6 GiB", title="A long title " * 9),
        ledger_bar(ledger, limit="80 GB"),
        ledger_bar(small, title="All the terms"),
        ledger_bar({"AdamW": ledger, "a recipe whose name has to be wrapped": small}),
        timeline(Tracker(11)),
        timeline(Tracker(400)),
        bits(*names()),
        curves({"fp32": [5.6, 4.2, 3.1], "a run with a longer name": {1: 5.6, 2: 4.3, 30: 3.1}}),
        curves({f"run {i}": [3.0, 1.0 + i / 1000] for i in range(6)}, title="Names that touch"),
        ratios({"peak of the step": 0.41, "time of one step on this very machine": 1.3, "loss": 1}),
        bits("fp32", "tf32", "fp16", "bf16", "int8/128", title="Bits"),
        routing([(0, 1), (0, 3), (0, 1), (3, 4)], experts=6, title="Experts"),
        routing([(11,)], experts=12),
        logits_in_time(4096, vocab=151936),
        saved_layer(LAYER),
        logits_in_time(8, vocab=50257, kept=True, title="Held by the caller"),
        logits_in_time(1024, vocab=8192, format="fp32"),
        block_tables({"a conversation": [1, 2, 9], "another": [1, 2, 16]}, 17, title="Tables"),
        page_tables({"A": [0, 2], "B": [1]}, {"A": 30, "B": 3}, 17, title="Pages"),
        page_tables({"A": [0, 1, 2, 3], "B": [4]}, {"A": 64, "B": 1}, 5),
        matrices({"one": [("q", 64, 8), ("out", 8, 64)], "a longer label": [("k", 1, 64)]}),
        turns({"rank 0": [("F0", 0, 1), ("B0", 4, 2)], "rank 1": [("I11", 1, 1)]}, title="1F1B"),
        who_holds(HELD, ["between two steps of a run", "forward of layer 3"], title="Who"),
        beyond_the_model(94 * GiB, LOOPS, title="Five loops"),
    ]


def test_words_stay_on_the_sheet_and_apart(ledger):
    for drawn in pictures(ledger):
        found = list(spans(drawn))
        assert found
        for left, right, _, text in found:
            assert left >= -MARGIN and right <= WIDTH + MARGIN, (drawn, text)
        for i, (left, right, y, text) in enumerate(found):
            for other_left, other_right, other_y, other in found[i + 1 :]:
                apart = right <= other_left or other_right <= left or abs(y - other_y) >= 14
                assert apart, (drawn, text, other)


def test_same_bytes_twice_and_small(ledger):
    for one, two in zip(pictures(ledger), pictures(ledger), strict=True):
        assert one.svg == two.svg
        assert len(one.svg.encode()) < 40_000
        assert not re.search(r"\d\.\d{2}", re.sub(r">[^<]*<", "", one.svg))


def test_a_screen_reader_finds_the_title(ledger):
    root = ET.fromstring(ledger_bar(ledger)._repr_svg_())
    assert root.get("role") == "img"
    assert root.find(f"{SVG}title").text == "A model · a recipe"
    assert repr(ledger_bar(ledger)) == "<Picture: A model · a recipe>"


def test_bars_are_stacked_in_one_order_in_the_books_colours(ledger):
    terms = [COLOURS[term] for term in ("weights", "gradients", "optimizer")]
    drawn = [fill for fill in fills(ledger_bar(ledger)) if fill != PAPER]
    assert drawn == terms * 2
    assert in_order(["scratch", "optimizer", "kv_cache", "weights", "optimizer"]) == [
        "weights",
        "optimizer",
        "kv_cache",
        "scratch",
    ]
    assert colour_of("kv_cache") == "#CC79A7" and colour_of("scratch") == COLOURS["other"]


def test_bar_lengths_are_the_bytes(ledger):
    boxes = ET.fromstring(ledger_bar(ledger).svg).iter(f"{SVG}rect")
    wide = [float(box.get("width")) for box in boxes if box.get("fill") in COLOURS.values()]
    assert wide[2] / wide[0] == pytest.approx(2, abs=0.01)


def test_labels_totals_and_difference(ledger):
    found = words(ledger_bar(ledger))
    assert found.count("weights") == found.count("optimizer") == 2
    assert found.count("8 GiB") >= 2 and "+832 B" in found
    assert "derived" in found and "measured" in found and "traced" not in found


def test_a_missing_figure_is_named_not_compared():
    rows = [Row("weights", derived=100, measured=100), Row("gradients", derived=100)]
    found = words(ledger_bar(Ledger("x", rows)))
    assert "without gradients" in found and not any(w.startswith("−") for w in found)


def test_terms_without_room_go_to_the_key():
    tiny = Ledger.of("derived", {"weights": GiB, "buffers": 4096})
    found = words(ledger_bar(tiny))
    assert "buffers 4 KiB" in found and "weights" in found


def test_limit_is_drawn_with_the_words_it_was_given(ledger):
    assert "limit 80 GB" in words(ledger_bar(ledger, limit="80 GB"))
    assert "limit 6 GiB" in words(ledger_bar(ledger, limit=6 * GiB))


def test_the_limit_of_a_card_is_what_a_step_may_take_of_it(ledger):
    free, name = limit_of("RTX 4090")
    assert f"limit {sized(free)} ({name})" in words(ledger_bar(ledger, limit="RTX 4090"))
    assert free < 24 * GiB  # as its name is meant


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda good: ledger_bar(Ledger("x", [])), "no figure above zero"),
        (lambda good: ledger_bar({}), "no figure above zero"),
        (lambda good: ledger_bar(good - good - good), "weights=-.* is negative"),
        (lambda good: ledger_bar(good, limit=0), "limit=0 is not a size"),
        (lambda good: ledger_bar(good, limit="24 gigs"), "unknown unit 'gigs'"),
        (lambda good: ledger_bar(good, limit="no card"), "no card"),
        (lambda good: timeline(SimpleNamespace(timeline=[])), "saw no event"),
        (lambda good: bits(), "no format to draw"),
        (lambda good: bits("fp7"), "unknown format 'fp7'"),
        (lambda good: picture(None, ""), "title is empty"),
        (lambda good: routing([], 2), "no tokens to draw"),
        (lambda good: logits_in_time(0, vocab=8), "there is nothing to draw"),
        (lambda good: block_tables({}, 4), "no tables to draw"),
        (lambda good: block_tables({"A": [0]}, 4), "A names block 0; the pool has 1 to 3"),
        (lambda good: block_tables({"A": [1]}, 40), "blocks=40; the picture has room for 17"),
        (lambda good: page_tables({}, {}, 4), "0 tables to draw"),
        (lambda good: page_tables({"A": [0]}, {"A": 1}, 18), "has room for 1 to 17"),
        (lambda good: page_tables({"A": [0], "B": [0]}, {"A": 1, "B": 1}, 4), "B names page 0"),
        (lambda good: page_tables({"A": [0]}, {"A": 17}, 4), "17 tokens in 1 pages of 16"),
        (lambda good: saved_layer(GPT2), r"layer of the Llama family"),
        (lambda good: beyond_the_model(GiB, {"a loop": ([], "")}), "no loop adds anything"),
        (lambda good: matrices({}), "no matrix to draw"),
        (lambda good: matrices({"a": [("q", 0, 3)]}), "a side of 0"),
        (lambda good: matrices({"a": [("q", 8, 8)] * 9}), "a: q has no room"),
        (lambda good: routing([(0,), (2,)], 2), "token 1 goes to expert 2; there are X=2"),
        (lambda good: turns({"rank 0": []}), "0 units of time; the picture has room for 1 to 44"),
        (lambda good: turns({"rank 0": [("F0", 44, 1)]}), "45 units of time"),
        (lambda good: turns({"rank 0": [("X0", 0, 1)]}), "turn 'X0'; known: F, B, I, W"),
        (lambda good: who_holds({}, ["now"]), "nothing to draw"),
        (lambda good: who_holds(HELD, ["now"]), "DDP has 2 cells for 1 moments"),
        (lambda good: who_holds({"A": [{"weights": [(0, 2)]}]}, ["now"]), r"the part \(0, 2\)"),
        (lambda good: ledger_bar(good).save("bar.png"), r"'bar.png' does not end in .svg"),
    ],
)
def test_wrong_input_is_named(ledger, draw, message):
    with pytest.raises(ValueError, match=message):
        draw(ledger)


def test_timeline_marks_the_peak_and_its_moment():
    for count in (12, 4001):
        tracker = Tracker(count)
        peak = max(tracker.timeline, key=lambda event: event.total)
        assert peak.phase == "forward"
        mib = 40 + count // 2
        marked = next(word for word in words(timeline(tracker)) if word.startswith("peak"))
        assert marked.endswith(", forward")
        assert marked.startswith(f"peak {mib} MiB" if mib < 1000 else "peak 1.99")
        assert "backward" in words(timeline(tracker))
        assert fills(timeline(tracker), "path")[-4:].count(COLOURS["weights"]) <= 1
        assert COLOURS["activations"] in fills(timeline(tracker), "path")


def test_timeline_may_start_later():
    tracker = Tracker(40)
    assert "forward" not in words(timeline(tracker, start=30))
    with pytest.raises(ValueError, match="saw no event from 40 on"):
        timeline(tracker, start=40)


def test_bits_add_up():
    for name in names():
        kind = format_of(name)
        assert sum(count for _, count in parts(kind)) == kind.bits
        assert all(part in PARTS for part, _ in parts(kind))
    assert parts(format_of("tf32"))[-1] == ("not used", 13)
    assert parts(format_of("e8m0")) == [("exponent", 8)]
    assert "+ fp32 per 128 values" in words(bits("int8/128"))


def test_every_word_can_be_read():
    for colour in [*COLOURS.values(), *PARTS.values()]:
        assert contrast(ink_on(colour), colour) >= 4.5
    assert contrast("#000000", "#FFFFFF") == 21


def test_axis_steps_are_powers_of_two():
    assert step_of(8 * GiB, 5) == 2 * GiB
    assert step_of(10 * GiB, 5) == 2 * GiB
    assert step_of(11 * GiB, 5) == 4 * GiB


def test_every_copy_and_every_expert_is_drawn():
    drawn = fills(routing([(0, 1), (0, 3), (0, 1), (3, 4)], experts=6))
    tokens, copies, experts = 4, 8, 6
    assert drawn.count(COLOURS["weights"]) == experts
    assert drawn.count(COLOURS["activations"]) == 2 * copies + 2 * tokens


def test_a_block_of_two_tables_is_drawn_as_shared():
    drawn = fills(block_tables({"A": [1, 2, 3], "B": [1, 4]}, 6))
    shared, own = COLOURS["embedding"], COLOURS["KV cache"]  # in tables, in the pool, in the key
    assert (drawn.count(shared), drawn.count(own)) == (2 + 1 + 1, 3 + 3 + 1)


def test_the_last_page_is_filled_as_far_as_it_has_tokens():
    drawn = page_tables({"A": [1, 0]}, {"A": 20}, 4)
    boxes = ET.fromstring(drawn.svg).iter(f"{SVG}rect")
    wide = [float(b.get("width")) for b in boxes if b.get("fill") == COLOURS["KV cache"]]
    assert sorted(wide) == [150 / 4, 150 / 4, 150, 150]  # in the table, and in the pool


def test_what_a_rank_holds_is_filled():
    drawn = fills(who_holds(HELD, ["now", "then"]))
    # Four pieces of DDP, a quarter twice, and the key; of the gradients one, and the key.
    assert drawn.count(COLOURS["weights"]) == 4 + 2 + 1
    assert drawn.count(COLOURS["gradients"]) == 1 + 1


def test_each_turn_is_drawn_as_long_as_it_takes():
    drawn = turns({"rank 0": [("F0", 0, 1), ("B0", 2, 2)], "rank 1": [("F0", 1, 1)]})
    boxes = list(ET.fromstring(drawn.svg).iter(f"{SVG}rect"))
    wide = {
        colour: [float(b.get("width")) for b in boxes if b.get("fill") == COLOURS[colour]]
        for colour in ("activations", "gradients")
    }
    assert len(wide["activations"]) == 2 + 1 and wide["gradients"][0] == 2 * wide["activations"][0]


def test_what_a_loop_adds_is_as_wide_as_its_bytes_and_named_once():
    drawn = beyond_the_model(94 * GiB, LOOPS)
    wide = {
        box.get("fill"): float(box.get("width"))
        for box in ET.fromstring(drawn.svg).iter(f"{SVG}rect")
        if float(box.get("height")) > 30
    }
    logits, second, tile = (wide[COLOURS[term]] for term in ("logits", "reference", "other"))
    assert logits / second == pytest.approx(12 / 15, rel=0.01)
    assert logits / tile == pytest.approx(12, rel=0.02)
    assert words(drawn).count("a tile") == 1 and words(drawn).count("a second model") == 1
    assert "+ 16 GiB" in words(drawn) and "94 GiB" in words(drawn)


def test_the_area_of_a_matrix_is_its_parameters():
    drawn = matrices({"MHA": [("q", 512, 256), ("k", 128, 256)]})
    boxes = [r for r in ET.fromstring(drawn.svg).iter(f"{SVG}rect") if r.get("fill") != PAPER]
    areas = [float(box.get("width")) * float(box.get("height")) for box in boxes]
    assert areas[0] == pytest.approx(4 * areas[1], rel=0.01)
    assert "163,840" in drawn.svg


@pytest.mark.parametrize("language", messages.languages()[1:])
def test_the_ticks_of_a_matplotlib_figure_are_said(monkeypatch, language):
    figure_module = pytest.importorskip("matplotlib.figure")
    monkeypatch.setattr(messages, "_chosen", [language])
    figure = figure_module.Figure(layout="constrained")
    axes = figure.subplots()
    axes.plot([1, 2], [0.25, 0.5])
    axes.set_xticks([1, 2], ["weights", "8,192"])
    axes.set_yticks([0.25, 0.5])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        svg = picture(figure, "weights").svg
    wanted = {messages.catalogue(language)["weights"]}
    wanted |= {written(number, language) for number in ("8,192", "0.25")}
    assert wanted <= set(re.findall(r">([^<>]+)</text>", svg))


def test_a_matplotlib_figure_becomes_a_picture(tmp_path):
    figure = pytest.importorskip("matplotlib.figure").Figure(figsize=(6.25, 3))
    axes = figure.subplots()
    axes.plot([1, 2, 3], [1, 4, 9])
    axes.set_xlabel("tokens")
    one, two = picture(figure, "A curve"), picture(figure, "A curve")
    assert one.svg == two.svg and "tokens" in words(one) and "<dc:date>" not in one.svg
    one.save(tmp_path / "curve.svg")
    assert (tmp_path / "curve.svg").read_text(encoding="utf-8") == one.svg


def test_the_copies_of_the_logits_are_as_high_as_their_bytes():
    """Each copy is a rectangle of its bytes; three of fp32 stand on each other at the peak."""
    drawn = logits_in_time(4096, vocab=151936)
    boxes = [
        (shape.get("fill"), float(shape.get("height")))
        for shape in ET.fromstring(drawn.svg).iter(f"{SVG}rect")
    ][1:]
    heights = {fill: {high for of, high in boxes if of == fill} for fill, _ in boxes}
    assert len(heights) == 6 and all(len(each) == 1 for each in heights.values())
    assert sorted(high for (high,) in heights.values()) == [46.7] * 2 + [93.3] * 4
    assert "peak 6.955 GiB" in words(drawn)
    assert "peak 8.114 GiB" in words(logits_in_time(4096, vocab=151936, kept=True))


def test_a_timeline_marks_every_hill_and_a_card():
    tracker = Tracker(400)
    plain, marked = words(timeline(tracker)), words(timeline(tracker, hills=True))
    top = max(e.total for e in tracker.timeline if e.phase == "backward")
    assert [word for word in marked if word not in plain] == [f"backward {sized(top)}"]
    carded = timeline(Tracker(12), limit="RTX 4090")
    assert f"limit {sized(limit_of('RTX 4090')[0])} (RTX 4090)" in words(carded)
    # The scale leaves room for a line above all that is held.
    heights = [
        float(shape.get("d").split("L")[0].split()[1])
        for shape in ET.fromstring(carded.svg).iter(f"{SVG}path")
        if shape.get("stroke-dasharray") == "5 4"
    ]
    assert len(heights) == 2 and min(heights) >= 0  # the line, and what stands for it in the key


def test_a_layer_shows_every_saved_byte():
    """Bars as wide as their bytes; the sizes beside them add up to what the layer saves."""
    for implementation in ("transformers", "memlab"):
        run = Run(tokens=8192, implementation=implementation)
        table = simulate(Model.preset("llama-3-8b"), "bf16", run).saved
        drawn = saved_layer(table)
        said = [word for word in words(drawn) if re.fullmatch(r"[\d.]+ MiB", word)]
        shown = sum(float(word.split()[0]) for word in said)
        assert shown == pytest.approx(table.bytes / MiB, abs=0.5)  # each is rounded for reading
        bars = [
            float(shape.get("width"))
            for shape in ET.fromstring(drawn.svg).iter(f"{SVG}rect")
            if shape.get("height") == "28" and shape.get("x") != "0"
        ]
        large = [row.bytes for row in table.rows if row.bytes > 2 * MiB]
        widths = [width for width in bars if width > 2]
        assert [round(size / max(large), 2) for size in large] == [
            pytest.approx(width / max(widths), abs=0.02) for width in widths
        ]


def test_a_decision_has_each_question_beside_its_answer():
    drawn = decision([("Is it large?", "halve it"), ("Is it old?", "renew it")], "Keep it", "What?")
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", drawn.svg)
    asked = ["What?", "Is it large?", "halve it", "yes"]
    asked += ["no", "Is it old?", "renew it", "yes", "no", "Keep it"]
    assert texts == asked
    assert drawn.svg.count("<rect") == 1 + 2 * 2 + 1  # the paper, two boxes a question, the end
    with pytest.raises(ValueError, match="no question to draw"):
        decision([], "Keep it")
