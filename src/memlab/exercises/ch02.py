"""Exercises of chapter 02, weights."""

from ..estimate import by_component
from ..model import Model
from ..recipe import Recipe
from . import exercise


def _llama() -> Model:
    return Model.preset("llama-3-8b")


def _qwen() -> Model:
    return Model.preset("qwen3-0.6b")


exercise(
    "ex-weights-1",
    answer=lambda: 2 * _llama().parameter_count,
    hint="Model.preset('llama-3-8b').parameter_count, and two bytes for each.",
    wrong={
        lambda: _llama().parameter_count: "Those are parameters; a bf16 value takes two bytes.",
        lambda: 4 * _llama().parameter_count: "That is fp32; bf16 takes two bytes.",
    },
)

exercise(
    "ex-weights-2",
    answer=lambda: 2 * _llama().vocab * _llama().d_model,
    hint="The head is one more matrix [V, D]; tied, it does not exist.",
    wrong={lambda: _llama().vocab * _llama().d_model: "Those are parameters, not bytes."},
)

exercise(
    "ex-weights-3",
    answer=lambda: _qwen().parameter_count - _qwen().replace(head_dim=64).parameter_count,
    hint="Use qwen.replace(head_dim=64) and compare the two parameter_count.",
    unit="parameters",
    wrong={
        lambda: 28 * 2 * 1024 * 64 * 24: "Nearly: the norms on queries and keys have width H too.",
    },
)


def _quantized(weights: str, other: str = "bf16") -> int:
    recipe = Recipe(name="nf4", weights=weights, other=other)
    return by_component(Model.preset("qwen3-4b"), recipe).total()


exercise(
    "ex-weights-4",
    answer=lambda: _quantized("nf4"),
    hint="Attention and feed-forward take 4.5 bits, embedding and norms 16; there is no head.",
    wrong={
        lambda: _quantized("nf4", other="nf4"): "A quantizer of linear layers leaves the embedding "
        "and the norms in bf16.",
        lambda: _quantized("bf16"): "That is the model before it was quantized.",
        lambda: _quantized("nf4") + 2 * 151936 * 2560: "The head is tied: its table is there once.",
        lambda: _quantized("int4/128"): "nf4 has blocks of 64, each with an fp32 scale: 4.5 bits.",
    },
)
