"""Exercises: ○ for not yet, ✓ for right, ✗ and the hint that fits the slip."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab import exercises, units
from memlab.exercises import judge
from memlab.exercises.question import Exercise

HINT = "Two bytes for each value."


@pytest.fixture
def new(monkeypatch, capsys):
    """Register one exercise in an empty table; return a function that says what check prints."""
    monkeypatch.setattr(exercises, "_table", {})
    monkeypatch.setattr(exercises, "_load", lambda: None)

    def register(answer, **more):
        exercises.exercise("ex-try-1", answer=lambda: answer, **{"hint": HINT, **more})

        def ask(given):
            assert exercises.check("ex-try-1", given) is None
            return capsys.readouterr().out

        return ask

    return register


def test_symbols(new):
    ask = new(1536 * units.MiB)
    assert ask(...) == "○ …\n"
    assert ask(1610612736) == "✓ 1,610,612,736 B, 1.5 GiB\n"
    assert ask(42) == f"✗ {HINT}\n"


@pytest.mark.parametrize(
    "answer", ["1.5 GiB", "1536 MiB", "1,610,612,736 B", "1610612736", 1610612736.0, 3 * 2**29]
)
def test_bytes_as_text_or_number(new, answer):
    assert new(1536 * units.MiB)(answer).startswith("✓")


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (8 * 3 * 2**29, judge.BITS),
        (3 * 2**26, judge.EIGHTH),
        ("1.5 GB", judge.DECIMAL),
        (3 * 2**29 - 2, judge.CLOSE),
        (1.5004 * 2**30 + 0.25, judge.CLOSE),
        ("1.4999 GiB", judge.CLOSE),
        (0.5, judge.NOT_BYTES),
        (None, judge.NOT_BYTES),
        (True, judge.NOT_BYTES),
    ],
)
def test_slips_with_bytes(new, answer, sentence):
    assert new(1536 * units.MiB)(answer) == f"✗ {sentence}\n"


def test_decimal_answer_given_in_powers_of_two(new):
    assert new(80 * units.GB)("80 GiB") == f"✗ {judge.BINARY}\n"


def test_unreadable_text_names_itself(new):
    printed = new(1024)("much")
    assert printed.startswith("✗") and "much" in printed and judge.NOT_BYTES in printed


def test_a_slip_of_this_question_has_its_own_hint(new):
    ask = new(100, wrong={lambda: 800: "Tied weights are counted once."})
    assert ask(800) == "✗ Tied weights are counted once.\n"


def test_other_units(new):
    ask = new(Fraction(33, 32), unit="bytes per value")
    assert ask(1.03125) == "✓ 1.03125 bytes per value\n"
    assert ask("1.03125 bytes per value").startswith("✓")
    assert ask("33/32").startswith("✓")
    assert ask("a bit more than 1") == f"✗ {judge.NOT_A_NUMBER}\n"
    assert ask(8 * 1.03125) == f"✗ {HINT}\n"


def test_words_ignore_case(new):
    ask = new("AdamW", unit="")
    assert ask(" adamw ") == "✓ AdamW\n"
    assert ask("SGD") == f"✗ {HINT}\n"


def test_torch_like_numbers_are_read_as_numbers(new):
    class Scalar:
        def __float__(self):
            return 1024.0

    assert new(1024)(Scalar()).startswith("✓")


def test_unknown_id_lists_the_closest(new):
    new(1)
    with pytest.raises(ValueError, match="no exercise 'ex-tri-1'; closest: ex-try-1"):
        exercises.check("ex-tri-1", ...)


def test_an_id_is_taken_once(new):
    new(1)
    with pytest.raises(ValueError, match="'ex-try-1' exists already"):
        new(2)


@given(st.integers(0, 2**60))
def test_exact_text_is_always_right(count):
    one = Exercise("x", lambda: count, HINT, "B", {})
    assert one.judge(units.exact(count)) == one.judge(count)
    assert one.judge(count).startswith(f"✓ {count:,} B")


@pytest.mark.sample(61)
@pytest.mark.parametrize("name", exercises.ids())
def test_every_exercise_of_the_book_knows_its_answer(name):
    one = exercises._exercise(name)
    assert one.judge(one.answer()).startswith("✓")
    assert one.judge(...) == "○ …"
    for slip, sentence in one.wrong.items():
        assert one.judge(slip()) == f"✗ {sentence}", sentence
    assert all(sentence.endswith((".", "?", "!")) for sentence in exercises.hints()[name])
