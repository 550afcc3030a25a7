"""Exercises of ranks that divide the model."""

from ..model import Model
from ..run import Run
from ..step import simulate
from ..terms.experts import arriving
from ..terms.sharded_step import in_flight
from . import exercise

_LLAMA = Model.preset("llama-3-8b")
_QWEN = Model.preset("qwen3-30b-a3b")


def _layer(tokens: int) -> int:
    """What one layer of Llama-3-8B stores for one sequence."""
    one, two = (
        simulate(_LLAMA.replace(layers=layers), "bf16", Run(tokens=tokens)).rows["activations"]
        for layers in (1, 2)
    )
    return two - one


def _gpt2(ranks: int = 2, inputs: int = 1, inside: int = 2) -> int:
    """Feed-forward of GPT-2, 1,024 tokens in fp32: its input, and tensors of the inner width."""
    return 4 * 1024 * (768 // inputs + inside * 3072 // ranks)


def _more(flight: int, layers: int = 4) -> int:
    return flight * layers * _layer(4096)


def _logged(flight: int, layers: int = 4) -> int:
    return flight * layers * _layer(8192)


def _buffer(even: bool = False) -> int:
    rows = arriving(4096, experts=128, experts_per_token=8, ranks=8, even=even)
    return rows * _QWEN.d_model * 2


exercise(
    "ex-divide-model-1",
    answer=_gpt2,
    hint="A rank stores its input whole, and its half of the input and of the output of gelu.",
    wrong={
        lambda: _gpt2(ranks=1): "That is what one GPU stores. Which tensors does a rank halve?",
        lambda: _gpt2(inputs=2): "The input is whole on every rank: a column cut reads all of it.",
        lambda: _gpt2(inside=1): "gelu's backward pass needs its input, and proj its output.",
        lambda: _gpt2(inside=3): "GPT-2 has no gate, and a bias needs no tensor for its gradient.",
    },
)

exercise(
    "ex-divide-model-2",
    answer=lambda: _more(16 - in_flight(16, stages=8, stage=7)),
    hint="1F1B has one micro-batch of the last stage in flight, GPipe all of them.",
    wrong={
        lambda: _more(16): "That is all of it under GPipe. How much more than under 1F1B?",
        lambda: _more(8): "That is the difference on the first stage, which has 8 under 1F1B.",
        lambda: _more(7): "GPipe has all 16 micro-batches in flight, not 8.",
        lambda: _more(15, layers=1): "That is one layer. The stage has 4.",
    },
)

exercise(
    "ex-divide-model-3",
    answer=lambda: _logged(in_flight(8, stages=8, stage=3)),
    hint="Count the forward passes before the first backward pass; stage s of 8 has 8 - s of them.",
    wrong={
        lambda: _logged(8): "That is the first stage, or GPipe. This rank frees one before F5.",
        lambda: _logged(4): "After F4 five micro-batches are in flight: F0 to F4.",
        lambda: _logged(6): "B0 has freed micro-batch 0 before F5 begins.",
        lambda: _logged(5, layers=1): "That is one layer. The stage has 4.",
    },
)

exercise(
    "ex-divide-model-4",
    answer=_buffer,
    hint="All tokens of all 8 ranks may choose 8 of the 16 experts of one rank.",
    wrong={
        lambda: _buffer(even=True): "That is even routing: what the program has already.",
        lambda: 8 * 4096 * _QWEN.d_model * 2 * 16: "A token has 8 experts, not 16.",
        lambda: 8 * 4096 * _QWEN.d_model: "A bf16 value has two bytes, and each token 8 rows.",
    },
)
