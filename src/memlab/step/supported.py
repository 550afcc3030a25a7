"""What is described of a training step, and what is refused, by name.

A long file, because it is one list of checks, in the order in which a reader meets them.
"""

from __future__ import annotations

from ..adapters import Prompt
from ..base.message import Message
from ..base.not_described import NotDescribed
from ..families import proven, record_of
from ..model import Model
from ..model.dropouts import dropouts
from ..model.tensors import COMPONENTS
from ..recipe import Recipe
from ..run import Run
from ..run.adapters import shown
from ..run.loop_rules import keeps_output
from ..run.optimizer_loops import LOOPS, step_name
from . import keys
from .adapters.prompt import prompted_tokens
from .kv_cache import keeps_keys
from .networks import IMPLEMENTATIONS, families

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

NARROW = ("bf16", "fp16")


def attention_of(model: Model, recipe: Recipe, run: Run) -> str:
    """The attention as the networks know it: what the run says, else the config, else SDPA.

    Raises      ValueError for an implementation, a family or an attention that is not described
    """
    known = attentions(run.implementation, model.family)
    usual = "sdpa" if "sdpa" in known else known[0]
    attention = keys.attention(model.config, run.attention, usual)
    if run.kernel != "auto":
        raise NotDescribed(f"kernel={run.kernel!r} is not described; torch's own choice is")
    if attention == "flash":
        if (recipe.autocast or recipe.weights) == "fp32":
            raise ValueError("attention='flash' in fp32: CUDA's flash kernel takes narrow formats")
        attention = "sdpa"
    one_of("attention", attention, known)
    if attention == "flash_attention_2":
        check_flash2(recipe, run)
    if run.backend == "cuda":
        check_cuda(model, recipe, attention)
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
        raise NotDescribed(
            f"recipe {recipe.name!r} is not described for a step; known: weights, gradients and "
            "states all in fp32, all in bf16 or all in fp16, or bf16 and fp16 with an fp32 master, "
            f"with one of the optimizers {', '.join(LOOPS)}"
        )
    known = {("fp32", None), ("bf16", None), ("fp16", None), ("fp32", "bf16"), ("fp32", "fp16")}
    if (recipe.weights, recipe.autocast) not in known:
        raise NotDescribed(
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
            raise NotDescribed(f"{field}={shown(value)} beside a master copy is not described")
    if run.loop in ("trainer", "sft") and not run.devices.deepspeed:
        raise ValueError(
            f"loop={run.loop!r} beside a master copy: it is DeepSpeed's or Megatron's to update"
        )


def attentions(implementation: str, family: str) -> tuple[str, ...]:
    one_of("implementation", implementation, sorted(IMPLEMENTATIONS))
    known = record_of(family)
    if not getattr(known, IMPLEMENTATIONS[implementation]):
        every = ", ".join(families(implementation))
        raise NotDescribed(
            f"family {family!r} is not described for {implementation}; known: {every}"
        )
    return known.attentions if implementation == "transformers" else ("sdpa",)


def dropouts_of(model: Model, run: Run) -> dict[str, Any]:
    """The probability of each dropout by its name in Setting: as the run says, else the config.

    None        memlab's own models have no dropout unless it is said; those of transformers have
                what the config says, else its class
    Raises      ValueError for a family that has no dropout which is described
    """
    theirs = run.implementation == "transformers"
    if run.dropout and not theirs and model.family != "gpt2":  # memlab's own llama has none
        raise NotDescribed(
            f"dropout={run.dropout} is not described for {run.implementation} {model.family}"
        )
    parts = ("attention", "residual", "embedding")
    if not theirs:
        return {f"{part}_dropout": run.dropout or 0.0 for part in parts}
    told = dropouts(model.family, model.config, run.dropout)
    if run.loop in ("dpo", "gkd"):
        told = _turned_off(model, told, run.loop)
    return {f"{part}_dropout": p for part, p in told.items()}


def _turned_off(model: Model, told: dict[str, float], loop: str) -> dict[str, float]:
    """disable_dropout of DPOTrainer and GKDTrainer, which finds modules and no functions.

    Raises      ValueError for a family with dropout that is not of modules alone
    """
    if any(told.values()) and model.family != "gpt2":
        raise NotDescribed(
            f"dropout of {model.family} in loop={loop!r}: the trainer turns off modules of "
            "dropout, and here not all is of modules; dropout=0 is described"
        )
    return dict.fromkeys(told, 0.0)


def check_cuda(model: Model, recipe: Recipe, attention: str) -> None:
    """What is not described on CUDA: heads that flash attention has to pad, and dynamic rotary.

    That one reads how long the text is, so no trace tells what it costs.

    Source      aten/src/ATen/native/transformers/attention.cpp, pad_last_dim
    """
    narrow = (recipe.autocast or recipe.weights) != "fp32"
    if attention != "eager" and narrow and model.head_dim % 8:
        pattern = "H={size} on cuda: a multiple of 8 is described"
        raise ValueError(Message(pattern, size=model.head_dim))
    if keys.rope_type(model.config) == "dynamic":
        raise NotDescribed("rope_type='dynamic' on cuda is not described")


def check_flash2(recipe: Recipe, run: Run) -> None:
    """What is not described of the package flash-attn, which takes narrow formats on CUDA.

    Raises      ValueError that names it
    """
    said = "attention='flash_attention_2'"
    if run.backend != "cuda":
        raise ValueError(f"{said} is CUDA's; on a CPU sdpa or eager is described")
    if (recipe.autocast or recipe.weights) == "fp32":
        raise ValueError(f"{said} in fp32: the package takes bf16 and fp16")
    if run.phase != "train":
        raise ValueError(f"{said} is described for training, not for {run.phase}")
    if run.texts == "padded":
        raise NotDescribed(f"{said} with texts='padded' is not described; full and packed are")
    alone = run.devices.ranks == 1 or (run.devices.fsdp and run.devices.context == 1)
    if not alone:
        raise NotDescribed(f"{said} is not described for devices={run.devices}")
    packed = run.loop == "sft" and run.texts == "packed"
    if run.loop not in ("plain", "keeps-outputs", "trainer") and not packed:
        raise NotDescribed(
            f"{said} with loop={run.loop!r} is not described; plain, keeps-outputs and trainer "
            "are, and sft with packed texts"
        )
    if run.adapter is not None:
        raise NotDescribed(f"{said} with {run.adapter.told()} is not described")


def check_frozen(frozen: Sequence[str], model: Model) -> None:
    for part in frozen:
        one_of("frozen", part, COMPONENTS)
    if {tensor.component for tensor in model.tensors()} <= set(frozen):
        raise ValueError(f"frozen={', '.join(frozen)}: nothing of this model is left to train")


def check_away(recipe: Recipe, run: Run) -> None:
    """Whose states may wait on a host: those of AdamW."""
    for part in ("states", "optimizer"):
        if part in run.offload and recipe.optimizer != "adamw":
            raise NotDescribed(f"offload of {part} is described for adamw, not {recipe.optimizer}")


# memlab.lab.offload and memlab.lab.offloaded_optimizer, around anybody's model.
OURS = ("saved", "states")


def check_offload(run: Run) -> None:
    """Beside what saved tensors and states may wait on a host: tests/test_offload_theirs.py."""
    mine = [name for name in run.offload if name in OURS]
    plain = run.loop == "plain" and run.loss != "fused_head"
    usual = plain and run.lora is None and run.devices.ranks == 1
    if mine and run.implementation != "memlab" and not usual:
        raise NotDescribed(
            f"offload of {', '.join(mine)} under transformers' code is described for the plain "
            "loop on one device, without adapters"
        )
    if "saved" in run.offload and run.checkpointing != "none":
        raise NotDescribed(
            f"offload of saved tensors beside checkpoint={run.checkpointing!r}: describe one"
        )


def check_evaluation(run: Run) -> None:
    """Beside what an evaluation is described: Trainer's own, of whole texts, without adapters."""
    if run.eval_batch is None:
        return
    if run.loop != "trainer":
        raise NotDescribed(
            f"eval_batch={run.eval_batch} is for loop='trainer'; this is {run.loop!r}"
        )
    if run.texts == "packed" or run.adapters is not None:
        beside = "texts='packed'" if run.texts == "packed" else "adapters"
        raise NotDescribed(f"eval_batch={run.eval_batch} beside {beside} is not described")


DEVICES = (
    "devices={devices}: the step of one device alone is described, or that of one of DDP's ranks "
    "(data alone), of FSDP2's (ZeRO 3 over data and context alone), of DeepSpeed's (ZeRO 1 and 2), "
    "of a pipeline's alone, or of ranks that divide each matrix (tensor) alone"
)


def check_shape(model: Model, run: Run) -> None:
    """What no step of this model can have, and what is not described of it."""
    if run.compile is not None:
        raise ValueError(
            f"compile={run.compile!r}: no formula says what a compiler keeps; `memlab trace CONFIG "
            "--compile` asks it, on tensors without values"
        )
    check_offload(run)
    check_evaluation(run)
    devices = run.devices
    known = (devices.fsdp, devices.deepspeed, devices.pipelined, devices.tensor_parallel)
    if devices.ranks > 1 and not any((*known, devices.replicated)):
        raise NotDescribed(Message(DEVICES, devices=str(devices)))
    if devices.zero and devices.sharers == 1 and not devices.deepspeed:
        raise NotDescribed(
            f"zero={devices.zero} with data={devices.data}: no step is described in which ZeRO "
            "divides nothing; with zero=0 that of the same devices without it is"
        )
    if run.holds and (set(run.holds) != {"output"} or not keeps_output(run)):
        raise ValueError(f"holds {', '.join(run.holds)}: memlab.estimate adds what a loop holds")
    if run.tokens is None:
        raise ValueError("tokens is missing: how many are in each sequence?")
    tokens = run.tokens + prompted_tokens(run)  # of each text, in a packed row too
    if model.learned_positions and tokens > model.positions:
        raise ValueError(
            f"tokens={tokens:,}; {model.name} has {model.positions:,} learned positions"
        )
    theirs = run.implementation == "transformers"
    if theirs and model.head_dim > 256 and model.kv_heads < model.heads:
        pattern = "H={size} with shared key/value heads is not described"
        raise ValueError(Message(pattern, size=model.head_dim))


# What a network that was recorded is played with: tests/test_recorded_types.py.
PLAYED = (
    *("batch", "tokens", "micro_batches", "backend", "attention", "checkpoint", "loop", "frozen"),
    *("optimizer_impl", "step_in_backward", "clip", "lora", "holds", "devices"),
)
PLAYED_LOOPS = ("plain", "keeps-outputs", "nanogpt", "trainer")


def check_recorded(model: Model, run: Run) -> None:
    """What is not supported of a type whose network was recorded from its own code.

    Raises      NotDescribed that names it
    """
    if record_of(model.family).recorded is None:
        return
    beside = f"is not supported for {model.family}, whose network is a recording"
    for field, value in run.said().items():
        if field not in PLAYED:
            raise NotDescribed(f"{field}={shown(value)} {beside}")
    if run.loop not in PLAYED_LOOPS:
        raise NotDescribed(f"loop={run.loop!r} {beside}; known: {', '.join(PLAYED_LOOPS)}")
    if keeps_keys(run, model.config):
        raise NotDescribed(
            f"what an output that is kept has of keys and values {beside}; with use_cache=False in "
            "its config, or with checkpoint='block', it has none"
        )
    devices = run.devices
    alone = devices.context == 1 and devices.experts.ranks == 1
    if devices.ranks > 1 and not (alone and (devices.fsdp or devices.replicated)):
        raise NotDescribed(f"devices={devices} {beside}; known: DDP and FSDP2")


def check_texts(model: Model, run: Run) -> None:
    """Of whose rows padding and packed texts are described, and in which attention.

    Raises      ValueError that names what is not
    """
    if run.texts == "full":
        return
    if run.implementation != "transformers" or not record_of(model.family).proves("texts"):
        raise NotDescribed(
            f"texts={run.texts!r} is not described for {run.implementation} {model.family}; known: "
            "transformers' " + ", ".join(proven("texts"))
        )
    told = keys.attention(model.config, run.attention)
    if told == "flash":
        raise NotDescribed(
            f"attention='flash' with texts={run.texts!r}: SDPA is given a mask, which its flash "
            "kernel does not take; attention='sdpa' is described, and of packed texts "
            "flash_attention_2"
        )
    if isinstance(run.adapter, Prompt):
        raise NotDescribed(f"texts={run.texts!r} beside prompt tuning is not described")


def check_config(model: Model, run: Run) -> None:
    """What a config says of its step, where the run does not say it too."""
    tiled = run.loop == "distillation"
    loss = "fused_head" if run.fused_head else run.loss
    what = f"loop={run.loop!r}" if tiled else f"loss={loss!r}"
    if not record_of(model.family).names_body and (run.in_chunks or run.fused_head or tiled):
        raise NotDescribed(
            f"{what}: Llama4ForCausalLM does not name its body, which such a loss is "
            "made from; loss='plain' is described"
        )
    if run.in_chunks and keys.scales_logits(model):
        raise NotDescribed(
            Message(
                "loss={loss}: {family} scales its logits, and a loss in chunks of rows is made "
                "from the output head alone; loss='plain' is described",
                loss=repr(run.loss),
                family=model.family,
            )
        )
    if (run.fused_head or tiled) and run.backend == "cpu" and model.family == "gemma2":
        raise NotDescribed(
            f"{what} on a CPU: the soft cap of gemma2's logits is not described there"
        )
    if keys.router_loss(model.config):
        check_router_loss(model, run)
    if model.config.get("gradient_checkpointing") and run.checkpointing != "block":
        raise ValueError(
            "gradient_checkpointing=True in the config: say checkpoint='block', or set it to false"
        )


def check_router_loss(model: Model, run: Run) -> None:
    """Of which steps the router's own loss is described: plain ones on one device."""
    what = "output_router_logits=True"
    if not model.mixture_layers:
        raise ValueError(f"{what}: no layer of this model has a router, and its class fails there")
    for field in ("loss", "loop", "eval_batch"):
        value = getattr(run, field)
        if value != getattr(Run, field):
            raise NotDescribed(f"{what} is not described beside {field}={value!r}")
    if run.devices.ranks > 1:
        raise NotDescribed(
            f"{what} is described on one device alone, not for devices={run.devices}"
        )


def one_of(name: str, value: str, known: Any) -> None:
    if value not in known:
        pattern = "{what} is not described; known: {known}"
        raise ValueError(Message(pattern, what=f"{name}={value!r}", known=", ".join(known)))
