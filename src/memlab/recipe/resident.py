"""The arithmetic of an estimate: what a recipe keeps of each parameter tensor, and the sums.

It runs under MicroPython too, where the page's calculator needs it; memlab.estimate prints it.
"""

from __future__ import annotations

from ..base.message import Message
from ..model import Model
from ..model.tensors import Tensor
from ..sharding import Sharding
from ..terms.gradients import accumulator, gradients
from ..terms.optimizer import numel, shared_state
from ..terms.weights import weights
from .recipe import Recipe

ONE = Sharding()  # device


def resident(
    model: Model, recipe: Recipe, devices: Sharding = ONE, stage: int = 0
) -> dict[str, int]:
    """Bytes by term that stay allocated from one training step to the next.

    Formula     sum over parameter tensors of weights + master + gradients + accumulator + state
    Unit        bytes; of several ranks, those of the fullest of this pipeline stage
    Raises      ValueError where the sharding does not divide the model
    """
    if devices.zero and recipe.optimizer.startswith(("adafactor", "galore")):
        raise ValueError(
            Message(
                "zero={zero} is not supported for {optimizer}, whose states are made from whole "
                "rows and columns",
                zero=devices.zero,
                optimizer=recipe.optimizer,
            )
        )
    figures: dict[str, int] = {}
    for tensor in devices.tensors(model, stage):
        for term, size in tensor_bytes(tensor, recipe, devices).items():
            figures[term] = figures.get(term, 0) + size * tensor.copies
    figures["optimizer"] += shared_state(recipe.optimizer)
    return figures


def fullest(model: Model, recipe: Recipe, devices: Sharding = ONE) -> tuple[int, dict[str, int]]:
    """The pipeline stage whose ranks hold most, and what `resident` says of it.

    Only the first two stages and the last one are asked: no stage has more layers than the first,
    and of what every second layer has, the first or the second has as much as any of its size.

    Raises      as `resident`
    """
    last = devices.pipeline - 1
    stages = [stage for stage in (0, 1) if stage < last] + [last]
    best: tuple[int, dict[str, int]] = (-1, {})
    most = -1
    for stage in stages:
        figures = resident(model, recipe, devices, stage)
        total = sum([figures[name] for name in figures])
        if total > most:
            best, most = (stage, figures), total
    return best


def tensor_bytes(tensor: Tensor, recipe: Recipe, devices: Sharding = ONE) -> dict[str, int]:
    """Bytes of each copy that a recipe keeps of one parameter tensor: of one rank's part of it.

    Unit        bytes, by term
    Shapes      the tensor as tensor parallelism leaves it; the ZeRO stage is applied here
    """
    stored = recipe.weights if tensor.linear or recipe.other is None else recipe.other
    if tensor.component == "lm_head" and recipe.head is not None:
        stored = recipe.head

    def part(copy: str) -> tuple[int, ...]:
        return devices.shape(tensor, copy)

    shape = part("weights")
    sizes = {"weights": weights(numel(shape), format=stored, row=shape[-1])}
    if recipe.master:
        sizes["master"] = weights(numel(part("master")), format=recipe.master)
    if recipe.gradients:
        sizes["gradients"] = gradients(numel(part("gradients")), format=recipe.gradients)
    if recipe.accumulator:
        sizes["accumulator"] = accumulator(numel(part("accumulator")), format=recipe.accumulator)
    sizes["optimizer"] = recipe.state_bytes(part("optimizer"), tensor.hidden)
    return sizes


NORMS_FIRST = ("gpt2", "gpt_neox")  # inside a layer, where other families have them last


def stepped(model: Model) -> list[tuple[tuple[int, ...], bool]]:
    """Every tensor in the order in which an optimizer steps, and whether Muon takes it.

    Source      the order in which transformers registers them; where kinds of layers differ, the
                layers that have fewer tensors count as the last ones
    """
    ends: list[list[Tensor]] = [[], []]
    layer: list[Tensor] = []
    for tensor in model.tensors():
        if tensor.component in ("attention", "feed_forward") or tensor.copies > 1:
            layer.append(tensor)
        else:
            ends[1 if layer else 0].append(tensor)
    if model.family in NORMS_FIRST:
        layer.sort(key=lambda tensor: tensor.component != "norm")
    inside = [
        tensor
        for number in range(max([0] + [tensor.copies for tensor in layer]))
        for tensor in layer
        if tensor.copies > number
    ]
    return [(tensor.shape, tensor.hidden) for tensor in ends[0] + inside + ends[1]]
