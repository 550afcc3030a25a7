"""The picture of the address space: every block where it was put, for as long as it lived."""

import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_plot import SVG, WIDTH, fills, spans, words

from memlab.plot import COLOURS, address_space
from memlab.plot.address_space import EDGE, FREE
from memlab.plot.canvas import MARGIN
from memlab.plot.lifetimes import lifetimes
from memlab.units import MiB

# Three pairs of 8 MiB with 4 MiB between them fill three segments; the pairs go, 12 MiB come.
STORY = [
    ("alloc", name, size * MiB)
    for i in "123"
    for name, size in ((f"a{i}", 8), (f"g{i}", 4), (f"b{i}", 8))
]
STORY += [("free", f"{pair}{i}", 0) for i in "123" for pair in "ab"]
STORY += [("alloc", "big", 12 * MiB)]
TERMS = {f"{pair}{i}": "activations" for i in "123" for pair in "ab"}
TERMS |= {f"g{i}": "gradients" for i in "123"} | {"big": "logits"}


def where(found):
    """Each block as (whose, MiB from, MiB to, first moment, moment after its last)."""
    lives = found.blocks
    return {each.ident: (each.low / MiB, each.high / MiB, each.start, each.end) for each in lives}


def test_a_story_by_hand():
    found = lifetimes(STORY)
    blocks = where(found)
    assert blocks["a1"] == (0, 8, 0, 9) and blocks["g1"] == (8, 12, 1, 16)
    assert blocks["b3"] == (52, 60, 8, 14) and blocks["big"] == (60, 72, 15, 16)
    assert [low / MiB for low, _ in found.lanes] == [0, 20, 40, 60]
    assert found.lanes[-1][1] == 72 * MiB
    assert [each.start for each in found.reserved] == [0, 3, 6, 15] and found.moments == 16


def test_the_same_in_expandable_segments():
    found = lifetimes(STORY, 68 * MiB, expandable=True)
    assert where(found)["big"] == (12, 24, 15, 16)  # where b1 and a2 were
    assert [(low / MiB, high / MiB) for low, high in found.lanes] == [(0, 60)]


def test_a_freed_segment_makes_room_in_the_stack():
    events = [("alloc", "x", 12 * MiB), ("alloc", "y", 12 * MiB), ("free", "x", 0)]
    events += [("alloc", "z", 14 * MiB), ("alloc", "w", 10 * MiB)]
    found = lifetimes(events, 36 * MiB)
    blocks = where(found)
    # Asking for z gave the segment of x back, and w stands where x was.
    assert [blocks[name][:2] for name in "xyzw"] == [(0, 12), (12, 24), (24, 38), (0, 10)]
    assert [(each.low, each.end) for each in found.reserved if each.end < 4] == [(0, 3)]


SIZES = st.one_of(st.integers(1, 2 * MiB), st.integers(MiB, 40 * MiB))
STEPS = st.lists(st.tuples(st.sampled_from("mmmffr"), SIZES, st.integers(0, 99)), max_size=40)


@pytest.mark.parametrize("expandable", [False, True])
@pytest.mark.parametrize("capacity", [None, 100 * MiB])
@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(steps=STEPS)
def test_nothing_is_lost_and_nothing_overlaps(capacity, expandable, steps):
    events, live = [], []
    for ident, (action, size, pick) in enumerate(steps):
        if action == "m":
            events.append(("alloc", ident, size))
            live.append(ident)
        elif live:
            one = live[pick % len(live)]
            events.append(("free" if action == "f" else "resize", one, size))
            if action == "f":
                live.remove(one)
    found = lifetimes(events, capacity, expandable)
    for moment in range(len(found.replay.reserved)):
        blocks, reserved = (
            sorted((e.low, e.high) for e in lives if e.start <= moment < e.end)
            for lives in (found.blocks, found.reserved)
        )
        for pairs in (blocks, reserved):
            assert all(a[1] <= b[0] for a, b in zip(pairs, pairs[1:], strict=False))
        assert sum(b - a for a, b in blocks) == found.replay.allocated[moment]
        assert sum(b - a for a, b in reserved) == found.replay.reserved[moment]
        for low, high in blocks:
            inside = sum(max(0, min(high, b) - max(low, a)) for a, b in reserved)
            assert inside == high - low


def pictures():
    many = [("alloc", i, (i % 37 + 1) * 100_000) for i in range(3000)]
    many += [("free", i, 0) for i in range(0, 3000, 2)]
    phases = ["forward"] * 3000 + ["backward"] * 1500
    return [
        address_space(STORY, TERMS),
        address_space(STORY, TERMS, capacity=68 * MiB, title="On a card of 68 MiB"),
        address_space(STORY, TERMS, capacity=68 * MiB, expandable=True),
        address_space(many, dict.fromkeys(range(3000), "weights"), labels=phases),
        address_space(many, start=2900, expandable=True, title="A long title " * 9),
        address_space([("alloc", 1, 1)]),
    ]


def test_words_stay_on_the_sheet_and_apart():
    for drawn in pictures():
        found = list(spans(drawn))
        for i, (left, right, y, text) in enumerate(found):
            assert left >= -MARGIN and right <= WIDTH + MARGIN, (drawn, text)
            for other_left, other_right, other_y, other in found[i + 1 :]:
                apart = right <= other_left or other_right <= left or abs(y - other_y) >= 14
                assert apart, (drawn, text, other)


def test_same_bytes_twice_and_small():
    for one, two in zip(pictures(), pictures(), strict=True):
        assert one.svg == two.svg and len(one.svg.encode()) < 100_000


def test_it_says_what_is_what():
    plain, tight, expandable, many, *_ = map(words, pictures())
    assert {"a1 8 MiB", "g2 4 MiB", "big", "activations", "gradients", "logits"} <= set(plain)
    assert "at the end: reserved 72 MiB, in blocks 24 MiB" in plain and "20 MiB" in plain
    assert "out of memory: 12 MiB asked for" in tight and "limit 68 MiB" in tight
    assert "at the end: reserved 60 MiB, in blocks 24 MiB" in expandable
    assert {"forward", "backward", "free in a segment"} <= set(many)


def test_rectangles_are_the_bytes():
    drawn = address_space(STORY, TERMS)
    colours = fills(drawn, "path")
    assert {COLOURS[term] for term in ("activations", "gradients", "logits")} <= set(colours)
    boxes = [
        (float(box.get("height")), float(box.get("width")))
        for box in ET.fromstring(drawn.svg).iter(f"{SVG}rect")
        if box.get("fill") == FREE and box.get("stroke") == EDGE
    ]
    heights = [high for high, _ in boxes]
    assert heights[0] / heights[-1] == pytest.approx(20 / 12, abs=0.01)
    assert boxes[0][1] / boxes[-1][1] == pytest.approx(16, abs=0.1)


@pytest.mark.parametrize(
    ("events", "more", "message"),
    [
        ([], {}, "no event from start=0 on; the trace has 0"),
        (STORY, {"start": 99}, "no event from start=99 on; the trace has 16"),
        ([("alloc", 1, 0)], {}, "asks for no memory"),
        ([("free", 1, 0)], {}, "1 holds no memory"),
    ],
)
def test_wrong_input_is_named(events, more, message):
    with pytest.raises(ValueError, match=message):
        address_space(events, **more)
