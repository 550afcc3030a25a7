"""Exercises of ranks that divide the model."""

from ..fit import limit_of
from ..model import Model
from ..run import Run
from ..sharding import Sharding, TensorPlan
from ..step import simulate
from ..terms.experts import arriving
from ..terms.sharded_step import in_flight, layer_activations
from ..terms.sharding import stage_layers
from . import exercise

_LLAMA = Model.preset("llama-3-8b")
_QWEN = Model.preset("qwen3-30b-a3b")


def _layer() -> int:
    return layer_activations(
        1,
        tokens=4096,
        d_model=_LLAMA.d_model,
        d_ff=_LLAMA.d_ff,
        heads=_LLAMA.heads,
        kv_heads=_LLAMA.kv_heads,
        head_dim=_LLAMA.head_dim,
    )


def _stage(stage: int = 2) -> int:
    return stage_layers(32, stages=8, stage=stage) * in_flight(16, stages=8, stage=stage) * _layer()


def _buffer(even: bool = False, ranks: int = 8) -> int:
    rows = arriving(4096, experts=128, experts_per_token=8, ranks=ranks, even=even)
    return rows * _QWEN.d_model * 2


def _ranks() -> int:
    card, _ = limit_of("RTX 4090")
    for ranks in (2, 4, 8):
        run = Run(tokens=4096, devices=Sharding(tensor=ranks, plan=TensorPlan(sequence=True)))
        if simulate(_LLAMA, "bf16", run).peak.bytes <= card:
            return ranks
    raise ValueError("no number of ranks is enough")


exercise(
    "ex-divide-model-1",
    answer=_stage,
    hint="4 layers, and min(16, 8 - 2) micro-batches in flight at once.",
    wrong={
        lambda: 4 * _layer(): "That is one micro-batch; how many are in flight?",
        lambda: 4 * 16 * _layer(): "Under 1F1B stage 2 of 8 never has all 16 in flight.",
        lambda: _stage(1): "Stages count from 0: stage 2 is the third.",
        lambda: _stage(3): "Stages count from 0: stage 2 is the third.",
    },
)

exercise(
    "ex-divide-model-2",
    answer=lambda: 7 * 4 * _layer(),
    hint="1F1B frees a micro-batch of the last stage at once. When does zero bubble free it?",
    wrong={
        lambda: 8 * 4 * _layer(): "That is all of it. How much more than under 1F1B?",
        lambda: 15 * 4 * _layer(): "Zero bubble holds no more than the first stage of 1F1B does.",
        lambda: 7 * _layer(): "That is one layer. The stage has 4.",
    },
)

exercise(
    "ex-divide-model-3",
    answer=_buffer,
    hint="All tokens of all 8 ranks may choose 8 of the 16 experts of one rank.",
    wrong={
        lambda: _buffer(even=True): "That is even routing: what the program has already.",
        lambda: 8 * 4096 * _QWEN.d_model * 2 * 16: "A token has 8 experts, not 16.",
        lambda: 8 * 4096 * _QWEN.d_model: "A bf16 value has two bytes, and each token 8 rows.",
    },
)

exercise(
    "ex-divide-model-4",
    answer=_ranks,
    hint=(
        "Ask simulate for Sharding(tensor=t, plan=TensorPlan(sequence=True)), with t = 2, then 4, "
        "then 8."
    ),
    unit="ranks",
)
