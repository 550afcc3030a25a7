"""What can make a run need more than was predicted: each cause as a switch that can be turned.

No cause has bytes of its own. It turns a run (or a recipe) into another one, and what it costs is
the peak after, less the peak before. The module is long because all causes stand in one table.
"""

from __future__ import annotations

from ..base.frozen import dataclass
from ..recipe import Recipe
from ..run import Run
from ..terms.context import READINGS
from . import divided
from .case import Case, beside, holding, of_recipe, of_run
from .evaluations import gathered, gathers

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable

# How often a cause is the one, among runs that need too much: our judgement, from the issues of
# PyTorch, transformers and vLLM and from the field notes of this book. No statistics exist.
OFTEN, SOMETIMES, SELDOM = 0.3, 0.1, 0.03
GRADES = {OFTEN: "often", SOMETIMES: "sometimes", SELDOM: "seldom"}
CONTEXTS = [reading.context for reading in READINGS if reading.loading == "LAZY"]


@dataclass(frozen=True)
class Cause:
    """Something that a program does, and nobody put into the prediction.

    prior       OFTEN, SOMETIMES or SELDOM
    group       causes of one group exclude each other: a tensor has one format
    turn        the case with this cause in it; None where it is so already or cannot be
    look        the experiment that confirms it or rules it out
    level       the narrowest count that shows it: "tensors", "reserved" or "device"
    counted     it comes in pieces, and `turn` adds one of them
    sized       of a cause whose pieces are no multiples: the case with as many as come nearest to
                a gap, and how many they are
    always      every figure of its level has it in it
    between     of a cause that was read and not derived: the least and the most that was read
    """

    name: str
    prior: float
    group: str
    turn: Callable[[Case], Case | None]
    look: str
    level: str = "tensors"
    counted: bool = False
    sized: Callable[[Case, int], tuple[Case, int] | None] | None = None
    always: bool = False
    between: tuple[int, int] | None = None


def _fp32(recipe: Recipe) -> Recipe | None:
    told = {recipe.weights, recipe.gradients, recipe.updated}
    return None if told == {"fp32"} else Recipe.named("fp32")


def _states(recipe: Recipe) -> Recipe | None:
    if recipe.optimizer == "adamw" and set(recipe.states or [recipe.updated]) == {"fp32"}:
        return None
    name = f"{recipe.name}, AdamW in fp32"
    return recipe.replace(name=name, optimizer="adamw", states=("fp32", "fp32"))


def _master(recipe: Recipe) -> Recipe | None:
    if recipe.master == "fp32" or recipe.weights == "fp32":
        return None
    return recipe.replace(name="fp32 master", master="fp32")


def _gradients(case: Case) -> Case | None:
    if case.recipe.gradients in (None, "fp32") or case.run.adapters is not None:
        return None
    return case.replace(recipe=case.recipe.replace(name="fp32 gradients", gradients="fp32"))


def _autocast(recipe: Recipe) -> Recipe | None:
    return Recipe.named("fp32") if recipe.autocast else None


def _foreach(run: Run) -> Run | None:
    return None if run.optimizer_loop == "foreach" else run.replace(optimizer_impl="foreach")


def _together(run: Run) -> Run | None:
    if run.micro_batches == 1:
        return None
    return run.replace(micro_batches=1, batch=run.batch * run.micro_batches)


def _texts(kind: str) -> Callable[[Run], Run | None]:
    return lambda run: run.replace(texts=kind) if run.texts == "full" else None


def _wide_average(case: Case) -> Case | None:
    """Beside weights in fp32 a second model is the same."""
    return None if case.recipe.weights == "fp32" else holding("fp32_model")(case)


def _longer(case: Case) -> Case | None:
    tokens = case.run.tokens
    if tokens is None or 2 * tokens > case.model.positions:
        return None
    return case.replace(run=case.run.replace(tokens=2 * tokens))


