"""Exercises of accumulation."""

from ..model import Model
from ..run import Run
from . import exercise


def _count(name: str) -> int:
    return Model.preset(name).parameter_count


def _peak(pieces: int, tokens: int) -> int:
    from ..step.simulate import simulate  # only who asks for this answer needs it

    batch = 2 // pieces
    run = Run(batch=batch, tokens=tokens, micro_batches=pieces, optimizer_impl="fused")
    return simulate(Model.preset("qwen3-4b"), "bf16", run).peak.bytes


def _kept_by_one() -> int:
    from ..step.simulate import simulate

    one = Run(batch=1, tokens=1024)
    return simulate(Model.preset("llama-3-8b"), "bf16", one).rows["activations"]


def _pays() -> int:
    tokens = 256
    while _peak(2, tokens) >= _peak(1, tokens):
        tokens += 256
    return tokens


exercise(
    "ex-accumulation-1",
    answer=_pays,
    hint="Compare simulate(…, Run(batch=2, …)) with simulate(…, Run(batch=1, micro_batches=2, …)) "
    "for 256, 512 and so on.",
    unit="tokens",
    wrong={
        lambda: 2 * _pays(): "Tokens in each of the two sequences, not in both.",
        lambda: _pays() - 256: "There the two together still need less.",
    },
)

exercise(
    "ex-accumulation-2",
    answer=lambda: 16 * _kept_by_one(),
    hint="No graph is freed before backward() has run: count the micro-batches whose graphs wait.",
    wrong={
        lambda: _kept_by_one(): "That is what the right loop holds: one micro-batch's.",
        lambda: 15 * _kept_by_one(): "The last micro-batch's graph is there as well.",
    },
)

exercise(
    "ex-accumulation-3",
    answer=lambda: 7,
    hint="A micro-batch is half as long as in the row of 8 pieces; halve what that row has.",
    unit="GiB",
    wrong={
        lambda: 15: "That is the row of 8 pieces, whose micro-batches are twice as long.",
        lambda: 22: "The gradients are neither activations nor logits.",
        lambda: 0: "The row of 16 pieces shows the peak with AdamW as it comes, in the optimizer.",
    },
)

exercise(
    "ex-accumulation-4",
    answer=lambda: 4 * _count("qwen3-4b") - 4 * _count("qwen3-4b") // 8,
    hint="Whole gradients in fp32, less the eighth that a rank holds either way.",
    wrong={
        lambda: 4 * _count("qwen3-4b"): "An eighth of them is there in either case.",
        lambda: 2 * _count("qwen3-4b") * 7 // 8: "They are reduced in fp32, and kept so.",
        lambda: 4 * 4 * _count("qwen3-4b") * 7 // 8: "Micro-batches add into the same gradient.",
    },
)
