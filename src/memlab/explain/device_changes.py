"""Changes of a reader who has several cards, and the lines that make them.

FSDP2, a mixture's experts divided beside it, weights that wait on the hosts, DeepSpeed's ZeRO, and
the schedule of a pipeline. Only readers who say that they have cards are told to use them, and only
those who asked for a pipeline are told of another schedule.
"""

from __future__ import annotations

from ..recipe import Recipe
from ..run import Run
from ..sharding.deepspeed_keys import written
from .changes import Change
from .flags import OWN, TRAINER, library
from .fsdp_lines import fsdp_line

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    from .changes import Turn

DEEPSPEED = "deepspeed"
FSDP2, EXPERTS, HOSTS, ZERO = (
    "FSDP2 over {:,} cards",
    "FSDP2 over {:,} cards, experts divided among them",
    "FSDP2 over {:,} cards, weights and states on their hosts",
    "DeepSpeed's ZeRO {} over {:,} cards",
)
COSTS = {
    FSDP2: "{:,} cards for one step, and the weights travel between them in both passes",
    EXPERTS: "{:,} cards for one step, and tokens travel to their experts",
    HOSTS: "{:,} cards, and the hosts compute each step; weights come from there in both passes",
}
# What no card alone has beside it, as far as it is described.
GONE = (
    "8-bit states",
    "states on the host",
    "states and gradients on the host",
    "a step inside backward",
    "a loss in chunks",
    "torch's loss in chunks",
    "Liger Kernel's loss in chunks",
    "TRL's trainer and its fused head",
)
FORMATS = ("fused AdamW", "autocast", "pure bf16", "Adafactor")
NARROW = "DeepSpeed's ZeRO 3 over {:,} cards, weights in bf16 beside an fp32 copy"
AWAY = "DeepSpeed's ZeRO 3 over {:,} cards, the optimizer on their hosts"
STAGES = {
    1: "no time beside copies of the model: the optimizer's states are divided",
    2: "no time beside copies of the model: gradients and states are divided",
    3: "the weights travel between the cards in both passes",
}
LOADED = "AutoModelForCausalLM.from_pretrained(name, distributed_config=DistributedConfig("
LOADED += "fsdp_size={0}, ep_size={0})); torchrun --nproc-per-node {0}"
CONFIG = 'config={{"zero_optimization": {zero}, "bf16": {{"enabled": {bf16}}}, '
CONFIG += '"train_micro_batch_size_per_gpu": {batch}, "gradient_accumulation_steps": {passes}}}'
# A ds_config.json that leaves to TrainingArguments what it can.
FILE = '{{"zero_optimization": {zero}, "bf16": {{"enabled": "auto"}}, '
FILE += '"gradient_clipping": "auto", "train_micro_batch_size_per_gpu": "auto", '
FILE += '"gradient_accumulation_steps": "auto"}}'
TRAINED = "TrainingArguments(deepspeed=" + FILE + ", bf16={bf16}){then}; deepspeed --num_gpus "
TRAINED += "{cards}"
LATER = ", then AutoModelForCausalLM.from_pretrained(name)"  # which then makes parts of weights
ENGINE = "deepspeed.initialize(model=model, " + CONFIG + "); deepspeed --num_gpus {cards}"
# Stages on each rank, and the class of torch.distributed.pipelining, in the order of their cost.
ORDERS = (
    ("1f1b", 1, "Schedule1F1B", "no time: backward begins as soon as it can"),
    ("interleaved1f1b", 2, "ScheduleInterleaved1F1B", "twice as many transfers between ranks"),
    (
        "interleavedzerobubble",
        1,
        "ScheduleInterleavedZeroBubble",
        "no time: gradients of weights fill the bubble",
    ),
    (
        "zbvzerobubble",
        2,
        "ScheduleZBVZeroBubble",
        "no time: stages in a V, and gradients of weights fill the bubble",
    ),
)
SCHEDULE = "the schedule {}"
BESIDE = ("pure bf16", "block checkpointing")


def over(cards: int, of: str | None = None) -> tuple[Change, ...]:
    """FSDP2 over 2 of so many cards, 4, 8 and so on, and over all; or DeepSpeed's ZeRO over all.

    of      "deepspeed", whose three stages these are then; None: FSDP2, and what goes beside it
    """
    if cards < 2:
        return ()
    if of == DEEPSPEED:
        steps = [(ZERO.format(s, cards), STAGES[s], _zero(s, cards)) for s in STAGES]
        steps.append(
            (NARROW.format(cards), "no time: most products in bf16", _zero(3, cards, True))
        )
        away = _zero(3, cards, True, offload_optimizer="cpu")
        steps.append((AWAY.format(cards), "the hosts compute each step", away))
        gone: tuple[str, ...] = (*GONE, *FORMATS)
    else:
        counts = [2**power for power in range(1, cards.bit_length()) if 2**power < cards]
        counts.append(cards)
        steps = [_sharded(FSDP2, count) for count in counts]
        steps += [_sharded(EXPERTS, count, expert=count) for count in counts]
        steps += [_sharded(HOSTS, cards, cpu_offload="pinned")]
        gone = GONE
    found: list[Change] = []
    for name, cost, turn in steps:
        found.append(Change(name, turn, cost, gone + tuple(c.name for c in found)))
    return tuple(found)


