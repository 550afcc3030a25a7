"""Exercises of chapter 27, a field note on batches, tables and free memory."""

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


def _states() -> int:
    from ..cases.planner import SMALL_WIDE

    return storage(2 * SMALL_WIDE.parameter_count, "fp32")


def _qwen(spare: int = GiB, backend: str = "cuda") -> int:
    qwen, run = (
        Model.preset("qwen3-0.6b"),
        Run(tokens=128, implementation="memlab", backend=backend),
    )
    return largest_batch(qwen, "bf16", run, on="RTX 4090", spare=spare).value


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
    answer=_states,
    hint="Two numbers for each parameter, four bytes each.",
    wrong={
        lambda: _states() * 10 // 8: "That is the note's ten bytes; two of them are the weight.",
        lambda: _states() // 2: "AdamW keeps two states for each parameter.",
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
    answer=_qwen,
    hint="largest_batch(Model.preset('qwen3-0.6b'), 'bf16', Run(tokens=128, "
    "implementation='memlab'), on='RTX 4090', spare=spare).",
    unit="sequences",
    wrong={
        lambda: _qwen(backend="cpu"): "With the kernels of a CPU. A Run asks for CUDA's.",
        lambda: _qwen(spare=0): "Leave the usual 1 GiB for the context.",
    },
)
