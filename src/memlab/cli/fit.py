"""`memlab fit`: what fits a device, and the cheapest change that makes a step fit."""

from __future__ import annotations

import argparse

from ..base.frozen import replace
from ..base.not_described import NotDescribed
from ..devices import card
from ..explain.last_changes import ADAPTERS as LAST_RESORT
from ..explain.last_changes import FEWEST
from ..fit import CannotFit, Fit, advice, largest_batch, longest_sequence
from ..run import Run
from ..units import parse, text
from ..verdict import BAND, DOES_NOT_FIT, FITS, RUNS, TIGHT, percent, room_for
from . import arguments, rehearsed
from .brought import count
from .document import document
from .estimate_json import wide_adapters
from .wide_experts import wide_experts

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    from ..devices import Device
    from ..fit import Advice
    from ..recipe import Recipe

STATUS = {FITS: 0, DOES_NOT_FIT: 1, TIGHT: 3}  # 2 is a question that cannot be
ANY = 64  # tokens, of which a loss in chunks can be cut
STATUSES = (
    "The exit status is 0 where the step fits, 1 where it does not, 3 where it is tight: where the "
    "allocator and NCCL decide."
)
SPARE = (
    "bytes to leave free, and nothing else: a step fits as soon as its tensors do (default: a CUDA "
    "context and cuBLAS's workspaces, NCCL's buffers for several ranks, and "
    f"{percent(BAND)}%% of the peak for the allocator, as {RUNS} posted runs show)"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A model, its recipe, its run and a device."""
    parser.description = f"{parser.description} {STATUSES}"
    arguments.add_model(parser, "--on DEVICE ")
    words = "a device (`memlab devices`) or a size"
    parser.add_argument("--on", required=True, metavar="DEVICE", help=words)
    parser.add_argument("--spare", metavar="SIZE", help=SPARE)
    arguments.add_recipe(parser)
    arguments.add_run(parser)
    arguments.add_call(parser)
    words = "there are N such devices: advise FSDP2 over some of them too, or with --deepspeed "
    words += "its ZeRO over all (default 1)"
    parser.add_argument("--cards", type=count, metavar="N", help=words)
    arguments.add_devices(parser)
    rehearsed.add_arguments(parser)
    words = "which has its share of the card beside --loop grpo (vllm_mode='colocate')"
    engine: Any = parser.add_argument("--engine", choices=("vllm",), help=words)
    words = "of the card, which --engine takes (TRL's default 0.3)"
    share: Any = parser.add_argument(
        "--gpu-memory-utilization", type=float, metavar="SHARE", help=words
    )
    engine.needs = share.needs = "--loop"  # alone both ask about serving


def run(options: argparse.Namespace) -> tuple[str, int]:
    """What the command prints, and its status: STATUS of the verdict on the step as it is.

    Raises      ValueError without --batch and without --tokens
    """
    model = arguments.model_of(options.model)
    loop = rehearsed.trainer_of(options)
    room: dict[str, Any] = {"on": _beside_engine(options, loop)}
    room["spare"] = None if options.spare is None else parse(options.spare)
    # With --cards it is what shall be advised, with --zero what is there already.
    library = "deepspeed" if options.deepspeed else None
    if options.cards is not None and options.zero is None:
        options.deepspeed = None
    if options.batch is None and options.tokens is None:
        raise ValueError("give --tokens (for the largest batch), --batch, or both")
    longest = options.tokens is None
    if longest:
        options.tokens = ANY  # will do where the search says its own
    how = arguments.run_of(options, model)
    recipe = arguments.recipe_of(options, model, how)
    parts = arguments.left_out(options.model, model, recipe) + arguments.taken(options, recipe, how)
    try:
        rehearsed.refuse(loop)
        return _described(options, model, recipe, how, room, parts, library, longest)
    except NotDescribed as refusal:
        if longest or options.batch is None:
            words = f"{refusal}; with --batch and --tokens the step itself is rehearsed"
            raise ValueError(words) from refusal
        told: dict[str, Any] = {"loop": loop, "on": room["on"], "statuses": STATUS}
        return rehearsed.answer(options, model, recipe, how, refusal, **told)


def _described(
    options: argparse.Namespace,
    model: Any,
    recipe: Recipe,
    how: Run,
    room: dict[str, Any],
    parts: list[str],
    library: str | None,
    longest: bool,
) -> tuple[str, int]:
    """The answer where the step is described."""
    parts = parts + rehearsed.kept(options, model, recipe, how)
    notes = wide_experts(model, recipe, how)
    if longest:
        _cards(options, "the longest sequence")
        fit = longest_sequence(model, recipe, how, **room)
        return _answer(fit, how, options.json, parts, notes)
    if options.batch is None:
        _cards(options, "the largest batch")
        fit = largest_batch(model, recipe, how, **room)
        return _answer(fit, how, options.json, parts, notes)
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
    return "\n".join([*words, *parts, *notes]), STATUS[word]


def _beside_engine(options: argparse.Namespace, loop: str | None) -> str | Device:
    """The card, less what a vLLM in the same process takes of it before the trainer does.

    Formula     usable bytes - floor(share · usable bytes)
    Source      trl, trainer/grpo_config.py: vllm_gpu_memory_utilization=0.3; vllm,
                v1/worker/gpu_worker.py: requested_memory, its weights, pool and buffers in it
    Raises      ValueError for a loop that generates nothing, and for a share that is none
    """
    share = options.gpu_memory_utilization
    if options.engine is None:
        if share is not None:
            raise ValueError(f"--gpu-memory-utilization {share:g} is of --engine vllm; say it too")
        return str(options.on)
    if (loop or options.loop) not in ("grpo", "rloo"):
        raise ValueError(f"--engine {options.engine} generates for --loop grpo and rloo")
    share = 0.3 if share is None else share
    if not 0 < share < 1:
        raise ValueError(f"--gpu-memory-utilization {share:g}; between 0 and 1 is needed")
    found = card(options.on)
    rest = found.limit - int(share * found.limit)
    return replace(found, name=f"{found.name} less {share:g} of it for vLLM", usable=rest)


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


def _answer(
    fit: Fit, how: Run, as_json: bool, parts: list[str], notes: list[str]
) -> tuple[str, int]:
    word = FITS if fit.value else fit.verdict.word
    status = STATUS[word]
    if not as_json:
        return "\n".join([str(fit), *_further(fit, how), *parts, *notes]), status
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
