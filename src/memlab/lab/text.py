"""A small real text to train on: the first five chapters of Alice, one token per byte.

The text is alice.txt beside this file: Lewis Carroll (1832-1898), Alice's Adventures in Wonderland,
Macmillan, London 1865, chapters I to V. It is in the public domain: it was published in 1865 and
its author died in 1898. Quotation marks, dashes and accents are written in ASCII, italics as
capitals.
"""

import random
from collections.abc import Iterator
from importlib import resources

import torch

VOCAB = 256  # a token is a byte


def text() -> str:
    """The text as one string, ASCII, lines ended by \\n."""
    return resources.files(__package__).joinpath("alice.txt").read_text(encoding="ascii")


def tokens() -> torch.Tensor:
    """The text as tokens: its bytes as int64, which is what an embedding looks up.

    Shapes      [57613], on the CPU
    """
    return torch.tensor(list(text().encode("ascii")), device="cpu")


def batches(batch: int, tokens: int, *, steps: int, seed: int = 0) -> Iterator[torch.Tensor]:
    """Yield `steps` batches of passages that begin at random places, the same on every machine.

    Shapes      [B, T] each, int64, on the CPU
    Leaves out  a split into training and test text: the loss shows that training runs, no more
    Raises      ValueError for a count below one, or a passage longer than the text
    """
    for name, value in {"batch": batch, "tokens": tokens, "steps": steps}.items():
        if value < 1:
            raise ValueError(f"{name}={value}; at least 1 is needed")
    last = len(text()) - tokens
    if last < 0:
        raise ValueError(f"tokens={tokens} is more than the {len(text())} of the text")
    # Python promises the same numbers from `random()` in every release; torch does not.
    draw = random.Random(seed).random
    starts = [[int(draw() * (last + 1)) for _ in range(batch)] for _ in range(steps)]
    return _passages(starts, tokens)


def _passages(starts: list[list[int]], length: int) -> Iterator[torch.Tensor]:
    ids = tokens()
    for places in starts:
        yield torch.stack([ids[start : start + length] for start in places])
