"""Exercises of mixed precision."""

from ..formats import storage
from ..model import Model
from ..recipe import Recipe
from ..run import Run
from . import exercise


def _each(name: str) -> int:
    return int(sum(Recipe.named(name).bytes_per_parameter().values()))


def _copies() -> int:
    """Bytes of bf16 copies of TinyLlama's linear weights."""
    return storage(sum(t.count for t in Model.preset("tiny-llama").tensors() if t.linear), "bf16")


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
    answer=_copies,
    hint="Two bytes for each value of a weight that a linear layer multiplies with.",
    wrong={
        lambda: 2 * _copies(): "The copies are in bf16, two bytes a value.",
        lambda: 2 * Model.preset("tiny-llama").parameter_count: "The embedding table and the norms "
        "are not multiplied by a linear layer, so autocast does not copy them.",
    },
)

exercise(
    "ex-mixed-precision-2",
    answer=lambda: _each("zero") - 2 * 2,
    hint="2 + 4 + 2 + 8 before; only the two states change.",
    unit="bytes per parameter",
    wrong={
        lambda: _each("bf16"): "That is without the master copy, which you keep.",
        lambda: _each("zero"): "That is what there was before.",
        lambda: _each("zero") - 2: "There are two states.",
    },
)

exercise(
    "ex-mixed-precision-3",
    answer=lambda: 2048,
    hint="Compare the two columns of the peak first, then what is kept in the rows where they "
    "are equal.",
    unit="tokens",
    wrong={
        lambda: 256: "There the peak stays, and autocast keeps more than fp32.",
        lambda: 1024: "There the peak stays, and autocast keeps more than fp32.",
        lambda: 4096: "There autocast keeps less, and the peak falls.",
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
