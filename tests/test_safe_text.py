"""Text from outside moves no cursor, and text of ours survives a narrow encoding."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.base.safe_text import narrowed, plain, printable


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("gpt2 · fp32 → 1 × 64", "gpt2 · fp32 → 1 × 64"),
        ("a\x1b[2Jb", "a\\u001b[2Jb"),
        ("\x07\x7f\x9b", "\\u0007\\u007f\\u009b"),
        ("two\nlines\r", "two\\u000alines\\u000d"),
        ("\u202eabc\u2028", "\\u202eabc\\u2028"),
        ("\udcff", "\\udcff"),
        ("\U000e0041", "\\U000e0041"),
        ("8\u202f192\u3000記憶體", "8\u202f192\u3000記憶體"),
    ],
)
def test_what_a_terminal_would_obey_is_spelled_out(words, shown):
    assert printable(words) == shown


def test_lines_may_stay_lines():
    assert printable("a\nb\x1b", keep="\n") == "a\nb\\u001b"


@given(st.text())
def test_nothing_unprintable_is_left_and_json_reads_it_back(words):
    shown = printable(words)
    assert all(c.isprintable() or c.isspace() and ord(c) > 0x9F for c in shown)
    assert printable(shown) == shown
    told = printable(json.dumps(words, ensure_ascii=True))
    assert json.loads(told) == words


@given(st.text())
def test_plain_is_ascii_and_closes_no_text_of_json(words):
    assert plain(words).isascii()
    quoted = json.dumps(words, ensure_ascii=False).encode("utf-8", "replace").decode()
    json.loads(plain(quoted))


def test_signs_and_letters():
    assert plain("1 × 64 → ✓ é 中 −1 µs") == "1 x 64 -> ok e ? -1 us"
    with pytest.raises(UnicodeDecodeError):
        narrowed(UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no"))
