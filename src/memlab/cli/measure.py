"""`memlab measure`: train a small model and set the run beside the formula."""

from __future__ import annotations

import argparse
from math import prod

from ..base.extras import missing
from ..base.machine import free_bytes
from ..estimate import estimate
from ..model import Model
from ..recipe import Recipe
from ..run.recipe_choice import recipe_for
from ..units import MiB, text
from .arguments import add_model, model_of
from .brought import count
from .document import document

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    pass

BATCH, TOKENS = 8, 64  # as memlab.lab.train has them
# Python, torch and what both load in a first step: 349 MiB resident with torch 2.13 on Linux.
LIBRARIES = 512 * MiB


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A model, its recipe and how long it is trained."""
    add_model(parser)
    words = "see `memlab recipes` (default: the config's dtype, else fp32)"
    parser.add_argument("--recipe", help=words)
    parser.add_argument("--steps", type=count, default=30, help="optimizer steps (default 30)")


def run(options: argparse.Namespace) -> tuple[str, int]:
    """What the command prints, and 1 where the run held other bytes than derived.

    Raises      ValueError where torch is not installed, or where memory is too small
    """
    model = model_of(options.model)
    recipe = recipe_for(model, options.recipe)
    if options.steps < 1:
        raise ValueError(f"--steps {options.steps}; at least 1 is needed")
    check_room(model, recipe, free_bytes())
    try:
        from ..lab.train import train
    except ModuleNotFoundError as error:
        raise ValueError(missing("measuring", error, "torch")) from error

    done = train(model, recipe, steps=options.steps, batch=BATCH, tokens=TOKENS)
    ledger = estimate(model, recipe).beside(done.ledger)
    status = 1 if ledger.difference() else 0
    if options.json:
        rows = [
            {"term": row.term, "derived": row.derived, "measured": row.measured}
            for row in ledger.rows
        ]
        said = {"title": ledger.title, "unit": "bytes", "rows": rows, "losses": done.losses}
        return document("measure", **said, difference=ledger.difference()), status
    losses = f"loss {done.losses[0]:.2f} → {done.losses[-1]:.2f} in {options.steps} steps"
    return f"{ledger}\n{losses}", status


def check_room(model: Model, recipe: Recipe, free: int | None) -> None:
    """Refuse a run that this machine cannot hold, before it starts.

    Raises      ValueError that says what is needed and what is there
    """
    needed = most_needed(model, recipe)
    if free is not None and needed > free:
        raise ValueError(
            f"training {model.name} here takes up to {text(needed)}, and {text(free)} are free; "
            "memlab estimate and memlab trace need no memory"
        )


def most_needed(model: Model, recipe: Recipe) -> int:
    """More bytes than a training step of memlab.lab.train takes on a CPU, though not many more.

    Formula     libraries + max(8·P, resident + max(16·largest tensor, 4·B·T·(L·(10·D + 3·F
                + 3·N·T) + 4·V) + 2·P under autocast))
    Margin      8·P: the weights are drawn in fp32 and then cast. After the optimizer's scratch,
                four fp32 copies of one tensor, the activations are gone; a layer keeps at most 10
                tensors of width D, 3 of width F, 3 of scores, and of logits there are four copies
    Unit        bytes
    """
    rows, count = BATCH * TOKENS, model.parameter_count
    layer = 10 * model.d_model + 3 * model.d_ff + 3 * model.heads * TOKENS
    kept = 4 * rows * (model.layers * layer + 4 * model.vocab)
    kept += 2 * count if recipe.autocast else 0
    scratch = 16 * max(prod(one.shape) for one in model.tensors())
    return LIBRARIES + max(8 * count, estimate(model, recipe).total() + max(kept, scratch))
