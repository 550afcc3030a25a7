"""Bytes to text and back."""

from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memlab.units import BINARY, DECIMAL, GiB, KiB, MiB, TiB, exact, kB, parse, text, whole

counts = st.integers(-(2**70), 2**70)
# Numbers just beside a unit are where rounding goes wrong, and plain integers seldom hit them.
edges = st.builds(
    lambda unit, factor, delta: unit * factor + delta,
    st.sampled_from([*BINARY.values(), *DECIMAL.values()]),
    st.integers(-1100, 1100),
    st.integers(-3, 3),
)


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (1023, "1,023 B"),
        (KiB, "1 KiB"),
        (536870912, "512 MiB"),
        (-1536, "-1.5 KiB"),
        (80 * GiB, "80 GiB"),
        (3621632, "3.454 MiB"),
        # 1023.9990 KiB would round to 1024 KiB.
        (MiB - 1, "1 MiB"),
        (2**60, "1,048,576 TiB"),
    ],
)
def test_text(count, words):
    assert text(count) == words


def test_text_in_powers_of_ten():
    assert text(80 * 10**9, decimal=True) == "80 GB"
    assert text(999_950, decimal=True, digits=4) == "1 MB"
    assert text(999_949, decimal=True, digits=4) == "999.9 kB"


def test_exact_chooses_the_largest_unit_that_fits_in_three_decimals():
    assert exact(3 * GiB // 2) == "1.5 GiB"
    assert exact(GiB + MiB) == "1,025 MiB"
    assert exact(3621632) == "3,536.75 KiB"
    assert exact(3621633) == "3,621,633 B"
    assert exact(16_060_522_496, decimal=True) == "16,060,522.496 kB"


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ("1.5 GiB", 3 * GiB // 2),
        ("1.5GiB", 3 * GiB // 2),
        ("  80 GB ", 80 * 10**9),
        ("+2 KiB", 2048),
        ("-1.5 KiB", -1536),
        (".5 KiB", 512),
        ("0.001 kB", 1),
        ("62.4 GiB", 67_001_489_818),  # as people write what they saw: no whole number of bytes
        ("-23.1 GiB", -24_803_436_134),
        ("3,621,632 B", 3621632),
        ("0", 0),
    ],
)
def test_parse(words, count):
    assert parse(words) == count


def test_a_number_alone_is_bytes_only_where_bytes_are_asked_for():
    assert parse("3,621,632", bare=True) == parse("3,621,632 B")
    with pytest.raises(ValueError, match="does not start with a number"):
        parse("", bare=True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("1 GIB", "unknown unit 'GIB'.*known: B, KiB, MiB, GiB, TiB, kB, MB, GB, TB"),
        ("GiB", "does not start with a number"),
        ("", "does not start with a number"),
        ("one GiB", "does not start with a number"),
        ("1e3 B", "does not start with a number"),
        ("1.2.3 B", "does not start with a number"),
        ("--5 B", "does not start with a number"),
        # A decimal comma must not turn into a factor of ten.
        ("1,5 GiB", "does not start with a number"),
        (",500 B", "does not start with a number"),
        ("1.000,5 B", "does not start with a number"),
        ("0.3 B", "not a whole number of bytes"),
        ("0.0001 kB", "not a whole number of bytes"),
        # Nobody has a card of 24 bytes.
        ("24", "'24' has no unit; say it: 24 GB[?]"),
        ("1.5", "'1.5' has no unit; say it: 1.5 GB[?]"),
        ("24564", "'24564' has no unit; say it: 24564 MB[?]"),
        ("3,621,632", "'3,621,632' has no unit; say it: 3,621,632 B[?]"),
    ],
)
def test_parse_refuses_by_name(words, message):
    with pytest.raises(ValueError, match=message):
        parse(words)


@pytest.mark.parametrize("value", [1.0, "1", None, True])
def test_a_count_is_an_int(value):
    for function in (text, exact, lambda value: whole("tokens", value)):
        with pytest.raises(TypeError, match="a whole number is needed"):
            function(value)


def test_parse_wants_text():
    with pytest.raises(TypeError, match="words=5 is a int; text is needed"):
        parse(5)


def test_whole_names_what_is_wrong():
    assert whole("tokens", 0) == 0
    with pytest.raises(ValueError, match="tokens=-1 is negative"):
        whole("tokens", -1)


@given(count=counts | edges, decimal=st.booleans())
@example(count=0, decimal=False)
def test_parse_undoes_exact(count, decimal):
    assert parse(exact(count, decimal=decimal)) == count


@given(count=counts | edges, decimal=st.booleans(), digits=st.integers(1, 8))
@example(count=MiB - 1, decimal=False, digits=4)
def test_text_is_right_to_half_a_digit(count, decimal, digits):
    words = text(count, decimal=decimal, digits=digits)
    number, name = words.replace(",", "").split()
    table = DECIMAL if decimal else BINARY
    size = table[name]
    # Rounding happens in the unit that is not above the number, before 1024 KiB becomes 1 MiB.
    unit = max(each for each in table.values() if each <= max(1, abs(count)))
    places = max(0, digits - len(str(abs(count) // unit))) if unit > 1 else 0
    assert abs(Fraction(number) * size - count) <= Fraction(unit, 2 * 10**places)
    # Never "1024 KiB", and never a bare "0" for something.
    assert abs(Fraction(number)) < (1000 if decimal else 1024) or name in ("TB", "TiB")
    assert (Fraction(number) == 0) == (count == 0)


@given(count=counts | edges)
def test_text_is_symmetric(count):
    assert text(-abs(count)) == ("-" if count else "") + text(abs(count))


def test_units_are_the_standard_ones():
    assert (KiB, MiB, GiB, TiB) == (1024, 1024**2, 1024**3, 1024**4)
    assert kB == 1000 and DECIMAL["TB"] == 1000**4
