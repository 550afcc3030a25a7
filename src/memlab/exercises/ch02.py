"""Exercises of chapter 02, weights."""

from ..model import Model
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
