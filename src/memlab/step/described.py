"""What is described of a training step, and what is refused, by name.

Long, because each thing that a run can say has its refusal here, one after the other.
"""

from __future__ import annotations

from ..formats import storage
from ..model import Model
from ..model.families import FAMILIES
from ..model.fields import dropouts
from ..model.tensors import COMPONENTS, Tensor
from ..recipe import Recipe
from ..recipe.loops import LOOPS, step_name
from ..run import Run
from ..terms.optimizer import numel
from . import keys
from .networks import DROPOUT, LLAMAS, NETWORKS
from .prompt import prompted_tokens
from .windows import windows

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

# Optimizers that read and write one value at a time, so a part is updated as the whole would be.
BY_VALUE = ("adamw", "amsgrad", "sgd", "momentum", "lion")
NARROW = ("bf16", "fp16")
# Micro-batches times stages of a pipeline: as many take half a minute.
MOST_PASSES = 2048
# Families that turn positions as complex numbers: what of these a hook is given is not described.
SAVED_HERE = ("deepseek_v2", "llama4_text")


def attention_of(model: Model, recipe: Recipe, run: Run) -> str:
    """The attention as the networks know it: what the run says, else the config, else SDPA.

    Raises      ValueError for an implementation, a family or an attention that is not described
    """
    known = attentions(run.implementation, model.family)
    usual = "sdpa" if "sdpa" in known else known[0]
    attention = keys.attention(model.config, run.attention, usual)
    if run.kernel != "auto":
        raise ValueError(f"kernel={run.kernel!r} is not described; torch's own choice is")
    if attention == "flash":
        if (recipe.autocast or recipe.weights) == "fp32":
            raise ValueError("attention='flash' in fp32: CUDA's flash kernel takes narrow formats")
        attention = "sdpa"
    if run.backend == "cuda":
        check_cuda(model, recipe, attention)
    one_of("attention", attention, known)
    return attention


def dtype_of(recipe: Recipe) -> str:
    """The dtype of the weights and of the gradients that autograd makes.

    States are in the format that the optimizer updates; those of a format that an optimizer fixes
    by itself are that optimizer's. A step has gradients, also of a recipe that leaves them out.
    """
    name = step_name(recipe)
    states = () if name in ("muon8", "wide_adamw") else recipe.states or ()
    narrow = {recipe.gradients or recipe.weights, recipe.other or recipe.weights}
    copied = recipe.weights in NARROW and recipe.master == "fp32"
    if copied:
        narrow.discard("fp32")  # the sum of the gradients
    plain = narrow | {recipe.weights} == {recipe.weights} and set(states) <= {recipe.updated}
    beside = recipe.accumulator in (None, "fp32") if copied else recipe.accumulator is None
    master = copied or recipe.master is None
    if name.partition("/")[0] not in LOOPS or not (plain and master and beside):
        raise ValueError(
            f"recipe {recipe.name!r} is not described for a step; known: weights, gradients and "
            "states all in fp32, all in bf16 or all in fp16, or bf16 and fp16 with an fp32 master, "
            f"with one of the optimizers {', '.join(LOOPS)}"
        )
    known = {("fp32", None), ("bf16", None), ("fp16", None), ("fp32", "bf16"), ("fp32", "fp16")}
    if (recipe.weights, recipe.autocast) not in known:
        raise ValueError(
            f"recipe {recipe.name!r} (weights {recipe.weights}, autocast {recipe.autocast}) is "
            "not described; known: fp32, bf16, fp16, fp32 under autocast bf16 or fp16"
        )
    return recipe.weights


def check_copies(recipe: Recipe, run: Run) -> None:
    """What is not described beside an fp32 master."""
    if recipe.master is None:
        return
    for field in ("lora", "adapter", "frozen", "step_in_backward", "offload"):
        if value := getattr(run, field):
            raise ValueError(f"{field}={value!r} beside a master copy is not described")
    if run.loop in ("trainer", "sft"):
        raise ValueError(
            f"loop={run.loop!r} beside a master copy: it is DeepSpeed's or Megatron's to update"
        )


def attentions(implementation: str, family: str) -> tuple[str, ...]:
    one_of("implementation", implementation, sorted({name for name, _ in NETWORKS}))
    if (implementation, family) not in NETWORKS:
        families = ", ".join(f for name, f in NETWORKS if name == implementation)
        raise ValueError(
            f"family {family!r} is not described for {implementation}; known: {families}"
        )
    return NETWORKS[implementation, family][2]


