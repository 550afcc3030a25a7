"""`memlab trace`: run a training step without memory and without a GPU, and say what it holds."""

from __future__ import annotations

import argparse
import os
import sys
import warnings

from ..recipe import Recipe
from ..units import text, whole
from .estimate import ALWAYS, PRECISIONS, TERMS, model_of

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

OPTIMIZER_IMPLS = {
    "forloop": {"foreach": False},
    "foreach": {"foreach": True},
    "fused": {"fused": True},
}
KERNELS = {"eager": "auto", "sdpa": "auto", "flash": "flash"}


def add_parser(commands: Any) -> None:
    """Hook the command into `memlab`."""
    words = "Trace a training step on tensors without values: every byte, every moment, no GPU."
    parser = commands.add_parser("trace", help=words, description=words)
    parser.set_defaults(run=run)
    words = (
        "a preset (`memlab models`), a config.json or its folder; or a function that returns a "
        "module and its inputs (--batch and --tokens are its own then), or a module and a function "
        "of it that returns the loss"
    )
    parser.add_argument("model", metavar="CONFIG|FILE.py:FUNCTION", help=words)
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    parser.add_argument("--batch", type=int, default=1, help="sequences at a time (default 1)")
    parser.add_argument("--tokens", type=int, default=1024, help="in each (default 1024)")
    parser.add_argument("--precision", choices=list(PRECISIONS), default="fp32")
    parser.add_argument(
        "--optimizer-impl", choices=list(OPTIMIZER_IMPLS), help="of AdamW; default: the backend's"
    )
    parser.add_argument("--attention", choices=list(KERNELS), default="sdpa")
    parser.add_argument("--checkpoint", choices=["none", "block"], default="none")
    parser.add_argument("--backend", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--dropout", type=float, default=0.0, metavar="P")
    parser.add_argument(
        "--implementation",
        choices=["memlab", "transformers"],
        default="memlab",
        help="whose code runs the model (default memlab)",
    )
    parser.add_argument("--fits", metavar="DEVICE", help="say whether the step fits: 'RTX 4090'")
    parser.add_argument("--plot", metavar="FILE.svg", help="draw the timeline of the step")
    parser.add_argument("--snapshot", metavar="FILE", help="write it for PyTorch's memory viewer")


def run(options: argparse.Namespace) -> str:
    """What the command prints."""
    for name in ("batch", "tokens"):
        if whole(name, getattr(options, name)) == 0:
            raise ValueError(f"{name}=0; at least 1 is needed")
    try:
        from ..measure import CannotTrace
    except ModuleNotFoundError as error:
        raise ValueError(f"tracing needs {error.name}: pip install 'memlab[torch]'") from error
    if sys.stderr.isatty():
        print(f"memlab: tracing {options.model} ...", file=sys.stderr)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's, about speed
            step = _trace(options)
    except CannotTrace as error:
        raise ValueError(": ".join(str(error).splitlines())) from error
    if options.plot:
        step.plot().save(options.plot)
    if options.snapshot:
        step.save_snapshot(options.snapshot)
    fits = None if options.fits is None else step.fits(options.fits)
    if options.json:
        return _json(options, step, fits)
    lines = [str(step), "", f"reserved by CUDA's allocator: {text(step.reserved())}"]
    if fits is not None:
        lines.append(f"{options.fits}: {'it fits' if fits else 'out of memory'}")
    return "\n".join(lines)


def _trace(options: argparse.Namespace) -> Any:
    import torch

    from ..measure import trace

    settings: dict[str, Any] = {
        "backend": options.backend,
        "attention": KERNELS[options.attention],
        "autocast": "bf16" if options.precision == "autocast-bf16" else None,
    }
    if options.optimizer_impl:
        how: dict[str, Any] = OPTIMIZER_IMPLS[options.optimizer_impl]
        settings["optimizer"] = lambda parameters: torch.optim.AdamW(parameters, **how)
    path, _, function = options.model.rpartition(":")
    if path.endswith(".py"):
        with torch.device("meta"):
            module, given = _returned(path, function)
        options.parameters = sum(p.numel() for p in module.parameters())
        return trace(module, given, title=options.model, **settings)

    from ..lab.subject import subject

    model = model_of(options.model)
    options.parameters = model.parameter_count
    if options.tokens > model.positions:
        raise ValueError(
            f"tokens={options.tokens} is more than the {model.positions} positions of {model.name}"
        )
    ids = torch.empty(options.batch, options.tokens, dtype=torch.long, device="meta")
    theirs = options.implementation == "transformers"
    return trace(
        lambda: subject(
            model,
            source=options.model,
            implementation=options.implementation,
            attention="eager" if options.attention == "eager" else "sdpa",
            again=options.checkpoint == "block",
            dropout=options.dropout,
            dtype=torch.bfloat16 if options.precision == "bf16" else torch.float32,
        ),
        {"input_ids": ids, "labels": ids} if theirs else (ids, ids),
        title=f"{model.name} · {options.precision} · {options.batch} x {options.tokens} tokens, "
        f"{options.implementation} on {options.backend}",
        **settings,
    )


def _returned(path: str, function: str) -> tuple[Any, Any]:
    """What FILE.py:function returns: a module, and its inputs or a function of it."""
    import importlib.util

    from torch.nn import Module

    if not os.path.isfile(path):
        raise ValueError(f"no file {path!r}")
    spec = importlib.util.spec_from_file_location("memlab_traced", path)
    assert spec is not None and spec.loader is not None
    code = importlib.util.module_from_spec(spec)
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))  # as python FILE.py would
    try:
        spec.loader.exec_module(code)
        made = getattr(code, function, None)
        if not callable(made):
            raise ValueError(f"{path!r} has no function {function!r}")
        result = made()
    finally:
        sys.path.pop(0)
    pair = isinstance(result, tuple) and len(result) == 2
    if not pair or not isinstance(result[0], Module):
        raise ValueError(
            f"{function}() returned a {type(result).__name__}; a torch.nn.Module and its inputs, "
            "or a module and a function of it, are needed"
        )
    return result


def _json(options: argparse.Namespace, step: Any, fits: bool | None) -> str:
    """The document of `memlab estimate --json`, with figures that were traced."""
    import json

    recipe = Recipe.named(PRECISIONS[options.precision])
    found = step.to_dict()
    rows = {name: found["rows"].get(name, 0) for name in TERMS}
    rows["other"] = sum(size for name, size in found["rows"].items() if name not in TERMS)
    document = {
        "model": options.model,
        "parameters": options.parameters,
        "unit": "bytes",
        "rows": rows,
        "held": found["held"],
        "peak": found["peak"],
        "allocator": {"allocated": step.allocated(), "reserved": step.reserved()},
        "fits": fits,
        "recipe": {
            "name": recipe.name,
            "weights": recipe.weights,
            "gradients": recipe.gradients,
            "master": recipe.master,
            "optimizer": recipe.optimizer,
            "autocast": recipe.autocast,
        },
        "leaves_out": [ALWAYS[0], "the CUDA context"],
    }
    return json.dumps(document, ensure_ascii=False, indent=1)
