"""The ledger: totals, differences, joins, and what it refuses."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.ledger import Ledger, Row

DERIVED = Ledger.of("derived", {"weights": 100, "optimizer": 208}, title="a")
MEASURED = Ledger.of("measured", {"weights": 100, "optimizer": 200}, title="b")


def test_two_columns_stand_beside_each_other():
    both = DERIVED.beside(MEASURED)
    assert both["optimizer"].difference == -8
    assert both["weights"].difference == 0
    assert both.difference() == -8
    assert both.total("derived") == 308 and both.total("measured") == 300


def test_measured_is_preferred_to_traced_for_the_difference():
    assert Row("w", derived=10, traced=11, measured=13).difference == 3
    assert Row("w", derived=10, traced=11).difference == 1
    assert Row("w", measured=13).difference is None


def test_a_missing_figure_is_shown_as_missing_and_hides_the_total_difference():
    both = DERIVED.beside(Ledger.of("measured", {"weights": 100}))
    assert both["optimizer"].measured is None
    assert both.difference() is None
    assert "0 B" in str(both) and both.table()[2] == ["optimizer", "208", "", ""]


def test_sum_and_difference_are_row_by_row():
    total = DERIVED + DERIVED
    assert total["optimizer"].derived == 416
    assert (total - DERIVED)["optimizer"].derived == 208
    more = DERIVED + Ledger.of("derived", {"cache": 5})
    assert list(more) == ["weights", "optimizer", "cache"] and more.total() == 313


def test_compare_shows_terms_of_either_side():
    comparison = DERIVED.compare(Ledger.of("derived", {"weights": 60, "master": 4}, title="c"))
    assert comparison.figures() == [
        ("weights", 100, 60),
        ("optimizer", 208, 0),
        ("master", 0, 4),
        ("total", 308, 64),
    ]
    assert json.loads(comparison.to_json())[-1] == {"term": "total", "a": 308, "c": 64}
    assert "−244 B" in str(comparison)


def test_text_is_aligned_and_ends_with_readable_totals():
    lines = str(DERIVED.beside(MEASURED)).splitlines()
    assert lines[0] == "a" and lines[-1].split() == ["308", "B", "300", "B"]
    assert re.search(r"optimizer +208 +200 +−8 B", str(DERIVED.beside(MEASURED)))


def test_html_escapes_names_and_has_headings_for_screen_readers():
    html = Ledger.of("derived", {"<b>": 1}, title="<i>")._repr_html_()
    assert "<b>" not in html and "&lt;b&gt;" in html and "&lt;i&gt;" in html
    assert '<th scope="row">' in html and '<th scope="col">' in html


names = st.text("abcdefgh <>&\"'é位", min_size=1, max_size=8)
figures = st.none() | st.integers(0, 2**60)
rows = st.builds(Row, names, derived=figures, traced=figures, measured=figures, why=names)


@given(st.lists(rows, unique_by=lambda row: row.term))
def test_json_round_trip(made):
    ledger = Ledger("title", made)
    assert Ledger.from_json(ledger.to_json()) == ledger


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: Row("weights", derived=1.5), TypeError, "derived=1.5 is a float"),
        (lambda: Row("weights", measured=True), TypeError, "measured=True is a bool"),
        (lambda: Ledger("t", [Row("a"), Row("a")]), ValueError, "'a' stands in 2 rows"),
        (lambda: Ledger.of("guessed", {}), ValueError, "unknown column 'guessed'; known: derived"),
        (lambda: DERIVED.total("guess"), ValueError, "unknown column 'guess'"),
        (lambda: DERIVED["logits"], KeyError, "no term 'logits' in 'a'; it has: weights"),
        (lambda: DERIVED.beside(DERIVED), ValueError, "'weights' has a derived figure in both"),
        (lambda: DERIVED + 3, TypeError, "a Ledger is needed"),
        (lambda: DERIVED.explain(cache="x"), KeyError, "no term 'cache'"),
        (lambda: Ledger.from_json("{}"), ValueError, "not a ledger in JSON"),
    ],
)
def test_wrong_input_fails_by_name(call, error, words):
    with pytest.raises(error, match=re.escape(words)):
        call()
