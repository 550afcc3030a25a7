"""`memlab trace`: run a training step without memory and without a GPU, and say what it holds."""

from __future__ import annotations

import argparse
import sys
import warnings

from ..base.extras import missing
from ..base.gc_paused import no_garbage
from ..recipe import Recipe
from ..run import Run
from ..units import parse, text
from ..verdict import room_on
from . import arguments
from .document import document
from .estimate_json import CONTEXT, KERNELS, ORDER, TERMS, WORKSPACES, recipe_fields
from .fit import SPARE, STATUS, STATUSES

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    from ..verdict import Verdict

# What can be said beside FILE.py:FUNCTION: how it is traced, and what is printed of it.
BESIDE_FILE = ("command", "run", "model", "json", "fits", "spare", "plot", "snapshot", "precision")
TARGET = (
    "a preset (`memlab models`); a config.json of any causal language model of transformers, or "
    "its folder; or a function of a file that returns a module and its inputs, a module and a "
    "function of it that gives the loss, or all three: module, inputs, and the loss as a function "
    "of the module's output"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A model or a function that makes one, its recipe and its run."""
    parser.description = f"{parser.description} With --fits: {STATUSES[0].lower()}{STATUSES[1:]}"
    parser.usage = f"{parser.prog} CONFIG|FILE.py:FUNCTION [OPTIONS]"
    parser.add_argument("model", metavar="CONFIG|FILE.py:FUNCTION", help=TARGET)
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    parser.add_argument("--fits", metavar="DEVICE", help="say whether the step fits: 'RTX 4090'")
    parser.add_argument("--spare", metavar="SIZE", help=SPARE)
    parser.add_argument("--plot", metavar="FILE.svg", help="draw the timeline of the step")
    parser.add_argument("--snapshot", metavar="FILE", help="write it for PyTorch's memory viewer")
    arguments.add_recipe(parser)
    arguments.add_run(parser)
    arguments.add_call(parser)


def run(options: argparse.Namespace) -> tuple[str, int]:
    """What the command prints; with --fits the STATUS of the verdict, else 0."""
    # What torch and transformers make while they are imported stays, so looking through it for
    # cycles again and again finds nothing: it took a sixth of the time of a trace.
    with no_garbage(collect=False):
        return _run(options)


def _run(options: argparse.Namespace) -> tuple[str, int]:
    if options.spare is not None and options.fits is None:
        raise ValueError(f"--spare {options.spare} is left free on a device; name it with --fits")
    spare = None if options.spare is None else parse(options.spare)
    if options.fits is not None:  # an unknown card is refused before torch is imported
        room_on(options.fits, spare)
    try:
        from ..measure import CannotTrace
    except ModuleNotFoundError as error:
        raise ValueError(missing("tracing", error, "torch")) from error
    if sys.stderr.isatty():
        print(f"memlab: tracing {options.model} ...", file=sys.stderr)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's, about speed
            step, said = _trace(options)
    except CannotTrace as error:
        raise ValueError(": ".join(str(error).splitlines())) from error
    if options.plot:
        step.plot().save(options.plot)
    if options.snapshot:
        step.save_snapshot(options.snapshot)
    taken = said.pop("taken", [])
    found = None
    if options.fits is not None:
        found = step.verdict(options.fits, spare=spare)
    status = 0 if found is None else STATUS[found.word]
    if options.json:
        return _json(step, said, found, taken), status
    lines = [str(step)]
    if said["run"]["backend"] == "cuda":
        lines += ["", f"reserved by CUDA's allocator: {text(step.reserved())}"]
    lines += [*([] if found is None else [_told(step.reserved(), found)]), *taken]
    return "\n".join(lines), status


def _told(reserved: int, found: Verdict) -> str:
    """Whether the step fits the device."""
    said = str(found.told())
    if found.reserved is not None and found.reserved < reserved:
        said += "; before it fails, the allocator gives back what it keeps unused"
    return said


def _trace(options: argparse.Namespace) -> tuple[Any, dict[str, Any]]:
    """The trace, and what its document says of the model."""
    path, _, function = options.model.rpartition(":")
    if path.endswith(".py"):
        return _of_file(options, path, function)
    if options.model.endswith(".py"):
        raise ValueError(f"{options.model!r} is a file; name a function of it: FILE.py:FUNCTION")
    from ..lab.causal import read
    from ..lab.trace_run import trace_run
    from ..lab.without_torchao import without_torchao

    without_torchao()
    model = arguments.named_or(options.model, read)
    how = arguments.run_of(options, model)
    recipe = arguments.recipe_of(options, model, how)
    step = trace_run(model, recipe, how)
    said = {"model": model.name, "parameters": step.parameters}
    said |= {"recipe": recipe_fields(recipe), "run": how.to_dict()}
    return step, said | {"taken": arguments.taken(options, recipe, how)}


def _of_file(options: argparse.Namespace, path: str, function: str) -> tuple[Any, dict[str, Any]]:
    """A function of a file says all but backend, kernel, AdamW's loop and autocast itself."""
    from ..measure.trace import OURS
    from .traced_file import trace_file

    for name, value in vars(options).items():
        if value is not None and name not in (*BESIDE_FILE, *OURS):
            flag = f"--{'no-' if value is False else ''}{name.replace('_', '-')}"
            value = " ".join(value) if isinstance(value, list) else value
            typed = flag if isinstance(value, bool) else f"{flag} {value}"
            raise ValueError(f"{typed}: what {function}() returns says that itself")
    precision = options.precision or "fp32"
    if options.precision and not precision.startswith("autocast"):
        raise ValueError(
            f"--precision {precision}: {function}() makes the weights, so their dtype is said "
            "there; here only autocast-bf16 and autocast-fp16 can be asked for"
        )
    how = arguments.run_of(options)
    autocast = precision.removeprefix("autocast-") if options.precision else None
    step, parameters = trace_file(path, function, how, autocast=autocast, title=options.model)
    said: dict[str, Any] = {"model": options.model, "parameters": parameters, "recipe": None}
    if autocast:
        said["recipe"] = {**dict.fromkeys(recipe_fields(Recipe())), "autocast": autocast}
    return step, said | {"run": _honest(how)}


def _honest(how: Run) -> dict[str, Any]:
    """The fields that a traced file was run by; the others were its own business."""
    from ..measure.trace import OURS

    return {name: value for name, value in how.to_dict().items() if name in OURS}


def _allocator(step: Any) -> dict[str, int]:
    return {"allocated": step.allocated(), "reserved": step.reserved()}


def _json(step: Any, said: dict[str, Any], verdict: Verdict | None, taken: list[str]) -> str:
    """The document of `memlab estimate --json`, with figures that were traced."""
    found = step.to_dict()
    rows = {name: found["rows"].get(name, 0) for name in TERMS}
    rows["other"] = sum(size for name, size in found["rows"].items() if name not in TERMS[:-1])
    recipe, how = said.pop("recipe"), said.pop("run")
    on_card = how["backend"] == "cuda"
    return document(
        "trace",
        **said,
        unit="bytes",
        rows=rows,
        held=found["held"],
        peak=found["peak"],
        allocator=_allocator(step) if on_card else None,
        fits=None if verdict is None else verdict.fits,
        verdict=None if verdict is None else verdict.word,
        recipe=recipe,
        run=how,
        leaves_out=[
            *step.notes,
            *taken,
            KERNELS,
            *([WORKSPACES] * on_card),
            CONTEXT,
            *([ORDER] * on_card),
        ],
    )
