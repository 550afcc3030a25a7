"""Exercises of weights."""

from ..estimate import by_component
from ..model import Model
from ..recipe import Recipe
from . import exercise


def _llama() -> Model:
    return Model.preset("llama-3-8b")


_biases = 32 * (32 * 128 + 2 * 8 * 128)

exercise(
    "ex-weights-1",
    answer=lambda: _llama().parameter_count + _biases,
    hint="q has N · H outputs, k and v have K · H each; once in each of the 32 layers.",
    unit="parameters",
    wrong={
        lambda: _biases: "Those are the biases alone.",
        lambda: _llama().parameter_count: "That is Llama-3-8B as it is, without biases.",
        lambda: _llama().parameter_count + 32 * 3 * 4096: "k and v have fewer outputs than q.",
        lambda: _llama().parameter_count + _biases // 32: "There are 32 layers.",
    },
)

exercise(
    "ex-weights-2",
    answer=lambda: 2 * _llama().vocab * _llama().d_model,
    hint="The head is one more matrix [V, D]; tied, it does not exist.",
    wrong={lambda: _llama().vocab * _llama().d_model: "Those are parameters, not bytes."},
)

_qkv = (32 + 8 + 8) * 128 * 4096

exercise(
    "ex-weights-3",
    answer=lambda: _qkv,
    hint="[N·H, D] and twice [K·H, D].",
    unit="parameters",
    wrong={
        lambda: 3 * 32 * 128 * 4096: "k and v have K heads, fewer than q; and if these are bytes "
        "in bf16: parameters are asked for.",
        lambda: 32 * _qkv: "That is all layers; the question is about one.",
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
