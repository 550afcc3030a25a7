"""The arithmetic of an estimate: what a recipe keeps of each parameter tensor, and the sums.

It runs under MicroPython too, where the page's calculator needs it; memlab.estimate prints it.
"""

from __future__ import annotations

from .model import Model, Tensor
from .recipe import Recipe
from .sharding import Sharding
from .terms.gradients import accumulator, gradients
from .terms.optimizer import learning_rates, numel
from .terms.weights import weights


def resident(model: Model, recipe: Recipe, stage: int = 0) -> dict[str, int]:
    """Bytes by term that stay allocated from one training step to the next.

    Formula     sum over parameter tensors of weights + master + gradients + accumulator + state
    Unit        bytes; of several ranks, those of the fullest of this pipeline stage
    Raises      ValueError where the sharding does not divide the model
    """
    cut = recipe.sharding or Sharding()
    figures: dict[str, int] = {}
    for tensor in cut.tensors(model, stage):
        for term, size in tensor_bytes(tensor, recipe).items():
            figures[term] = figures.get(term, 0) + size * tensor.copies
    figures["optimizer"] += learning_rates(recipe.optimizer)
    return figures


def tensor_bytes(tensor: Tensor, recipe: Recipe) -> dict[str, int]:
    """Bytes of each copy that a recipe keeps of one parameter tensor: of one rank's part of it.

    Unit        bytes, by term
    Shapes      the tensor as tensor parallelism leaves it; the recipe's ZeRO stage is applied here
    """
    hidden = tensor.linear and tensor.component in ("attention", "feed_forward")
    stored = recipe.weights if tensor.linear or recipe.other is None else recipe.other
    if tensor.component == "lm_head" and recipe.head is not None:
        stored = recipe.head
    cut = recipe.sharding or Sharding()

    def part(copy: str) -> tuple[int, ...]:
        return cut.shape(tensor, copy)

    shape = part("weights")
    sizes = {"weights": weights(numel(shape), stored, row=shape[-1])}
    if recipe.master:
        sizes["master"] = weights(numel(part("master")), recipe.master)
    if recipe.gradients:
        sizes["gradients"] = gradients(numel(part("gradients")), recipe.gradients)
    if recipe.accumulator:
        sizes["accumulator"] = accumulator(numel(part("accumulator")), recipe.accumulator)
    sizes["optimizer"] = recipe.state_bytes(part("optimizer"), hidden)
    return sizes
