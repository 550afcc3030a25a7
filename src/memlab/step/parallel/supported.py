"""What is described in a pipeline and on divided matrices, and what is refused, by name."""

from __future__ import annotations

from ...base.message import Message
from ...base.not_described import NotDescribed
from ...families import proven, record_of
from ...model import Model
from ...recipe import Recipe
from ...run import Run
from ...run.adapters import shown
from ...run.optimizer_loops import loop_of
from ...sharding.tensor_parallel import one_rank
from .. import keys
from ..supported import attention_of, check_config, check_shape, dtype_of
from ..windows import windows

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Sequence

# Optimizers that read and write one value at a time, so a part is updated as the whole would be.
BY_VALUE = ("adamw", "amsgrad", "sgd", "momentum", "lion")
# Fields of a run that several devices are not described beside.
ALONE = (
    *("lora", "adapter", "frozen", "offload", "step_in_backward", "loss", "loop", "clip"),
    *("texts", "eval_batch", "eval_logits"),
)
# Micro-batches times stages of a pipeline: as many take half a minute.
MOST_PASSES = 2048
# Micro-batches times layers where all have to be simulated, as backward is split or layers with
# experts and without take turns: the same.
MOST_LAYERS = 5120


NOT, ZERO = "is not described beside ", "DeepSpeed's ZeRO "


def undescribed(what: object, beside: str, known: str = "") -> NotDescribed:
    """What to raise of `what`, said so that a page can say it in its language.

    beside      a clause that begins with NOT
    """
    where = beside.removeprefix(NOT)
    if where.startswith(ZERO):
        where = Message(ZERO + "{stage}", stage=where.removeprefix(ZERO))
    pattern = "{what} is not described beside {where}" + ("; known: {known}" if known else "")
    return NotDescribed(Message(pattern, what=what, where=where, known=known))


def check_said(run: Run, fields: Sequence[str], beside: str) -> None:
    """Refuse each of these fields that a run says.

    Raises      ValueError that names it, and beside what it is not described
    """
    for field in fields:
        value = getattr(run, field)
        if value != getattr(Run, field):
            raise undescribed(f"{field}={shown(value)}", beside)


def check_pipelined(model: Model, recipe: Recipe, run: Run) -> None:
    """Refuse what is not described of a step in a pipeline.

    Raises      ValueError that names it
    """
    beside = "is not described beside a pipeline"
    _check_plain(model, recipe, run, beside, "pipeline")
    if recipe.optimizer not in BY_VALUE:
        raise undescribed(recipe.optimizer, beside, ", ".join(BY_VALUE))
    if model.tied:
        raise NotDescribed(
            "a tied table, which the first stage and the last one both have and whose gradients "
            f"the program itself has to add up, {beside}"
        )
    run.devices.check(model)
    check_shape(model, run)
    keys.check_rows(model, recipe.weights)
    keys.check(model.family, model.config)
    check_config(model, run)
    passes = run.micro_batches * run.devices.pipeline * run.devices.schedule.stages_per_rank
    if passes > MOST_PASSES:
        raise ValueError(
            f"micro_batches={run.micro_batches:,}: {passes:,} with the stages of the pipeline; at "
            f"most {MOST_PASSES:,} are simulated, one by one"
        )
    # A stage's layers look up their kind by their number in the stage. gpt_oss makes both masks,
    # alike in bytes, for its eager attention, so that there the kind changes none.
    if windows(model, run.window)[1] is not None and model.family != "gpt_oss":
        raise NotDescribed(f"layers of two kinds, with a window and without: {beside[3:]}")
    ranks = range(run.devices.pipeline)
    dense = [dense_of(model, part) for r in ranks for part in run.devices.layers(model.layers, r)]
    with_ = f"schedule={run.devices.schedule.name!r}" * run.devices.schedule.splits_backward
    if not with_ and first_dense(dense) is None:
        with_ = f"dense_layers={model.dense_layers}"
    if with_ and run.micro_batches * model.layers > MOST_LAYERS:
        raise ValueError(
            f"micro_batches={run.micro_batches:,} with {with_}: times L={model.layers} layers "
            f"these are more than {MOST_LAYERS:,}, all of which would be simulated, one by one"
        )


def dense_of(model: Model, layers: range) -> tuple[int, ...]:
    """Of a stage's layers, counted from its first one, those without experts."""
    return tuple(layer - layers.start for layer in model.dense_layers if layer in layers)


def first_dense(stages: Sequence[tuple[int, ...]]) -> int | None:
    """How many first layers of a stage are without experts, at the most; None: others are, too."""
    leading = all(dense == tuple(range(len(dense))) for dense in stages)
    return max(map(len, stages)) if leading else None


def check_divided(model: Model, recipe: Recipe, run: Run) -> None:
    """Refuse what is not described of a step whose matrices are divided.

    Raises      ValueError that names it
    """
    beside = "is not described beside tensor parallelism"
    _check_plain(model, recipe, run, beside, "tensor_parallel")
    if recipe.optimizer != "adamw":
        raise undescribed(recipe.optimizer, beside, "adamw")
    loop, whole = loop_of(recipe, run), run.devices.whole_beside_divided or model.qk_norm
    if loop == "fused" or (loop != "forloop" and whole):
        raise ValueError(
            f"optimizer_impl={loop!r} {beside}: torch's foreach and fused loops "
            "refuse plain weights beside DTensors; say foreach=False"
        )
    run.devices.check(model)
    keys.check_rows(one_rank(model, run.devices.tensor), recipe.weights)
    for name, bias in (("out_bias", model.out_bias), ("ff_bias", model.ff_bias)):
        if bias:
            raise NotDescribed(f"{name}=True {beside}")
    if run.devices.plan.sequence and run.tokens and run.tokens % run.devices.tensor:
        raise ValueError(
            f"tokens={run.tokens}; a multiple of tensor={run.devices.tensor} is needed where "
            "tokens are divided"
        )
    if attention_of(model, recipe, run) != "sdpa":
        raise undescribed("attention='eager'", beside)
    if windows(model, run.window) != (None, None):
        raise NotDescribed(f"a sliding window {beside}")


def _check_plain(model: Model, recipe: Recipe, run: Run, beside: str, what: str) -> None:
    """What is described neither in a pipeline nor on parts of matrices."""
    if run.implementation != "transformers" or not record_of(model.family).proves(what):
        whose = f"{run.implementation} {model.family!r}"
        raise undescribed(whose, beside, "transformers' " + ", ".join(proven(what)))
    check_said(run, (*ALONE, "holds"), beside)
    if recipe.autocast:
        raise NotDescribed(f"autocast={recipe.autocast!r} {beside}: describe bf16 or fp32")
    dtype_of(recipe)
    if recipe.master or recipe.accumulator or recipe.gradients not in (None, recipe.weights):
        raise NotDescribed(f"recipe {recipe.name!r}: copies beside weights: {beside[3:]}")