def _sharded(name: str, count: int, **more: Any) -> tuple[str, str, Turn]:
    def turn(recipe: Recipe, run: Run) -> tuple[Recipe, Run]:
        there = run.devices
        if run.phase != "train" or (there.ranks > 1 and not (there.fsdp and there.data == count)):
            return recipe, run
        how: dict[str, Any] = dict(more)
        # Trainer's own FSDP2 has no autocast (memlab.step.parallel.fsdp.trainer), transformers'
        # neither.
        if run.loop == "trainer":
            how["gradient_sync"] = "last"
        if recipe.autocast == "bf16" and (run.loop == "trainer" or "expert" in more):
            how["param_dtype"] = "bf16"
            recipe = recipe.replace(name="fp32", autocast=None)
        return recipe, run.replace(devices=there.changed(data=count, zero=3, **how))

    return name.format(count), COSTS[name].format(count), turn


def _zero(stage: int, cards: int, narrow: bool = False, **more: Any) -> Turn:
    """The engine updates weights in fp32, or such a copy of narrower ones, with its own AdamW."""

    def turn(recipe: Recipe, run: Run) -> tuple[Recipe, Run]:
        there = run.devices
        begun = there.deepspeed and there.data == cards and there.zero < stage + narrow
        if run.phase != "train" or (there.ranks > 1 and not begun):
            return recipe, run
        if recipe.name not in ("zero", "fp32") or narrow:
            recipe = Recipe.named("zero")
        how: dict[str, Any] = {"data": cards, "zero": stage} | more
        how["library"] = DEEPSPEED if stage == 3 or there.by_deepspeed else None
        return recipe, run.replace(devices=there.changed(**how), optimizer_impl=None)

    return turn


def _scheduled(name: str, stages: int) -> Turn:
    def turn(recipe: Recipe, run: Run) -> tuple[Recipe, Run]:
        if not run.devices.pipelined:
            return recipe, run
        told = run.devices.changed(schedule=name, stages_per_rank=stages)
        return recipe, run.replace(devices=told)

    return turn


def pipelined(every: tuple[Change, ...]) -> tuple[Change, ...]:
    """What else may run the micro-batches of a pipeline, and what of `every` is described there.

    Each schedule takes the place of those before it. Checkpointing takes the place of zero bubble,
    where a rank holds more with it than without: memlab.step.core.split_backward.
    """
    found: list[Change] = []
    for name, stages, made, cost in ORDERS:
        gone = tuple(change.name for change in found)
        found.append(
            Change(SCHEDULE.format(made[len("Schedule") :]), _scheduled(name, stages), cost, gone)
        )
    zero = tuple(change.name for change in found if change.name.endswith("ZeroBubble"))
    return (*found, *(c.beside(zero) for c in every if c.name in BESIDE))


def line(name: str, recipe: Recipe, run: Run) -> str | None:
    """The line that makes the change of this name, in a run that has it already.

    None    this library has none
    Source  torch, torch/distributed/fsdp and torch/distributed/pipelining/schedules.py;
            transformers, training_args.py and distributed/configuration_utils.py; DeepSpeed
            0.19.8, deepspeed/runtime/config.py; torchtitan, torchtitan/config/job_config.py
    """
    of, devices = library(run), run.devices
    if name.startswith(SCHEDULE.format("")):
        made = name[len(SCHEDULE.format("")) :]
        parts = "stages" if devices.schedule.stages_per_rank > 1 else "stage"
        own = f"torch.distributed.pipelining.Schedule{made}({parts}, n_microbatches="
        own += f"{run.micro_batches}); of torchtitan: --parallelism.pipeline_parallel_schedule "
        return own + made
    if name.startswith("DeepSpeed's"):
        kind, zero = recipe.weights == "bf16", repr(written(devices)).replace("'", '"')
        if of == TRAINER:
            then = LATER if devices.zero == 3 else ""
            return TRAINED.format(zero=zero, bf16=kind, then=then, cards=devices.data)
        if of != OWN:  # whose step beside DeepSpeed is not described
            return None
        told = {"zero": zero, "bf16": kind, "batch": run.batch, "cards": devices.data}
        made = ENGINE.format(passes=run.micro_batches, **told)
        before = "with deepspeed.zero.Init(config_dict_or_path=config): model = ...; then "
        return (before if devices.zero == 3 else "") + made
    if devices.experts.ranks > 1:
        return LOADED.format(devices.data) if of == OWN else None
    return fsdp_line(recipe, run)


def ours(name: str) -> bool:
    """Whether a change of this name is one of these."""
    return name.startswith(("FSDP2 over", "DeepSpeed's", SCHEDULE.format("")))