def dropouts_of(model: Model, run: Run) -> dict[str, Any]:
    """The probability of each dropout by its name in Setting: as the run says, else the config.

    None        memlab's own models have no dropout unless it is said; those of transformers have
                what the config says, else its class
    Raises      ValueError for a family that has no dropout which is described
    """
    if run.dropout and (run.implementation, model.family) not in DROPOUT:
        raise ValueError(
            f"dropout={run.dropout} is not described for {run.implementation} {model.family}"
        )
    parts = ("attention", "residual", "embedding")
    if run.implementation != "transformers":
        return {f"{part}_dropout": run.dropout or 0.0 for part in parts}
    told = dropouts(model.family, model.config, run.dropout)
    if run.loop == "dpo":
        told = _turned_off(model, told)
    return {f"{part}_dropout": p for part, p in told.items()}


def _turned_off(model: Model, told: dict[str, float]) -> dict[str, float]:
    """DPOTrainer's disable_dropout, which finds modules of dropout and no functions.

    Raises      ValueError for a family with dropout that is not of modules alone
    """
    if any(told.values()) and model.family != "gpt2":
        raise ValueError(
            f"dropout of {model.family} in loop='dpo': the trainer turns off modules of dropout, "
            "and here not all is of modules; dropout=0 is described"
        )
    return dict.fromkeys(told, 0.0)


def check_cuda(model: Model, recipe: Recipe, attention: str) -> None:
    """What is not described on CUDA: heads that flash attention has to pad, and dynamic rotary.

    That one reads how long the text is, so no trace tells what it costs.

    Source      aten/src/ATen/native/transformers/attention.cpp, pad_last_dim
    """
    narrow = (recipe.autocast or recipe.weights) != "fp32"
    if attention == "sdpa" and narrow and model.head_dim % 8:
        raise ValueError(f"H={model.head_dim} on cuda: a multiple of 8 is described")
    if keys.rope_type(model.config) == "dynamic":
        raise ValueError("rope_type='dynamic' on cuda is not described")


def check_frozen(frozen: Sequence[str], model: Model) -> None:
    for part in frozen:
        one_of("frozen", part, COMPONENTS)
    if {tensor.component for tensor in model.tensors()} <= set(frozen):
        raise ValueError(f"frozen={', '.join(frozen)}: nothing of this model is left to train")


def check_away(model: Model, recipe: Recipe, run: Run) -> None:
    """Whose states may wait on a host: those of AdamW; and whose saved tensors."""
    if "saved" in run.offload and model.family in SAVED_HERE:
        raise ValueError(f"offload of saved is not described for {model.family}")
    for part in ("states", "optimizer"):
        if part in run.offload and recipe.optimizer != "adamw":
            raise ValueError(f"offload of {part} is described for adamw, not {recipe.optimizer}")


def check_shape(model: Model, run: Run) -> None:
    """What no step of this model can have, and what is not described of it."""
    if run.compile is not None:
        raise ValueError(
            f"compile={run.compile!r}: no formula says what a compiler keeps; `memlab trace CONFIG "
            "--compile` asks it, on tensors without values"
        )
    if run.devices.ranks > 1 and not (run.devices.fsdp or run.devices.pipelined):
        raise ValueError(
            f"devices={run.devices}: the step of one device alone is described, or that of one of "
            "FSDP2's ranks (ZeRO 3 over data alone), or of a pipeline's alone"
        )
    if run.holds:
        raise ValueError(f"holds {', '.join(run.holds)}: memlab.estimate adds what a loop holds")
    if run.tokens is None:
        raise ValueError("tokens is missing: how many are in each sequence?")
    tokens = run.tokens + prompted_tokens(run)
    if model.learned_positions and tokens > model.positions:
        raise ValueError(
            f"tokens={tokens:,}; {model.name} has {model.positions:,} learned positions"
        )
    theirs = run.implementation == "transformers"
    if theirs and model.head_dim > 256 and model.kv_heads < model.heads:
        raise ValueError(f"H={model.head_dim} with shared key/value heads is not described")


def check_sharded(recipe: Recipe, run: Run) -> None:
    """Refuse what is not described of a step under FSDP2.

    Raises      ValueError that names it
    """
    fields = ("lora", "adapter", "frozen", "offload", "step_in_backward", "loss", "loop", "clip")
    for field in fields:
        value = getattr(run, field)
        if value != getattr(Run, field):
            raise ValueError(f"{field}={value!r} is not described beside FSDP2")
    if recipe.master or recipe.accumulator or recipe.gradients not in (None, recipe.weights):
        raise ValueError(
            f"recipe {recipe.name!r}: copies beside weights are not described on FSDP2"
        )
    if recipe.optimizer not in BY_VALUE:
        known = ", ".join(BY_VALUE)
        raise ValueError(f"{recipe.optimizer} is not described on FSDP2's parts; known: {known}")
    if recipe.autocast and run.devices.param_dtype:
        raise ValueError(
            f"param_dtype={run.devices.param_dtype!r} beside autocast: describe one of them"
        )


