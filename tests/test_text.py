"""The text in the package: whole, clean, and cut into the same batches everywhere."""

import hashlib

import pytest
import torch

from memlab.lab import text


def test_the_text_is_the_one_that_numbers_in_the_book_come_from():
    raw = text.text().encode("ascii")
    assert len(raw) == 57613
    digest = "355a6ce6e495dbd1baffb48017b76fc76c02a23845fe5b1931e1e49a064eb175"
    assert hashlib.sha256(raw).hexdigest() == digest


def test_the_text_is_clean():
    words = text.text()
    assert set(words) <= {"\n", *map(chr, range(32, 127))}
    assert not any(line != line.rstrip() for line in words.splitlines())
    assert "gutenberg" not in words.lower() and "http" not in words.lower()
    assert words.startswith("ALICE'S ADVENTURES IN WONDERLAND\n\nLewis Carroll\n")
    assert words.count("\nCHAPTER ") == 5


def test_a_token_is_a_byte():
    ids = text.tokens()
    assert ids.shape == (57613,) and ids.dtype == torch.int64
    assert bytes(ids.tolist()).decode("ascii") == text.text()
    assert ids.max() < text.VOCAB


def test_batches_are_passages_of_the_text():
    found = list(text.batches(3, 20, steps=4, seed=7))
    assert [b.shape for b in found] == [(3, 20)] * 4
    for passage in torch.cat(found).tolist():
        assert bytes(passage).decode("ascii") in text.text()


def test_batches_are_the_same_everywhere():
    first = next(text.batches(2, 16, steps=1, seed=0))
    assert [bytes(row).decode() for row in first.tolist()] == [
        "ir has become ve",
        " made believe to",
    ]
    again = next(text.batches(2, 16, steps=1, seed=0))
    other = next(text.batches(2, 16, steps=1, seed=1))
    assert torch.equal(first, again) and not torch.equal(first, other)


def test_the_whole_text_is_the_longest_passage():
    assert torch.equal(next(text.batches(1, 57613, steps=1))[0], text.tokens())
    with pytest.raises(ValueError, match="tokens=57614 is more than the 57613 of the text"):
        text.batches(1, 57614, steps=1)


@pytest.mark.parametrize("name", ["batch", "tokens", "steps"])
def test_a_count_below_one_is_refused(name):
    with pytest.raises(ValueError, match=f"{name}=0; at least 1 is needed"):
        text.batches(**{"batch": 1, "tokens": 1, "steps": 1} | {name: 0})
