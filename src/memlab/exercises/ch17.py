"""Exercises of chapter 17, accumulation, tying and narrow tables."""

from ..formats import storage
from ..model import Model
from ..run import Run
from . import exercise


def _count(name: str) -> int:
    return Model.preset(name).parameter_count


def _peak(pieces: int, tokens: int) -> int:
    from ..step.simulate import simulate  # only who asks for this answer needs it

    batch = 2 // pieces
    run = Run(batch=batch, tokens=tokens, micro_batches=pieces, optimizer_impl="fused")
    return simulate(Model.preset("llama-3-8b"), "bf16", run).peak.bytes


def _pays() -> int:
    tokens = 256
    while _peak(2, tokens) >= _peak(1, tokens):
        tokens += 256
    return tokens


exercise(
    "ex-accumulation-1",
    answer=lambda: storage(_count("qwen3-0.6b"), "bf16"),
    hint="One gradient for each parameter, in the format of the weights.",
    wrong={
        lambda: storage(_count("qwen3-0.6b"), "bf16") // 8: "A gradient has no batch in its shape.",
        lambda: storage(_count("qwen3-0.6b"), "fp32"): "Two bytes each: everything is in bf16.",
        lambda: 0: "That is so in the first micro-batch.",
    },
)

exercise(
    "ex-accumulation-2",
    answer=lambda: 151936 * 1024 - (151936 * 64 + 2 * 64 * 1024),
    hint="V · D before; V · E and two matrices of E · D after.",
    unit="parameters",
    wrong={
        lambda: 151936 * (1024 - 64): "The two matrices that widen and narrow are missing.",
        lambda: 151936 * (1024 - 64) - 64 * 1024: "One matrix widens, another one narrows.",
        lambda: 2 * 151936 * (1024 - 64) - 2 * 64 * 1024: "The table is tied: there is one.",
    },
)

exercise(
    "ex-accumulation-3",
    answer=lambda: 4 * 10 * _count("llama-3-8b"),
    hint="Two bytes of weight and twice four of states, for each parameter and checkpoint.",
    wrong={
        lambda: 3 * 10 * _count("llama-3-8b"): "While the newest is written, the oldest is there.",
        lambda: 4 * 2 * _count("llama-3-8b"): "Those are the weights alone.",
        lambda: 4 * 12 * _count("llama-3-8b"): "Gradients are not saved.",
    },
)

exercise(
    "ex-accumulation-4",
    answer=_pays,
    hint="Compare simulate(…, Run(batch=2, …)) with simulate(…, Run(batch=1, micro_batches=2, …)) "
    "for 256, 512 and so on.",
    unit="tokens",
    wrong={
        lambda: 2 * _pays(): "Tokens in each of the two sequences, not in both.",
        lambda: 1024: "At 1,024 tokens the two still need more room one by one.",
    },
)
