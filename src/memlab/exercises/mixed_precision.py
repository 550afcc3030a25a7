"""Exercises of mixed precision."""

from ..formats import storage
from ..model import Model
from ..recipe import Recipe
from ..run import Run
from . import exercise


def _each(name: str) -> int:
    return int(sum(Recipe.named(name).bytes_per_parameter().values()))


def _waits(recipe: str, tokens: int, part: str = "") -> int:
    from ..step.simulate import simulate  # only who asks for this answer needs it

    rows = simulate(Model.preset("qwen3-0.6b"), recipe, Run(tokens=tokens)).rows
    return rows[part] if part else rows["activations"] + rows["logits"]


def _even(part: str = "") -> int:
    tokens = 64
    while _waits("autocast", tokens, part) >= _waits("fp32", tokens, part):
        tokens += 64
    return tokens


exercise(
    "ex-mixed-precision-1",
    answer=lambda: storage(4096 * 4096, "bf16"),
    hint="One value for each weight, in the format that autocast casts to.",
    wrong={
        lambda: storage(4096 * 4096, "fp32"): "That is the weight itself. Its copy is narrow.",
        lambda: storage(4096, "bf16"): "The whole matrix is copied, not one row.",
    },
)

exercise(
    "ex-mixed-precision-2",
    answer=lambda: _each("zero") - _each("bf16"),
    hint="2 + 4 + 2 + 8 before; 2 + 2 + 4 after.",
    unit="bytes per parameter",
    wrong={
        lambda: 4: "The master copy goes, and the two states become narrow as well.",
        lambda: _each("zero"): "That is what there was before.",
    },
)

exercise(
    "ex-mixed-precision-3",
    answer=lambda: 1000,
    hint="By chance the mean is exact. To the nearest, an eighth of a step is always dropped.",
    unit="units",
    wrong={
        lambda: 0: "That is the difference if chance lost the updates as well.",
        lambda: 125: "In units of the update, not of the neighbours' distance.",
    },
)

exercise(
    "ex-mixed-precision-4",
    answer=_even,
    hint="Compare rows['activations'] + rows['logits'] of both recipes for 64, 128 and so on.",
    unit="tokens",
    wrong={
        lambda: _even("activations"): "The logits wait as well, and the head's copy with them.",
        lambda: _even() - 64: "There autocast still keeps a little more.",
    },
)
