"""What stays of a model that memlab does not describe: from the shapes of its tensors."""

from __future__ import annotations

from torch import nn

from ..base import titles
from ..base.message import Message
from ..ledger import Ledger
from ..model.tensors import Tensor
from ..recipe import Recipe
from ..recipe.resident import tensor_bytes
from ..run import Run, adapters, fields, rules
from ..terms.optimizer import shared_state
from .causal import Causal

# Fields of a recipe that ask which layer a tensor is of; its shape alone does not say.
BY_LAYER = ("head", "other", "tie")
REMEDY = (
    "the families of `memlab models` are described with it, and memlab trace FILE.py:FUNCTION runs "
    "a module of your own"
)
NOTHING = Run()


def at_rest(model: Causal, recipe: Recipe, run: Run = NOTHING) -> Ledger:
    """Weights, gradients and the optimizer's states, tensor by tensor.

    run         the run between whose steps they stay: of its fields those alone that leave them as
                they are
    Formula     sum over parameter tensors of weights + master + gradients + accumulator + state
    Unit        bytes; column `derived`
    Source      the shapes of the model's own code on the meta device; memlab.recipe.resident
    Leaves out  buffers; all that lives only during a step
    Raises      ValueError for a recipe that stores some layers otherwise than others, for a field
                of the run that would change what stays, and for more tokens than positions
    """
    rules.only(run, fields.BETWEEN, f"what stays of a {model.family}", REMEDY)
    for field, value in run.said().items():
        if run.tokens is None and field != "backend":
            said = adapters.shown(value)
            raise ValueError(f"{field}={said} changes a step: it needs tokens")
    check_positions(model, run)
    for field in BY_LAYER:
        if value := getattr(recipe, field):
            raise ValueError(f"recipe {recipe.name!r}, {field}={value!r}: not for a {model.family}")
    if recipe.optimizer.startswith(("muon", "galore")):
        raise ValueError(
            f"optimizer={recipe.optimizer!r} treats hidden matrices apart; which those of a "
            f"{model.family} are is not described"
        )
    figures: dict[str, int] = {}
    for tensor in tensors(model):
        for term, size in tensor_bytes(tensor, recipe).items():
            figures[term] = figures.get(term, 0) + size
    figures["optimizer"] += shared_state(recipe.optimizer)
    what = titles.dotted(model.name, recipe.name)
    title = Message(titles.FROM_STEP_TO_STEP, what=what)
    return Ledger.of("derived", figures, title=title)


def check_positions(model: Causal, run: Run) -> None:
    """Raises ValueError for more tokens than the config says that there are positions."""
    if model.positions is not None and (run.tokens or 0) > model.positions:
        raise ValueError(
            f"tokens={run.tokens:,} is more than the {model.positions:,} positions of {model.name}"
        )


def tensors(model: Causal) -> list[Tensor]:
    """Every parameter tensor, tied ones once."""
    module = model.on_meta()
    linear = {id(part.weight) for part in module.modules() if isinstance(part, nn.Linear)}
    return [
        Tensor(name, tuple(each.shape), "other", linear=id(each) in linear)
        for name, each in module.named_parameters()
    ]
