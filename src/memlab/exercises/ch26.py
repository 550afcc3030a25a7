"""Exercises of chapter 26, a small model in little memory."""

from ..estimate import estimate
from ..model import Model
from ..recipe import Recipe
from ..terms.kv_cache import kv_cache
from . import exercise


def _weights(model: str, format: str = "int4/128:fp16", rest: str = "fp16") -> int:
    recipe = Recipe(weights=format, other=rest, head=rest, gradients=None)
    return estimate(Model.preset(model), recipe)["weights"].derived or 0


def _cache(heads: int | None = None, format: str = "fp16") -> int:
    m = Model.preset("tinyllama-1.1b")
    return kv_cache(
        m.layers,
        kv_heads=heads or m.kv_heads,
        head_dim=m.head_dim,
        batch=1,
        tokens=2048,
        format=format,
    )


def _sequences(room: int = 4 * 10**9, weights: int | None = None) -> int:
    return (room - (_weights("tinyllama-1.1b") if weights is None else weights)) // _cache()


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
    answer=_cache,
    hint="Keys and values: 2 · L · T · K · H values of two bytes.",
    wrong={
        lambda: _cache(32): "Four heads keep keys and values, not all 32.",
        lambda: _cache() // 2: "Keys and values, both.",
        lambda: _cache(format="fp32"): "The cache is in fp16.",
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
    answer=_sequences,
    hint="What the weights leave, divided by one cache of 2,048 tokens, rounded down.",
    unit="sequences",
    wrong={
        lambda: _sequences(4 * 2**30): "4 GB are 4,000,000,000 bytes.",
        lambda: _sequences(weights=0): "The weights need room as well.",
        lambda: _sequences(weights=_weights("tinyllama-1.1b", "fp16")): "The layers are in int4.",
    },
)
