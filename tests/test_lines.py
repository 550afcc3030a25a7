"""Curves and ratios: each point where its value says, names apart, wrong input refused by name."""

import re

import pytest
from test_plot import fills, words

from memlab.plot import curves, ratios
from memlab.plot.lines import decimal_ticks


def lines(drawn):
    """The points of each curve, the stubs beside the names left out."""
    paths = re.findall(r'<path d="M([^"]+)" fill="none"', drawn.svg)
    points = [[tuple(map(float, p.split())) for p in path.split("L")] for path in paths]
    stubs = [path for path in points if len(path) == 2 and path[0][1] == path[1][1]]
    return [path for path in points if path not in stubs]


def test_a_curve_goes_through_its_values():
    (line,) = lines(curves({"fp32": [4.0, 2.0, 3.0]}))
    (x1, y1), (x2, y2), (x3, y3) = line
    assert x2 - x1 == pytest.approx(x3 - x2, abs=0.2)
    # Down the page is less; 4 to 2 is twice as far as 2 to 3.
    assert y2 - y1 == pytest.approx(2 * (y2 - y3), abs=0.2)


def test_values_may_come_with_their_places():
    (line,) = lines(curves({"fp32": {1: 4.0, 3: 2.0, 11: 2.5}}))
    (x1, _), (x2, _), (x3, _) = line
    assert x3 - x2 == pytest.approx(4 * (x2 - x1), abs=0.5)


def test_names_at_the_end_do_not_touch():
    drawn = curves({f"run {i}": [3.0, 1.0] for i in range(6)})
    heights = [float(y) for y in re.findall(r'y="([\d.]+)"[^>]*>run \d', drawn.svg)]
    assert len(heights) == 6
    assert all(b - a >= 17.9 for a, b in zip(sorted(heights), sorted(heights)[1:], strict=False))


def test_each_curve_has_a_stroke_of_its_own():
    drawn = curves({f"run {i}": [3.0, i] for i in range(6)})
    strokes = re.findall(r'stroke="(#\w+)" stroke-width="2"( stroke-dasharray="[^"]+")?', drawn.svg)
    assert len({colour for colour, _ in strokes}) == len({dash for _, dash in strokes}) == 6


@pytest.mark.parametrize(
    ("low", "high", "most", "ticks"),
    [
        (2.5, 5.6, 5, [2, 3, 4, 5, 6]),
        (0, 30, 6, [0, 5, 10, 15, 20, 25, 30]),
        (0.0, 0.09, 5, [0, 0.02, 0.04, 0.06, 0.08, 0.1]),
        (7, 7, 5, [6, 8]),
    ],
)
def test_ticks_are_round_and_enclose_the_values(low, high, most, ticks):
    found = decimal_ticks(low, high, most)
    assert found[0] <= low and found[-1] >= high
    assert len(found) <= most + 2
    if low != high:
        assert found == pytest.approx(ticks)


@pytest.mark.parametrize(
    ("series", "message"),
    [
        ({}, "0 series to draw"),
        ({str(i): [1, 2] for i in range(7)}, "7 series to draw; 1 to 6"),
        ({"fp32": [1.0]}, "fp32: 1 values; a line needs two"),
        ({"fp32": [1.0, float("nan")]}, "fp32 has a value that is not finite"),
    ],
)
def test_what_cannot_be_drawn_is_refused(series, message):
    with pytest.raises(ValueError, match=message):
        curves(series)


def test_a_ratio_below_one_goes_left_and_one_above_goes_right():
    drawn = ratios({"peak": 0.5, "time": 2.0, "loss": 1.0}, before="plain")
    assert {"plain", "0.50×", "2.00×", "1.00×"} <= set(words(drawn))
    boxes = re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', drawn.svg)[-2:]
    (less, less_wide), (more, more_wide) = [tuple(map(float, box)) for box in boxes]
    assert less + less_wide == pytest.approx(more, abs=0.2)
    assert more_wide == pytest.approx(2 * less_wide, abs=0.2)
    assert len(set(fills(drawn)[-2:])) == 2


@pytest.mark.parametrize("value", [-0.1, float("inf"), float("nan")])
def test_what_is_no_ratio_is_refused(value):
    with pytest.raises(ValueError, match="time=.* is not a ratio"):
        ratios({"time": value})


def test_no_ratio_at_all_is_refused():
    with pytest.raises(ValueError, match="no figure to draw"):
        ratios({})