DTYPES = "print({p.dtype for p in model.parameters()})"
STATES = "print({v.dtype for s in optimizer.state.values() for v in s.values()})"
LINES = "with memlab.explain() as live: two or three steps; print(live)"
EMPTY = 'memlab watch -- python -c "import torch; torch.ones(1)"'
CAUSES = (
    Cause("everything in fp32", OFTEN, "formats", of_recipe(_fp32), DTYPES),
    Cause("AdamW's states in fp32", OFTEN, "states", of_recipe(_states), STATES),
    Cause("an fp32 master copy, updated in fp32", SOMETIMES, "formats", of_recipe(_master), LINES),
    Cause(
        "gradients in fp32",
        SOMETIMES,
        "gradients",
        _gradients,
        "print({p.grad.dtype for p in model.parameters()}) after backward",
    ),
    Cause(
        "no autocast",
        SOMETIMES,
        "formats",
        of_recipe(_autocast),
        "print(logits.dtype) after forward",
    ),
    Cause(
        "no checkpointing",
        OFTEN,
        "checkpoint",
        of_run(lambda run: run.replace(checkpoint="none")),
        "print(model.is_gradient_checkpointing), model.training, and look at the command's flags",
    ),
    Cause(
        "eager attention",
        OFTEN,
        "attention",
        of_run(lambda run: run.replace(attention="eager")),
        "print(model.config._attn_implementation); or halve T: does the gap fall to a quarter?",
    ),
    Cause(
        "the loss not in chunks",
        SOMETIMES,
        "loss",
        of_run(lambda run: run.replace(loss="plain", loss_chunks=None)),
        "halve B: does the gap halve? look for [B, T, V] among the live tensors",
    ),
    Cause(
        "the logits cast to fp32",
        SOMETIMES,
        "loss",
        holding("wide_logits"),
        "look for .float() before the loss; print(logits.dtype)",
    ),
    Cause(
        "the logits held during backward",
        SOMETIMES,
        "output",
        holding("output"),
        "del the model's output before backward: does the peak fall?",
    ),
    Cause(
        "AdamW's foreach temporaries",
        SOMETIMES,
        "foreach",
        of_run(_foreach),
        "AdamW(..., foreach=False): does the peak fall?",
    ),
    Cause(
        "the gradients of the last step still there",
        SOMETIMES,
        "gradients kept",
        holding("gradients"),
        "call zero_grad(set_to_none=True) before the forward pass",
    ),
    Cause(
        "losses kept with their graphs",
        OFTEN,
        "graphs",
        holding("graph"),
        "does memory grow with every step? loss.item(), or torch.no_grad()",
        counted=True,
    ),
    Cause(
        "logits of every step collected",
        SOMETIMES,
        "collected",
        holding("logits"),
        "does memory grow by [B, T, V] with every step? keep argmax(-1), or .cpu(), instead",
        counted=True,
    ),
    Cause(
        "data kept on the device, batch by batch",
        SELDOM,
        "cache",
        holding("batch"),
        "print(next(iter(loader))['input_ids'].device); what caches batches? keep them on the host",
        counted=True,
    ),
    Cause(
        "the model's output kept until the next one is there",
        OFTEN,  # out = model(...); out.loss.backward(): the name lives on
        "output",
        of_run(lambda run: run.replace(loop="keeps-outputs") if run.loop == "plain" else None),
        "del out after backward, or take out.loss alone: does the peak fall?",
    ),
    Cause(
        "padding: a mask, kept in every layer",
        SOMETIMES,
        "texts",
        of_run(_texts("padded")),
        "print(batch['attention_mask'].all()); pad nothing: does the peak fall?",
    ),
    Cause(
        "texts packed into one row, without flash attention",
        SELDOM,
        "texts",
        of_run(_texts("packed")),
        "print(batch['input_ids'].shape, 'position_ids' in batch)",
    ),
    Cause(
        "logits of an evaluation gathered on the device",
        SOMETIMES,
        "evaluation",
        gathers,
        "TrainingArguments(eval_accumulation_steps=1), or no compute_metrics: does the peak fall?",
        sized=gathered,
    ),
    Cause(
        "micro-batches taken at once",
        SOMETIMES,
        "batch",
        of_run(_together),
        "print(ids.shape) in the forward pass",
    ),
    Cause(
        "no adapters: all weights trained",
        SOMETIMES,
        "lora",
        of_run(lambda run: run.replace(lora=None, adapter=None)),
        "print(sum(p.numel() for p in model.parameters() if p.requires_grad))",
    ),
    Cause(
        "nothing offloaded",
        SOMETIMES,
        "offload",
        of_run(lambda run: run.replace(offload=())),
        LINES,
    ),
    Cause("sequences of twice the length", SELDOM, "batch", _longer, "print(ids.shape)"),
    Cause(
        "nothing sharded: each rank has the whole model",
        SOMETIMES,
        "devices",
        of_run(divided.whole_model),
        "on one rank print(type(next(model.parameters()))): is it a DTensor?",
    ),
    Cause(
        "DeepSpeed's ZeRO one stage lower",
        SOMETIMES,
        "devices",
        of_run(divided.stage_below),
        "print(engine.zero_optimization_stage())",
    ),
    Cause(
        "layers gathered until backward",
        SOMETIMES,
        "devices",
        of_run(divided.kept),
        "fully_shard(layer, reshard_after_forward=True) on each layer: does the peak fall?",
    ),
    Cause(
        "weights gathered as they are stored",
        SOMETIMES,
        "policy",
        of_run(divided.wide),
        "print(logits.dtype); is mp_policy=MixedPrecisionPolicy(param_dtype=...) on each layer?",
    ),
    Cause(
        "whole gradients until the last micro-batch",
        SOMETIMES,
        "sync",
        of_run(divided.unreduced),
        "look for no_sync() and set_requires_gradient_sync(False)",
    ),
    Cause(
        "weights and states on the cards, not on their hosts",
        SOMETIMES,
        "hosts",
        of_run(divided.on_cards),
        "print({p.device for p in model.parameters()}) between two steps",
    ),
    Cause(
        "experts gathered, not divided",
        SOMETIMES,
        "experts",
        of_run(divided.gathered_experts),
        "print(model.config.distributed_config)",
    ),
    Cause(
        "all tokens at one rank's experts",
        SELDOM,
        "experts",
        of_run(divided.one_rank_for_all),
        "count the tokens of each rank's experts: is the auxiliary loss on?",
    ),
    Cause(
        "all micro-batches forward before the first goes backward",
        SOMETIMES,
        "schedule",
        of_run(divided.all_in_flight),
        "print(type(schedule)): ScheduleGPipe?",
    ),
    Cause(
        "old and new copies while loading",
        SOMETIMES,
        "loading",
        beside("loading"),
        "read max_memory_allocated before the first step",
    ),
    Cause(
        "the checkpoint's state dict kept",
        SOMETIMES,
        "copy",
        holding("state_dict"),
        "del the state dict after load_state_dict: does the peak fall?",
    ),
    Cause(
        "a second model (averaged weights, a reference)",
        SELDOM,
        "copy",
        holding("model"),
        LINES,
    ),
    Cause("weights averaged in fp32", SELDOM, "copy", _wide_average, LINES),
    Cause(
        "fragmentation and rounding",
        OFTEN,
        "allocator",
        beside("allocator"),
        "max_memory_reserved − max_memory_allocated; PYTORCH_ALLOC_CONF=expandable_segments:True",
        level="reserved",
        always=True,
    ),
    Cause(
        "the CUDA context",
        OFTEN,
        "context",
        beside("context"),
        "nvidia-smi beside memory_reserved, with one small tensor",
        level="device",
        always=True,
        between=(min(CONTEXTS), max(CONTEXTS)),
    ),
)
