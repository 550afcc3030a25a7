"""Exercises of ranks that see other data."""

from ..estimate import estimate
from ..formats import storage
from ..model import Model
from ..run import Run
from ..sharding import Sharding
from ..terms.sharding import gathered, row_shard
from . import exercise


def _count(name: str) -> int:
    return Model.preset(name).parameter_count


def _gathered(part: str = "", layers: int | None = None, ranks: int = 6) -> int:
    """Bytes of TinyLlama's gathered fp32 weights, of those whose names begin with `part`."""
    model = Model.preset("tiny-llama")
    model = model if layers is None else model.replace(layers=layers)
    found = [t for t in model.tensors() if t.name.startswith(part)]
    return storage(sum(t.copies * gathered(t.shape, ranks=ranks) for t in found), "fp32")


def _stage(zero: int) -> int:
    devices = Sharding(data=8, zero=zero)
    return estimate(Model.preset("llama-3-8b"), "zero", Run(devices=devices)).total()


def _rows(ranks: int = 8) -> int:
    rows, columns = row_shard((50257, 768), ranks=ranks)
    return storage(rows * columns, "fp32")


exercise(
    "ex-sharding-1",
    answer=_gathered,
    hint="After the forward pass no layer has been freed: all of them, and the root, are whole.",
    wrong={
        lambda: storage(_count("tiny-llama"), "fp32"): "Gathered weights include their padding.",
        lambda: _gathered(layers=1): "That is the root and one layer, as before the change.",
        lambda: _gathered("layers."): "The root is gathered as well.",
        lambda: _gathered() // 6: "Those are the shards of one rank.",
    },
)

exercise(
    "ex-sharding-2",
    answer=lambda: storage(_count("qwen3-4b"), "bf16"),
    hint="DDP has buckets: one more copy of something, in its format.",
    wrong={
        lambda: storage(_count("qwen3-4b"), "fp32"): "Buckets have the format of the gradients.",
        lambda: 8 * _count("qwen3-4b"): "That is the plan. What does DDP add to it?",
        lambda: 25 * 2**20: "A bucket has 25 MiB; all buckets together hold every gradient.",
    },
)

exercise(
    "ex-sharding-3",
    answer=lambda: _stage(1) - _stage(2),
    hint="Stage 2 shards one more copy, the gradients in bf16. How much of it leaves the rank?",
    wrong={
        lambda: storage(_count("llama-3-8b"), "bf16"): "An eighth of the gradients stays.",
        lambda: storage(_count("llama-3-8b") // 8, "bf16"): "That is the eighth that stays.",
        lambda: _stage(0) - _stage(1): "That is from stage 0 to stage 1.",
    },
)

exercise(
    "ex-sharding-4",
    answer=_rows,
    hint="Whole rows, rounded up: so many on every rank.",
    wrong={
        lambda: storage(50257 * 768 // 8, "fp32"): "An eighth of the rows is not a whole number.",
        lambda: storage(50257 // 8 * 768, "fp32"): "Round up: else one row has no place.",
        lambda: storage(
            gathered((50257, 768), ranks=8), "fp32"
        ): "That is all eight ranks together.",
    },
)
