"""Exercises of a small model in little memory."""

from ..estimate import estimate
from ..formats import storage
from ..model import Model
from ..recipe import Recipe
from . import exercise


def _weights(model: str, format: str = "int4/128:fp16", rest: str = "fp16") -> int:
    recipe = Recipe(weights=format, other=rest, head=rest, gradients=None)
    return estimate(Model.preset(model), recipe)["weights"].derived or 0


UP = storage(22 * 5632 * 2048, "fp32")
ONE = 5632 * 2048  # values of one matrix `up`
GROUPS = ONE // 128
LAYER, HEAD, NORM = (storage(n, "bf16") for n in (44_044_288, 32_000 * 2048, 2048))


exercise(
    "ex-small-model-1",
    answer=lambda: ONE // 2 + GROUPS * (2 + 1),
    hint="Half a byte a value, and for each 128 values a scale of two bytes and a zero point.",
    wrong={
        lambda: ONE // 2: "Those are the codes. Each group has a scale and a zero point as well.",
        lambda: ONE // 2 + 2 * GROUPS: "That is `Codes` without a zero point.",
        lambda: ONE + GROUPS * 3: "Two codes of 4 bits share a byte.",
        lambda: ONE // 2 + GROUPS * (4 + 1): "The scales are bf16, two bytes each.",
    },
)

exercise(
    "ex-small-model-2",
    answer=lambda: 2 * UP,
    hint="What does PyTorch keep for a pruned weight: the weight, a mask, and what else?",
    wrong={
        lambda: UP // 2: "That would be half of them. A zero takes as many bytes as any number.",
        lambda: UP: "A mask, yes; and beside it the product of mask and weight.",
        lambda: 3 * UP: "Those are all three tensors; one of them was there before.",
        lambda: 0: "That is so after `prune.remove`; until then a mask and a product are kept.",
    },
)

exercise(
    "ex-small-model-3",
    answer=lambda: _weights("qwen3-4b"),
    hint="A value of a layer takes 4/8 + 2/128 bytes; the embedding, which is the head too, two.",
    wrong={
        lambda: _weights("qwen3-4b", rest="fp32"): "What is not quantized is in fp16 here.",
        lambda: _weights("qwen3-4b", "int8/128:fp16"): "Codes of 4 bits, not 8.",
        lambda: Model.preset("qwen3-4b").parameter_count // 2: "Scales, and a wide embedding.",
    },
)

exercise(
    "ex-small-model-4",
    answer=lambda: 9 * LAYER + NORM + HEAD,
    hint="Nine layers, 13 to 21, the last norm and the head, two bytes a value.",
    wrong={
        lambda: 9 * LAYER: "Those are the layers. The plan ends with the head.",
        lambda: 9 * LAYER + HEAD: "The last norm is read as well.",
        lambda: 8 * LAYER + NORM + HEAD: "From 13 to 21 there are nine layers.",
        lambda: 13 * LAYER + NORM + HEAD: "The four layers on the CPU are not read from the disk.",
        lambda: 12 * LAYER: "Twelve modules, but the last three of them are no layers.",
    },
)
