"""Exercises of ranks that see other data."""

from ..formats import storage
from ..model import Model
from ..terms.sharding import gathered, row_shard, whole_tensors
from . import exercise


def _count(name: str) -> int:
    return Model.preset(name).parameter_count


def _rows(ranks: int = 8) -> int:
    rows, columns = row_shard((50257, 768), ranks=ranks)
    return storage(rows * columns, "fp32")


def _fullest(states: int = 2) -> int:
    tensors = Model.preset("qwen3-4b").tensors()
    counts = [tensor.numel for tensor in tensors for _ in range(tensor.copies)]
    return states * storage(max(whole_tensors(counts, ranks=64)), "fp32")


exercise(
    "ex-sharding-1",
    answer=lambda: storage(_count("llama-3-8b") // 8, "bf16"),
    hint="Stage 2 divides the gradients; two bytes each.",
    wrong={
        lambda: storage(_count("llama-3-8b"), "bf16"): "Stage 2 divides them among the ranks.",
        lambda: storage(_count("llama-3-8b") // 8, "fp32"): "The gradients are in bf16.",
    },
)

exercise(
    "ex-sharding-2",
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

exercise(
    "ex-sharding-3",
    answer=_fullest,
    hint="The largest tensor cannot be cut. Does its rank get anything else?",
    wrong={
        lambda: 8 * _count("qwen3-4b") // 64: "Tensors are dealt out whole, not cut.",
        lambda: _fullest(1): "AdamW keeps two states for each value.",
    },
)

exercise(
    "ex-sharding-4",
    answer=lambda: storage(_count("qwen3-4b"), "bf16"),
    hint="DDP has buckets: one more copy of something, in its format.",
    wrong={
        lambda: storage(_count("qwen3-4b"), "fp32"): "Buckets have the format of the gradients.",
    },
)
