"""`memlab estimate`: what a model's config alone says about its memory, for people and programs."""

from __future__ import annotations

import argparse

from ..base.extras import missing
from ..base.not_described import NotDescribed
from ..base.table import as_text
from ..estimate import estimate
from ..ledger import Comparison, Ledger
from ..model import Model
from ..recipe import Recipe
from ..run import CacheAlone, Run
from ..run.recipe_choice import recipe_for
from ..units import text
from . import arguments, rehearsed
from .asked import command
from .document import document
from .estimate_json import as_json, fullest_routing, shapes_as_json, wide_adapters
from .simulated import held_at, one_text, simulated
from .wide_experts import wide_experts

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    from ..lab.causal import Causal


PEAK = "the peak of a {what}, which is not described for a {family}: {command}"
USUAL = 4096  # tokens in a command that is advised where none were said


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A model, its recipe and its run."""
    arguments.add_model(parser)
    parser.add_argument("--against", metavar="RECIPE", help="a second recipe, side by side")
    parser.add_argument("--plot", metavar="FILE.svg", help="draw the ledger as a bar")
    words = "a peak that somebody read: how far memlab is from it, or that it cannot be"
    parser.add_argument("--posted", metavar="SIZE", help=words)
    arguments.add_recipe(parser)
    arguments.add_run(parser)
    arguments.add_call(parser)
    arguments.add_devices(parser)
    rehearsed.add_arguments(parser)


def run(options: argparse.Namespace) -> str | tuple[str, int]:
    """What the command prints; of a rehearsal also its status.

    Raises      ValueError for --plot beside --against: a bar shows one recipe
    """
    try:
        model = arguments.model_of(options.model)
    except ValueError as error:
        from ..model.config import UnknownFamily  # a preset, which most ask about, reads none

        if not isinstance(error, UnknownFamily):
            raise
        return _of_shapes(options, error)
    loop = rehearsed.trainer_of(options)
    how = arguments.run_of(options, model)
    recipe = arguments.recipe_of(options, model, how)
    try:
        rehearsed.refuse(loop)
        ledger = estimate(model, recipe, how)
    except CacheAlone as error:
        return _of_shapes(options, error, model)
    except NotDescribed as refusal:
        return rehearsed.answer(options, model, recipe, how, refusal, loop=loop)
    beside = None
    parts = arguments.left_out(options.model, model, recipe)
    left_out = parts + arguments.taken(options, recipe, how)
    left_out += rehearsed.kept(options, model, recipe, how)
    if options.posted is not None:
        if options.against:
            raise ValueError("--posted is held against one recipe; leave out --against")
        from .posted import compared  # only who has a figure needs it

        beside = compared(options.posted, model, recipe, how, ledger)
    if options.against:
        if options.plot:
            raise ValueError("--plot draws one recipe; leave out --against")
        other = recipe_for(model, options.against)
        comparison = ledger.compare(estimate(model, other, how))
        if options.json:
            return _compared(comparison, how)
        return "\n".join([_side_by_side(comparison, recipe.name, other.name), *left_out])
    _plot(ledger, options.plot)
    if options.json:
        took = arguments.took(options, recipe, how)
        return as_json(model, recipe, how, ledger, took, beside, parts)
    lines = [str(ledger), *_moments(model, recipe, how), *_small_print(model, recipe, how)]
    lines += one_text(model, how)
    if beside is not None:
        from .posted import line

        left_out.append(line(beside, how))
    return "\n".join([*lines, *left_out])


def _of_shapes(
    options: argparse.Namespace, unknown: ValueError, described: Model | None = None
) -> str:
    """What stays of a model, or of a call, that is not described: from its shapes and its config.

    described   the model, where it is its call alone that is not

    Raises      ValueError for what needs a described model, and where torch is not there to ask
    """
    for flag in ("against", "posted"):
        if getattr(options, flag) is not None:
            raise ValueError(f"--{flag}: {unknown}")
    try:
        from ..lab.causal import Causal
    except ModuleNotFoundError as error:
        raise ValueError(missing(f"{unknown}; another model", error, "torch")) from error
    from ..lab.causal_at_rest import at_rest
    from ..lab.causal_cache import after_call

    model = Causal(options.model) if described is None else _as_causal(described, options)
    how = arguments.run_of(options, model)
    recipe = arguments.recipe_of(options, model, how)
    call = how.phase != "train"
    if described is not None:
        how = how.replace(window=None)  # which the config says now
    ledger = after_call(model, recipe, how) if call else at_rest(model, recipe, how)
    _plot(ledger, options.plot)
    asked = command("trace", options, tokens=min(USUAL, model.positions or USUAL))
    what = "call" if call else "step"
    line = PEAK.format(what=what, family=model.family, command=asked)
    from ..model.config import NotRecorded

    if isinstance(unknown, NotRecorded):  # of a type of which others are
        line = f"{str(unknown).partition(';')[0]}; {line}"
    if options.json:
        return shapes_as_json(
            model, recipe, how, ledger, line, arguments.took(options, recipe, how)
        )
    return "\n".join([str(ledger), *model.left_out_line(), line])


def _as_causal(model: Model, options: argparse.Namespace) -> Causal:
    """A described model as its own code is asked for it."""
    from ..lab.causal import Causal
    from ..lab.subject import settings_of

    settings = settings_of(model)
    if options.window is not None:
        settings["sliding_window"] = options.window or None
    made = Causal(settings)
    made.name = model.name
    return made


def _small_print(model: Model, recipe: Recipe, how: Run) -> list[str]:
    """What of a config was used, and what a figure about adapters takes for granted."""
    lines = []
    if model.config:
        from ..model.fields import used  # a preset has no keys

        told = used(model.family, model.config)
        lines += [
            f"config, {kind}: {', '.join(sorted(keys))}" for kind, keys in told.items() if keys
        ]
    return [*lines, *wide_adapters(recipe, how), *wide_experts(model, recipe, how)]


def _compared(comparison: Comparison, how: Run) -> str:
    rows = [{"term": term, "left": x, "right": y} for term, x, y in comparison.figures()]
    titles = {"left": comparison.left.title, "right": comparison.right.title}
    return document("estimate --against", unit="bytes", **titles, rows=rows, run=how.to_dict())


def _side_by_side(comparison: Comparison, left: str, right: str) -> str:
    """The whole titles first, so that the table is no wider than its figures."""
    table = comparison.table()
    head = [table[0][0], left, right, *table[0][3:]]
    titles = [comparison.left.title, comparison.right.title]
    return "\n".join([*titles, as_text([head, *table[1:]], foot=1)])


def _plot(ledger: Ledger, path: str | None) -> None:
    if path:
        from ..plot import ledger_bar

        ledger_bar(ledger).save(path)


def _moments(model: Model, recipe: Recipe, how: Run) -> list[str]:
    """The quiet moments of a step or a call, a line each."""
    found = simulated(model, recipe, how)
    if found is None:
        return []
    if how.phase == "train":
        moments = held_at(model, recipe, how, found)
        moments["peak of the first step"] = moments.pop("first_step")
    else:
        moments = {**found.held, "each new token adds": found.per_token}
    lines = [f"{name.replace('_', ' '):22} {text(size)}" for name, size in moments.items()]
    return lines + _host(found, how) + _stages(model, recipe, how) + _routed(model, recipe, how)


def _host(found: Any, how: Run) -> list[str]:
    """What a rank has on its host at most, a line and its terms; or nothing."""
    if getattr(found, "host", None) is None:
        return []
    terms = ", ".join(f"{term} {text(size)}" for term, size in found.host.contents.items())
    host = how.devices.policy.cpu_offload
    title = f"on the {host} host" if host else "on the host"
    size, ranks = found.host.bytes, how.devices.ranks
    whole = f"{text(size * ranks)} if one machine has all {ranks:,} ranks, " if ranks > 1 else ""
    return [f"{title:22} {whole}{text(size)} of one rank, in {found.host.moment}: {terms}"]


def _stages(model: Model, recipe: Recipe, how: Run) -> list[str]:
    """The peak of each rank of a pipeline, a line each."""
    if not how.devices.pipelined:
        return []
    from ..step.parallel.pipeline.step import stage_peaks

    found = enumerate(stage_peaks(model, recipe, how))
    return [
        f"{f'peak of stage {stage}':22} {text(peak.bytes)}, in {peak.moment}"
        for stage, peak in found
    ]


def _routed(model: Model, recipe: Recipe, how: Run) -> list[str]:
    """What is assumed of a router whose tokens travel, and the other bound; or nothing."""
    most = fullest_routing(model, recipe, how)
    if most is None:
        return []
    assumed = "routing is even: as many rows arrive as are sent; at most, all tokens on this rank,"
    return [f"{assumed} the peak is {text(most)} (--routing fullest)"]
