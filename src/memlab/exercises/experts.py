"""Exercises of the experts of a mixture."""

from ..formats import storage
from ..model import Model
from ..terms.experts import expert, permuted
from . import exercise

_QWEN = Model.preset("qwen3-30b-a3b")
_MIXTRAL = Model.preset("mixtral-8x7b")
_MISTRAL = Model.preset("mistral-7b-v0.1")
_TOKENS = 4096
_ROWS = _TOKENS * _QWEN.experts_per_token


def _idle(per_token: int) -> int:
    """Bytes of the experts that one token is not sent to, in all layers."""
    one = expert(_QWEN.d_model, expert_ff=_QWEN.expert_ff)
    return storage(_QWEN.layers * (_QWEN.experts - per_token) * one, "bf16")


def _padded(factor: float) -> int:
    """Bytes of one layer's copies, where each expert has room for `factor` times its share."""
    room = -(-int(factor * _ROWS) // _QWEN.experts)
    return storage(_QWEN.experts * room * _QWEN.d_model, "bf16")


def _copies() -> int:
    return permuted(_TOKENS, d_model=_QWEN.d_model, experts_per_token=_QWEN.experts_per_token)


exercise(
    "ex-experts-1",
    answer=lambda: 8 * _MISTRAL.parameter_count - _MIXTRAL.parameter_count,
    hint="Eight times mistral-7b-v0.1, less mixtral-8x7b: the attribute parameter_count of each.",
    unit="parameters",
    wrong={
        lambda: 7 * _MISTRAL.parameter_count - _MIXTRAL.parameter_count: "There are eight experts.",
        lambda: (
            8 * _MISTRAL.parameter_count - _MIXTRAL.active_parameter_count
        ): "You took Mixtral's active parameters. In memory are all of them.",
    },
)

exercise(
    "ex-experts-2",
    answer=lambda: 0,
    hint="Which experts will the next token choose? Those must be in memory when it comes.",
    wrong={
        lambda: _idle(4) - _idle(8): "Those experts are idle for one token, not for the next.",
        lambda: _idle(4): "All of those are idle for one token, and the next may choose them.",
    },
)

exercise(
    "ex-experts-3",
    answer=lambda: storage(_ROWS * (_QWEN.d_model - _QWEN.expert_ff), "bf16"),
    hint="What was saved as [k·R, D] for the weights' gradient is now saved as [k·R, M].",
    wrong={
        lambda: storage(_ROWS * _QWEN.d_model, "bf16"): (
            "The results are no longer saved, but the rows before `down` now are, a second time."
        ),
        lambda: storage(_TOKENS * (_QWEN.d_model - _QWEN.expert_ff), "bf16"): (
            "Every token stands there k times."
        ),
    },
)

exercise(
    "ex-experts-4",
    answer=lambda: _padded(1.25),
    hint="Rows of one expert: 1.25 · k · R / X. Then all X experts, D values of two bytes a row.",
    wrong={
        _copies: "Those are the copies of a grouped product: k · R rows, and nothing is padded.",
        lambda: _padded(1.25) // 2: "A value in bf16 takes two bytes.",
    },
)
