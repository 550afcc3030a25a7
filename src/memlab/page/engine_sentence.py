"""What a serving engine makes of the card that the page was asked about, in one sentence."""

from __future__ import annotations

from ..base.message import Message
from ..devices import Device
from ..engines.engine import Engine
from ..engines.pool import pool
from ..model import Model
from ..units import text
from . import words as say

A_SINGLE = "a single {card}"  # the engine has one of the several that are asked about


def serving(model: Model, card: Device, tokens: int, gpus: int = 1) -> str:
    """How many conversations of so many tokens vLLM keeps on one card, in bf16, started as it is.

    gpus        how many share the step that is asked about; the engine has one of them

    Formula     memlab.engines.pool.pool
    """
    try:
        found = pool(model, Engine(max_model_len=tokens), on=card)
    except ValueError:
        return say.NO_ENGINE
    size, each = text(max(0, found.available)), f"{tokens:,}"
    name = card.name if gpus == 1 else Message(A_SINGLE, card=card.name)
    if not found.starts:
        return Message(say.NOT_SERVED, card=name, size=size, each=each)
    count = found.blocks // found.request
    return Message(
        say.SERVED,
        card=name,
        size=size,
        tokens=f"{found.tokens:,}",
        count=f"{count:,}",
        each=each,
    )
