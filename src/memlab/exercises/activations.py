"""Exercises of activations."""

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


def _fused(tensors: int = 3) -> int:
    """Bytes that a feed-forward network of the small model saves for 256 tokens in fp32."""
    tiny = Model.preset("tiny-llama")
    return 4 * 256 * (tiny.d_model + tensors * tiny.d_ff)


exercise(
    "ex-activations-1",
    answer=_fused,
    hint="One input of width D for gate and up, and the tensors of width F that are left.",
    wrong={
        lambda: _fused(4): "That is the product as PyTorch writes it: silu's result is saved too.",
        lambda: _fused(2): "The input of `down` is saved as well: it is the product.",
        lambda: _fused() // 2: "The network is in fp32: four bytes for each value.",
    },
)

exercise(
    "ex-activations-2",
    answer=lambda: 2 * _linear_weights(),
    hint="Add up both formulas, times 32 layers, times two bytes.",
    wrong={
        lambda: _linear_weights(): "Those are parameters; the copies take two bytes each.",
        lambda: 2 * _llama().parameter_count: "Embedding, head and norms are not in the layers.",
    },
)

exercise(
    "ex-activations-3",
    answer=lambda: 2 * TOKENS * _llama().d_model * 4,
    hint="Two tensors [B, T, D] of four bytes a value, with B = 1.",
    wrong={
        lambda: (
            TOKENS * _llama().d_model * 4
        ): "That is one of the two norms, or both at two bytes a value: they are in fp32.",
        lambda: 2 * TOKENS * _llama().d_model * 6: "That is all of both bars; the lighter part of "
        "each is in bf16.",
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
        lambda: _tokens(
            implementation="memlab"
        ): "That is another implementation: the fused norm of this book's model saves less.",
        lambda: _tokens(24 * 2**30 - 2 * _llama().parameter_count): "The 24 GiB are for the "
        "activations alone.",
    },
)
