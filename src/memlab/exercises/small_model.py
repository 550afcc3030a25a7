"""Exercises of a small model in little memory."""

from ..estimate import estimate
from ..formats import storage
from ..model import Model
from ..recipe import Recipe
from ..run import Run
from ..step import Lora, simulate
from . import exercise


def _weights(model: str, format: str = "int4/128:fp16", rest: str = "fp16") -> int:
    recipe = Recipe(weights=format, other=rest, head=rest, gradients=None)
    return estimate(Model.preset(model), recipe)["weights"].derived or 0


def _peak(pieces: int = 1, checkpoint: str = "none") -> int:
    """The peak of the QLoRA fine-tune of the chapter's notebook."""
    targets = ("q", "k", "v", "out", "gate", "up", "down")
    run = Run(batch=8 // pieces, tokens=512, micro_batches=pieces, checkpoint=checkpoint)
    run = run.replace(lora=Lora(16, targets, "nf4"))
    return simulate(Model.preset("tinyllama-1.1b"), "bf16", run).peak.bytes


UP = storage(22 * 5632 * 2048, "fp32")


exercise(
    "ex-small-model-1",
    answer=lambda: 500_000_000 * 16,
    hint="Four bytes each for a weight, its gradient and AdamW's two states.",
    wrong={
        lambda: 500_000_000 * 8: "AdamW keeps two states for every parameter.",
        lambda: 500_000_000 * 12: "That is the guide's triple: one state is missing.",
        lambda: 500_000_000 * 4: "Those are the weights alone.",
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
    answer=lambda: min(_peak(8), _peak(1, "block")),
    hint="Simulate both: `run.replace(batch=1, micro_batches=8)`, and `checkpoint='block'`.",
    wrong={
        lambda: max(_peak(8), _peak(1, "block")): "That is the higher of the two peaks.",
        _peak: "That is the fine-tune before either change.",
        lambda: _peak(8, "block"): "That is both at once: lower than either.",
    },
)
