"""Exercises of a field note on batches, tables and free memory."""

from ..fit import largest_batch
from ..formats import storage
from ..model import Model
from ..run import Run
from ..units import GiB
from . import exercise

_ROWS = 8192 * 8
_V = 200_005


def _plan(tokens: int, batch: int) -> tuple[int, int]:
    """Pieces, and the micro-batch, of a row of the note's table."""
    from ..cases.planner import SMALL_WIDE, plan  # only who asks for it needs it

    (stage,) = plan(SMALL_WIDE, [(tokens, batch)], on="RTX 4090")
    return stage.pieces, stage.batch


def _qwen(spare: int = GiB, loss: str = "plain", checkpoint: str = "none") -> int:
    run = Run(tokens=128, implementation="memlab", checkpoint=checkpoint)
    if loss == "chunked":
        run = run.replace(loss="chunked", loss_chunks=64)
    qwen = Model.preset("qwen3-0.6b")
    return largest_batch(qwen, "bf16", run, on="RTX 4090", spare=spare).value


def _better(spare: int = GiB) -> int:
    return max(_qwen(spare, loss="chunked"), _qwen(spare, checkpoint="block"))


def _worse() -> int:
    return min(_qwen(loss="chunked"), _qwen(checkpoint="block"))


exercise(
    "ex-free-memory-1",
    answer=lambda: storage(_ROWS * _V, "bf16"),
    hint="One number for each token and each word of the vocabulary, two bytes each.",
    wrong={
        lambda: storage(8192 * _V, "bf16"): "Each of the 8 tokens of a sequence has its logits.",
        lambda: storage(_ROWS * _V, "fp32"): "That is the fp32 copy, which is made from this one.",
        lambda: storage(_ROWS * 128, "bf16"): "That is what the head reads. It writes V for each.",
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
    answer=lambda: _plan(2048, 64)[0],
    hint="plan(SMALL_WIDE, [(2048, 64)], on='RTX 4090') says the largest micro-batch; round up.",
    unit="micro-batches",
    wrong={
        lambda: _plan(2048, 64)[1]: "That is the size of a micro-batch, not their number.",
        lambda: 64 // _plan(2048, 64)[1]: "Round up: the sequences left over need a piece too.",
        lambda: 2: "The note's two micro-batches have 32 sequences each. Do those fit?",
    },
)

exercise(
    "ex-free-memory-4",
    answer=_better,
    hint="largest_batch(qwen, 'bf16', plain.replace(tokens=128, …), on='RTX 4090', spare=spare), "
    "with loss='chunked', loss_chunks=64, and with checkpoint='block'.",
    unit="sequences",
    wrong={
        _worse: "That is the other of the two.",
        _qwen: "That is with neither.",
        lambda: _qwen(loss="chunked", checkpoint="block"): "That is with both; you may have one.",
        lambda: _better(0): "Leave the usual 1 GiB for the context.",
    },
)
