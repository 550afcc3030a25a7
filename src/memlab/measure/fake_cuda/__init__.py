"""A card that is not there: tensors without values on it, in a torch that has no CUDA.

    show(changes, card, tracker)                torch finds the card, and tensors are made on it
    hide(changes)                               torch finds none
    begin(changes, "cuda", tracker)             either of them, for a step that is traced
    values = known(changes, shapes, assumed)    whole numbers keep their values, and what follows

Each changes names of torch for the length of one block of `undo.Changes`.
"""

import os
import sys
from importlib import import_module
from typing import Any

import torch

from ...devices import USUAL, Device
from ...devices import card as device
from ..grouped_products import grouped_products
from . import card as cards
from . import guard, likely, methods, moving
from .assumed import Assumed, policies
from .lines import Lines
from .undo import Changes
from .values import Values


def show(
    changes: Changes,
    card: Device,
    tracker: Any,
    *,
    kernel: str = "auto",
    count: int = 1,
    number: int = 0,
) -> None:
    """Let torch find `count` such cards, and take tensors without values on them.

    tracker     counts what is allocated, where a program asks for it
    kernel      of attention, by which all calls go: "auto", "flash", "efficient", "math"
    number      of the one that is cuda:0 here
    Raises      Refused where torch cannot be reached
    """
    import_module("torch._dynamo")  # which asks about CUDA meanwhile, before a card is shown
    guard.device_guard()
    guard.kernels(changes, kernel)
    cards.show(changes, card, tracker, count, number)
    methods.numbered_modules(changes, number)
    moving.optimizers(changes)


def hide(changes: Changes) -> None:
    """Let torch find no card, on a machine that has one too."""
    cards.hide(changes)
    moving.optimizers(changes)


def begin(changes: Changes, backend: str, tracker: Any, kernel: str = "auto") -> None:
    """A card as most have in mind where nobody names one, or none."""
    if backend == "cuda":
        show(changes, device(USUAL), tracker, kernel=kernel)
    else:
        hide(changes)


def noted(assume: str | None = None) -> Assumed:
    """Where assumptions are noted that a step makes in this process, and which ones."""
    return Assumed(Lines(os.getcwd()), policies(assume))


def known(changes: Changes, shapes: Any, assumed: Assumed, number: int = 0) -> Values:
    """Enter the modes in which values are known, inside the one of `shapes`; a tracker comes last.

    Whole numbers of the host are real tensors, and what follows from known values alone is known;
    for all else see `unknown` and `likely`. Backward stays in the thread that calls it.
    """
    values = Values(shapes, assumed, likely.ALL)
    methods.methods(changes, values, assumed)
    masks(changes)
    for mode in (grouped_products(), values, methods.Calls(assumed, number)):
        changes.enter_context(mode)
    changes.enter_context(torch.autograd.set_multithreading_enabled(False))
    return values


def masks(changes: Changes) -> None:
    """Let transformers make its masks from values: it takes tensors without any for a compiler."""
    helpers = sys.modules.get("transformers.utils.import_utils")
    tracing = getattr(helpers, "is_tracing", None)
    if tracing is not None:
        changes.everywhere(tracing, lambda *_, **__: False)
