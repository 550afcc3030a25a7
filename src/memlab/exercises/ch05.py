"""Exercises of chapter 05, activations."""

from ..model import Model
from ..run import Run
from ..step import simulate
from . import exercise

TOKENS = 8192


def _llama() -> Model:
    return Model.preset("llama-3-8b")


def _linear_weights() -> int:
    parts = _llama().parameters()
    return parts["attention"] + parts["feed_forward"]


exercise(
    "ex-activations-1",
    answer=lambda: 4 * TOKENS * _llama().d_ff * 2,
    hint="Four tensors [B, T, F] of two bytes a value, with B = 1.",
    wrong={
        lambda: TOKENS * _llama().d_ff * 2: "That is one of the four.",
        lambda: 4 * TOKENS * _llama().d_ff: "Those are values; each takes two bytes.",
    },
)

exercise(
    "ex-activations-2",
    answer=lambda: 6 * _llama().heads * TOKENS**2,
    hint="Two tensors [N, T, T]: four bytes a value in fp32, two in bf16.",
    wrong={
        lambda: 6 * TOKENS**2: "That is one head; there are N of them.",
        lambda: 4 * _llama().heads * TOKENS**2: "The bf16 copy is missing.",
    },
)

exercise(
    "ex-activations-3",
    answer=lambda: 2 * _linear_weights(),
    hint="Add up both formulas, times 32 layers, times two bytes.",
    wrong={
        lambda: _linear_weights(): "Those are parameters; the copies take two bytes each.",
        lambda: 2 * _llama().parameter_count: "Embedding, head and norms are not in the layers.",
    },
)


def _tokens(room: int = 24 * 2**30, layers: int = 32, implementation: str = "transformers") -> int:
    run = Run(batch=1, tokens=TOKENS, implementation=implementation)
    step = simulate(_llama(), "bf16", run)
    return room * TOKENS // (layers * step.saved.bytes)


exercise(
    "ex-activations-4",
    answer=_tokens,
    hint="Put the letters into the formula with T = 1, times 32 layers, and divide.",
    unit="tokens",
    wrong={
        lambda: _tokens(layers=1): "That is one layer; there are 32.",
        lambda: _tokens(24 * 10**9): "24 GiB are more than 24 GB: memory is in powers of two.",
        lambda: _tokens(implementation="memlab"): "That is another program: the fused norm of this "
        "book's model saves less.",
        lambda: _tokens(24 * 2**30 - 2 * _llama().parameter_count): "The 24 GiB are for the "
        "activations alone.",
    },
)
