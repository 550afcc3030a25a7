"""`memlab fit`: what fits a device, and the cheapest change that makes a step fit."""

from __future__ import annotations

import argparse

from ..explain.resorts import ADAPTERS as LAST_RESORT
from ..explain.resorts import FEWEST
from ..fit import CannotFit, Fit, advice, largest_batch, longest_sequence
from ..run import Run
from ..units import parse, text
from ..verdict import BAND, DOES_NOT_FIT, FITS, RUNS, TIGHT, percent, room_for
from . import given
from .document import document
from .estimate_json import wide_adapters

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    from ..fit import Advice
    from ..recipe import Recipe

STATUS = {FITS: 0, DOES_NOT_FIT: 1, TIGHT: 3}  # 2 is a question that cannot be
STATUSES = (
    "The exit status is 0 where the step fits, 1 where it does not, 3 where it is tight: where the "
    "allocator and NCCL decide."
)
SPARE = (
    "bytes to leave free, and nothing else: a step fits as soon as its tensors do (default: a CUDA "
    "context and cuBLAS's workspaces, NCCL's buffers for several ranks, and "
    f"{percent(BAND)}%% of the peak for the allocator, as {RUNS} posted runs show)"
)


def add_parser(commands: Any) -> None:
    """Hook the command into `memlab`."""
    words = "Find the largest batch (--tokens), the longest sequence (--batch), or what to change."
    parser = commands.add_parser("fit", help=words, description=f"{words} {STATUSES}")
    parser.set_defaults(run=run)
    given.add_model(parser, "--on DEVICE ")
    words = "a device (`memlab devices`) or a size"
    parser.add_argument("--on", required=True, metavar="DEVICE", help=words)
    parser.add_argument("--spare", metavar="SIZE", help=SPARE)
    given.add_recipe(parser)
    given.add_run(parser)
    given.add_call(parser)
    words = "there are N such devices: advise FSDP2 over some of them too, or with --deepspeed "
    words += "its ZeRO over all (default 1)"
    parser.add_argument("--cards", type=int, metavar="N", help=words)
    given.add_devices(parser)


def run(options: argparse.Namespace) -> tuple[str, int]:
    """What the command prints, and its status: STATUS of the verdict on the step as it is.

    Raises      ValueError without --batch and without --tokens
    """
    model = given.model_of(options.model)
    room: dict[str, Any] = {"on": options.on}
    room["spare"] = None if options.spare is None else parse(options.spare)
    # With --cards it is what shall be advised, with --zero what is there already.
    library = "deepspeed" if options.deepspeed else None
    if options.cards is not None and options.zero is None:
        options.deepspeed = None
    if options.batch is None and options.tokens is None:
        raise ValueError("give --tokens (for the largest batch), --batch, or both")
    longest = options.tokens is None
    if longest:
        options.tokens = 2  # any number will do where the search says its own
    how = given.run_of(options, model)
    recipe = given.recipe_of(options, model, how)
    parts = given.left_out(options.model, model, recipe) + given.taken(options, recipe, how)
    if longest:
        _cards(options, "the longest sequence")
        return _answer(longest_sequence(model, recipe, how, **room), how, options.json, parts)
    if options.batch is None:
        _cards(options, "the largest batch")
        return _answer(largest_batch(model, recipe, how, **room), how, options.json, parts)
    cards = _cards(options)
    there = room_for(how, **room)
    least: int | None = None
    try:
        found = advice(model, recipe, how, **room, cards=cards, library=library)
    except CannotFit as error:
        word, changes, least, words = DOES_NOT_FIT, [], error.least, [str(error)]
    else:
        word, changes = found.now.word, found.changes
        words = _said(found, how, recipe)
    if options.json:
        names = ("change", "cost", "peak", "flag")
        made = [dict(zip(names, change, strict=True)) for change in changes]
        said = {"device": there.name, "limit": there.surely, "changes": made, "least": least}
        said |= {"verdict": word, "fits": word == FITS}
        said["then"] = None if least is not None else found.then.word
        return _document(how, parts, **said), STATUS[word]
    return "\n".join([*words, *parts]), STATUS[word]


def _said(found: Advice, how: Run, recipe: Recipe) -> list[str]:
    """The verdict on the step as it is, what to change, and the verdict on the step then."""
    head = found.now.told()
    if found.now.fits:
        return [head]
    if not found.changes:
        return [head, "no change that is known here makes it fit surely"]
    lines = [head, "the cheapest changes that make it fit:"]
    for change, cost, size, flag in found.changes:
        lines += [f"{text(size):>10}  after {change}: {cost}"]
        first, *others = flag.split("; of ")  # each library's on a line of its own
        lines += [f"{'':12}{part}" for part in (first, *(f"of {other}" for other in others))]
    if not found.then.fits or found.then.room.band:
        lines.append(f"then {found.then.told()}")
    if any("LoRA" in change for change, *_ in found.changes):
        lines += wide_adapters(*LAST_RESORT.turn(recipe, how))
    return lines


def _cards(options: argparse.Namespace, asked: str = "") -> int:
    """How many there are, where changes are advised; elsewhere the flag would say nothing."""
    if options.cards is None:
        return 1
    if asked:
        raise ValueError(f"--cards {options.cards} beside a search for {asked}; say --fsdp N")
    for flag in ("fsdp", "ranks"):
        if (value := getattr(options, flag)) is not None:
            raise ValueError(f"--cards {options.cards} beside --{flag} {value}; give one of them")
    return int(options.cards)


def _answer(fit: Fit, how: Run, as_json: bool, parts: list[str]) -> tuple[str, int]:
    word = FITS if fit.value else fit.verdict.word
    status = STATUS[word]
    if not as_json:
        return "\n".join([str(fit), *_further(fit, how), *parts]), status
    names = ("what", "value", "peak", "limit", "device", "ended_by")
    found = {name: getattr(fit, name) for name in names}
    return _document(how, parts, verdict=word, fits=word == FITS, **found), status


def _further(fit: Fit, how: Run) -> list[str]:
    """What to ask next where not even the smallest step fits."""
    if fit.value or how.phase != "train":
        return []
    smallest = "--batch 1" if fit.what == "batch" else f"--tokens {FEWEST}"
    return [f"with {smallest} beside the rest, fit says what would make that step fit"]


def _document(how: Run, parts: list[str], **said: Any) -> str:
    """One form for both questions; what one of them does not ask is null."""
    names = ("what", "value", "peak", "ended_by", "changes", "then", "least")
    told = dict.fromkeys(names) | said | {"leaves_out": parts}
    return document("fit", unit="bytes", **told, run=how.to_dict())
