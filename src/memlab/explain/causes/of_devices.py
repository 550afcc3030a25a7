"""Several devices that divide less than was believed, or hold more at once."""

from __future__ import annotations

from .. import divided
from ..case import of_run
from .cause import SELDOM, SOMETIMES, Cause

DEVICES = (
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
)
