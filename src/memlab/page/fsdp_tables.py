"""Steps of one rank under FSDP2: which are counted for the page, and how their moments are named.

A ranks · v, d, f, n, o, E rows of a rank's part of a weight that has V, D, F, N · H, K · H or H of
them; the other letters are those of memlab.page.peak
"""

from __future__ import annotations

from ..base.message import Message
from ..families import record_of
from ..recipe.resident import stepped
from ..run.optimizer_loops import loop_of
from ..terms.optimizer_step import step_room
from ..terms.sharding import row_shard
from . import words as say
from .layer_forms import attention_of, table_of
from .loop_tables import PLAIN

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from ..model import Model
    from ..recipe import Recipe
    from ..run import Run

# Optimizers that read and write one value at a time: memlab.step.parallel.supported has the same.
BY_VALUE = ("adamw", "amsgrad", "sgd", "momentum", "lion")
FSDP = "fsdp"  # before the name of a file of moments


def file_of(name: str) -> str:
    """The name of a file of moments under FSDP2, of the same step on one device."""
    return f"{FSDP}.{name}"


def rows_of(model: Model) -> dict[str, int]:
    """The rows of whole weights, by the letter of a rank's part of them."""
    return {
        "v": model.vocab,
        "d": model.d_model,
        "f": model.d_ff,
        "n": model.heads * model.head_dim,
        "o": model.kv_heads * model.head_dim,
        "E": model.head_dim,
    }


def letters_of(model: Model, run: Run) -> dict[str, int]:
    """The value of each letter that only FSDP2 has."""
    ranks, rows = run.devices.data, rows_of(model)
    if not run.devices.fsdp:
        return {}
    made = {letter: -(-rows[letter] // ranks) for letter in rows}
    made["A"] = ranks
    return made


def synced(loop: str, passes: int) -> dict[str, str]:
    """How the gradients of several micro-batches meet where Trainer decides: after the last one."""
    return {"gradient_sync": "last"} if loop == "trainer" and passes > 1 else {}


def room(model: Model, recipe: Recipe, run: Run) -> int:
    """Bytes that the optimizer's step takes for a moment, on a rank's parts of all weights."""
    ranks = run.devices.data
    parts = [(row_shard(shape, ranks=ranks), hidden) for shape, hidden in stepped(model)]
    loop = loop_of(recipe, run)
    return step_room(recipe.optimizer, parts, format=recipe.updated, loop=loop)


def refused(model: Model, recipe: Recipe, run: Run) -> str:
    """Why there are no moments of this step under FSDP2; or nothing."""
    if not run.devices.fsdp:
        return ""
    if run.devices.library is not None:
        return say.NO_FSDP_POLICY
    if "fsdp" not in record_of(table_of(model, run)).counted("beside"):
        return Message(say.NO_FSDP_STEP, family=model.family)
    if run.lora is not None:
        return say.NO_FSDP_ADAPTERS
    if recipe.master:
        return say.NO_FSDP_COPY
    if recipe.optimizer not in BY_VALUE:
        return Message(say.NO_FSDP_OPTIMIZER, optimizer=recipe.optimizer)
    if run.loop != PLAIN or run.loss != "plain":
        return say.NO_FSDP_LOSS
    if attention_of(model, run) == "eager" and not record_of(model.family).eager_alone:
        return say.NO_FSDP_EAGER
    return ""