def check_pipelined(model: Model, recipe: Recipe, run: Run) -> None:
    """Refuse what is not described of a step in a pipeline.

    Raises      ValueError that names it
    """
    beside = "is not described beside a pipeline"
    if run.implementation != "transformers" or model.family not in LLAMAS:
        raise ValueError(
            f"{run.implementation} {model.family!r} {beside}; known: transformers' "
            + ", ".join(LLAMAS)
        )
    fields = ("lora", "adapter", "frozen", "offload", "step_in_backward", "loss", "loop", "clip")
    for field in (*fields, "holds"):
        value = getattr(run, field)
        if value != getattr(Run, field):
            raise ValueError(f"{field}={value!r} {beside}")
    if recipe.autocast:
        raise ValueError(f"autocast={recipe.autocast!r} {beside}: describe bf16 or fp32")
    dtype_of(recipe)
    if recipe.master or recipe.accumulator or recipe.gradients not in (None, recipe.weights):
        raise ValueError(f"recipe {recipe.name!r}: copies beside weights: {beside[3:]}")
    if recipe.optimizer not in BY_VALUE:
        raise ValueError(f"{recipe.optimizer} {beside}; known: {', '.join(BY_VALUE)}")
    if model.tied:
        raise ValueError(
            "a tied table, which the first stage and the last one both have and whose gradients "
            f"the program itself has to add up, {beside}"
        )
    run.devices.check(model)
    check_shape(model, run)
    keys.check(model.family, model.config)
    check_config(model, run)
    passes = run.micro_batches * run.devices.pipeline * run.devices.stages_per_rank
    if passes > MOST_PASSES:
        raise ValueError(
            f"micro_batches={run.micro_batches:,}: {passes:,} with the stages of the pipeline; at "
            f"most {MOST_PASSES:,} are simulated, one by one"
        )
    if windows(model, run.window)[1] is not None:
        raise ValueError(f"layers of two kinds, with a window and without: {beside[3:]}")


def check_config(model: Model, run: Run) -> None:
    """What a config says of its step, where the run does not say it too."""
    loss = "fused_head" if run.fused_head else run.loss
    if model.family == "llama4_text" and (run.chunks or run.fused_head):
        raise ValueError(
            f"loss={loss!r}: Llama4ForCausalLM does not name its body, which such a loss is "
            "made from; loss='plain' is described"
        )
    if run.chunks and keys.scales_logits(model):
        raise ValueError(
            f"loss={run.loss!r}: {model.family} scales its logits, and a loss in chunks of rows is "
            "made from the output head alone; loss='plain' is described"
        )
    if run.fused_head and run.backend == "cpu" and model.family == "gemma2":
        raise ValueError(
            "loss='fused_head' on a CPU: the soft cap of gemma2's logits is not described there"
        )
    if model.config.get("gradient_checkpointing") and run.checkpoint != "block":
        raise ValueError(
            "gradient_checkpointing=True in the config: say checkpoint='block', or set it to false"
        )


def check_built(model: Model, built: int, dtype: str, run: Run) -> None:
    """The network has the parameters of the model, or a flag of the model means nothing to it."""
    wanted = _stored(model.tensors(), dtype, run)
    if (lora := run.lora) is not None:
        theirs = lora.format(dtype, peft=run.implementation == "transformers")
        wanted = lora.base_bytes(model, dtype) + storage(lora.parameter_count(model), theirs)
        wanted += storage(lora.saved_count(model), dtype)
        if lora.base is not None and run.implementation == "transformers":
            wanted += lora.level_bytes(model)
    if (other := run.adapter) is not None:
        wanted += storage(other.parameter_count(model), other.format(dtype, peft=True))
    _check_weights(model, built, wanted)


def check_weights(model: Model, built: int, dtype: str, run: Run, stage: int) -> None:
    """The same of one rank of a pipeline."""
    _check_weights(model, built, _stored(run.devices.tensors(model, stage), dtype, run))


def _stored(tensors: Sequence[Tensor], dtype: str, run: Run) -> int:
    shapes = [(run.devices.shape(tensor, "weights"), tensor.copies) for tensor in tensors]
    return storage(sum(numel(shape) * copies for shape, copies in shapes), dtype)


def _check_weights(model: Model, built: int, wanted: int) -> None:
    if built == wanted:
        return
    usual = {"embed_dim": model.d_model, **FAMILIES[model.family]}
    own = [f"{k}={getattr(model, k)!r}" for k, v in usual.items() if getattr(model, k) != v]
    raise ValueError(
        f"the {model.family} network that is described has {built:,} bytes of weights, this model "
        f"{wanted:,}: not all of {', '.join(own)} is described; known: the family's own values"
    )


def one_of(name: str, value: str, known: Any) -> None:
    if value not in known:
        raise ValueError(f"{name}={value!r} is not described; known: {', '.join(known)}")
