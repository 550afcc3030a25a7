"""What a sentence about one GPU says where several share the work: its values name them.

A sentence has the card and a size as values. Over several GPUs the card becomes their number and
kind, and a size that one of them needs becomes that "per GPU", so that each sentence stands once.
"""

from __future__ import annotations

from ..base.message import Message

CARDS = "{count} × {card}"
PER_GPU = "{size} per GPU"
ONE_OF = "{what}, one of {count} GPUs"


def cards(card: str, count: int) -> str:
    """What is asked about: one GPU, or so many of them."""
    return card if count == 1 else Message(CARDS, count=f"{count:,}", card=card)


def per_gpu(size: str, count: int) -> str:
    """A size, or a batch, of which each GPU has as much."""
    return size if count == 1 else Message(PER_GPU, size=size)


def one_of(what: str, count: int) -> str:
    """What a breakdown is of: one GPU's part."""
    return what if count == 1 else Message(ONE_OF, what=what, count=f"{count:,}")
