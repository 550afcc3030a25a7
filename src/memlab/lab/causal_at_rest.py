"""What stays of a model that memlab does not describe: from the shapes of its tensors."""

from __future__ import annotations

from torch import nn

from ..base import titles
from ..base.message import Message
from ..ledger import Ledger
from ..model.tensors import Tensor
from ..recipe import Recipe
from ..recipe.resident import tensor_bytes
from ..terms.optimizer import shared_state
from .causal import Causal

# Fields of a recipe that ask which layer a tensor is of; its shape alone does not say.
BY_LAYER = ("head", "other", "tie")


def at_rest(model: Causal, recipe: Recipe) -> Ledger:
    """Weights, gradients and the optimizer's states, tensor by tensor.

    Formula     sum over parameter tensors of weights + master + gradients + accumulator + state
    Unit        bytes; column `derived`
    Source      the shapes of the model's own code on the meta device; memlab.recipe.resident
    Leaves out  buffers; all that lives only during a step
    Raises      ValueError for a recipe that stores some layers otherwise than others
    """
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


def tensors(model: Causal) -> list[Tensor]:
    """Every parameter tensor, tied ones once."""
    module = model.on_meta()
    linear = {id(part.weight) for part in module.modules() if isinstance(part, nn.Linear)}
    return [
        Tensor(name, tuple(each.shape), "other", linear=id(each) in linear)
        for name, each in module.named_parameters()
    ]
