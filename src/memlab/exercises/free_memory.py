"""Exercises of a field note on batches, tables and free memory."""

from ..fit import largest_batch
from ..formats import storage
from ..model import Model
from ..run import Run
from ..terms.context import CONTEXT
from . import exercise

_ROWS = 8192 * 128
_V = 200_005
_v, _d, _e = 8192, 128, 32  # the small model of the page
_SAVED = 4 * (64 * 8) * _e  # what its projection saves for backward


def _qwen(spare: int = CONTEXT, loss: str = "plain", checkpoint: str = "none") -> int:
    run = Run(tokens=128, implementation="memlab", checkpoint=checkpoint)
    if loss == "chunked":
        run = run.replace(loss="chunked", loss_chunks=64)
    qwen = Model.preset("qwen3-0.6b")
    return largest_batch(qwen, "bf16", run, on="RTX 4090", spare=spare).value


def _better(spare: int = CONTEXT) -> int:
    return max(_qwen(spare, loss="chunked"), _qwen(spare, checkpoint="block"))


def _worse() -> int:
    return min(_qwen(loss="chunked"), _qwen(checkpoint="block"))


def _narrow_pair() -> int:
    """Parameters of a narrow table and its projection."""
    return _v * _e + _e * _d


exercise(
    "ex-free-memory-1",
    answer=lambda: storage(_ROWS * _V, "bf16"),
    hint="One number for each token and each entry of the vocabulary, two bytes each.",
    wrong={
        lambda: storage(8192 * _V, "bf16"): "Each of the 128 tokens of a sequence has its logits.",
        lambda: storage(_ROWS * _V, "fp32"): "That is the fp32 copy, which is made from this one.",
        lambda: storage(_ROWS * 128, "bf16"): "That is what the head reads. It writes V for each.",
        lambda: storage(_ROWS * 80_000, "bf16"): "t80k is not the size of the vocabulary.",
    },
)

exercise(
    "ex-free-memory-2",
    answer=lambda: 10**9 // 8 * 7,
    hint="Of the 8 tokens of a sequence, how many have a next token to be compared with?",
    unit="targets",
    wrong={
        lambda: 10**9: "Those are the tokens. The last one of each sequence has no target.",
        lambda: 10**9 // 8: "Those are the tokens without a target.",
    },
)

exercise(
    "ex-free-memory-3",
    # Two tensors more, each with a step counter of 4 bytes.
    answer=lambda: 12 * _narrow_pair() + 2 * 4 + _SAVED,
    hint="OwnHead has the narrow table and its projection in addition to a matrix of the same size "
    "as Tied's. At the peak a parameter takes its weight and two states, and the projection has "
    "saved its input.",
    wrong={
        lambda: 12 * _narrow_pair() + 2 * 4: "The projection also saves its input, R x E in fp32.",
        lambda: 4 * _narrow_pair(): "Those are the weights. Adam's two states belong to them.",
        lambda: 12 * _v * _d: "Tied has one matrix of that size, and so has OwnHead.",
        lambda: 12 * (_v * _d - _narrow_pair()): "That is how much the head of OwnHead is larger "
        "than the narrow pair. Compare with Tied, which has no narrow pair.",
    },
)

exercise(
    "ex-free-memory-4",
    answer=_better,
    hint="largest_batch(qwen, 'bf16', plain.replace(tokens=128, …), on=card, spare=spare), "
    "with loss='chunked', loss_chunks=64, and with checkpoint='block'.",
    unit="sequences",
    wrong={
        _worse: "That is the other of the two.",
        _qwen: "That is with neither.",
        lambda: _qwen(loss="chunked", checkpoint="block"): "That is with both; you may have one.",
        lambda: _better(0): "Leave room for the CUDA context.",
    },
)
