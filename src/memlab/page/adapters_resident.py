"""What stays of a run that trains adapters alone, and what its optimizer needs for a moment.

r rank of an adapter · [F, D] a linear layer's weight: an adapter is [r, D] and [F, r]
"""

from __future__ import annotations

from ..adapters import Lora
from ..adapters.lora import linear_layers
from ..base.message import Message
from ..families import has_config, record_of
from ..formats import bytes_per_value, storage
from ..model import Model
from ..recipe import Recipe
from ..recipe.resident import resident
from ..run import Run
from ..run.optimizer_loops import loop_of
from ..terms.optimizer import managed, numel, shared_state
from ..terms.optimizer_step import step_room
from ..terms.sharding import row_shard
from . import words as say
from .formula_text import stored

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from .table_peak import Rows


def carries(family: str) -> bool:
    """Whether its layers can carry peft's adapters; those of mixtures are not described here."""
    if not has_config(family):
        return False
    known = record_of(family)
    return known.proves("adapters") and not known.mixture


def check(model: Model, recipe: Recipe, run: Run) -> None:
    """Refuse adapters that are not described beside this model, this recipe, these devices.

    Raises      ValueError, in one line
    """
    lora = run.lora
    assert lora is not None, "it is asked where there are adapters"
    if not carries(model.family):
        raise ValueError(Message(say.NO_ADAPTERS, family=model.family))
    divided = run.devices.fsdp and not lora.base
    if run.devices.ranks > 1 and not run.devices.replicated and not divided:
        raise ValueError(say.ADAPTERS_ALONE)
    if recipe.master:
        raise ValueError(say.NO_COPY)
    if lora.base and model.conv1d:
        raise ValueError(Message(say.NO_BASE, family=model.family))
    lora.check(model)


def rows(model: Model, recipe: Recipe, run: Run) -> Rows:
    """The rows that stay from step to step: the base, the adapters, their gradients and states.

    Unit        bytes; under FSDP2 those of one rank's rows of each matrix
    """
    lora, devices = run.lora, run.devices
    assert lora is not None  # who asks has adapters
    own = run.adapters_in(recipe.weights)
    wide = widened(recipe, own)
    base = lora.base_bytes(model, recipe.weights)
    if lora.base:
        base += lora.codes_beside(model, recipe.weights)
    if devices.fsdp:
        base = resident(model, recipe, devices)["weights"]
    count, states = 0, shared_state(recipe.optimizer)
    for shape, copies in tensors(model, lora):
        part = row_shard(shape, ranks=devices.data) if devices.fsdp else shape
        count += copies * numel(part)
        states += copies * wide.state_bytes(part, _hidden(recipe))
    return {
        "weights": (base + storage(count, own), _spelled(model, recipe, lora, own)),
        "gradients": (storage(count, own), stored("gradients", count, wide)),
        "optimizer": (states, stored("optimizer", count, wide)),
    }


def room(model: Model, recipe: Recipe, run: Run) -> int:
    """Bytes that the optimizer's step takes for a moment beside gradients and states."""
    lora = run.lora
    if lora is None:
        return 0
    every = [
        (shape, _hidden(recipe)) for _ in range(model.layers) for shape, _ in tensors(model, lora)
    ]
    own = run.adapters_in(recipe.weights)
    return step_room(recipe.optimizer, every, format=own, loop=loop_of(recipe, run))


def paged(model: Model, recipe: Recipe, lora: Lora) -> int:
    """Bytes of the adapters' states that are in managed memory."""
    return sum(
        [managed(recipe.optimizer, shape=shape) * copies for shape, copies in tensors(model, lora)]
    )


def tensors(model: Model, lora: Lora) -> list[tuple[tuple[int, ...], int]]:
    """Shapes of the adapters of a layer, in the order of registration, and in how many layers."""
    known = linear_layers(model)
    made: list[tuple[tuple[int, ...], int]] = []
    out = -1 if model.conv1d else 0  # where a matrix says its outputs
    for name in lora.targets:
        shape, rank = known[name].shape, lora.rank_of(name)
        made.append(((rank, shape[-1 - out]), known[name].copies))
        made.append(((shape[out], rank), known[name].copies))
    return made


def widened(recipe: Recipe, own: str) -> Recipe:
    """The recipe of the adapters: they, their gradients and their states in their own format."""
    return recipe.replace(name=recipe.name, weights=own, gradients=own)


def _hidden(recipe: Recipe) -> bool:
    """Muon takes no adapters: AdamW beside it has them."""
    return not recipe.optimizer.startswith("muon")


def _spelled(model: Model, recipe: Recipe, lora: Lora, own: str) -> str:
    """The bytes of the weights, format by format."""
    wide = recipe.weights
    narrow = 0
    said = []
    if lora.base:
        each = linear_layers(model)
        narrow = sum([each[name].count for name in each])
        said.append(f"{narrow:,} · {bytes_per_value(lora.base):g} B ({lora.base})")
        said.append(f"{lora.level_bytes(model):,} B")
        if wide == "fp32" and (biases := lora.bias_count(model)):
            narrow += biases
            said.append(f"{biases:,} · {bytes_per_value('bf16'):g} B (bf16)")
    said.append(f"{model.parameter_count - narrow:,} · {bytes_per_value(wide):g} B ({wide})")
    said.append(f"{lora.parameter_count(model):,} · {bytes_per_value(own):g} B ({own})")
    return " + ".join(said)
