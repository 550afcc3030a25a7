"""Exercises of chapter 07, KV cache."""

from ..devices import device
from ..fit import limit_of
from ..model import Model
from ..terms.kv_cache import growth, kv_cache, page_waste
from . import exercise

LENGTHS = (1, 16, 17, 1000)


def _cache(name: str, tokens: int, **changes: int) -> int:
    m = Model.preset(name)
    shape = {"layers": m.layers, "kv_heads": m.kv_heads, "head_dim": m.head_dim} | changes
    return kv_cache(**shape, batch=1, tokens=tokens, format="bf16")


def _waste() -> int:
    m = Model.preset("qwen3-0.6b")
    return page_waste(m.layers, kv_heads=m.kv_heads, head_dim=m.head_dim, lengths=LENGTHS)


exercise(
    "ex-kv-cache-1",
    answer=lambda: _cache("qwen3-4b", 40960),
    hint="Keys and values, 36 layers, 8 heads of width 128, two bytes, 40,960 tokens.",
    wrong={
        lambda: _cache("qwen3-4b", 40960, head_dim=80): "The head width is the model's own, 128.",
        lambda: _cache("qwen3-4b", 40960) // 2: "Keys and values: the factor 2 is missing.",
        lambda: _cache("qwen3-4b", 40960, kv_heads=32): "32 heads ask; only 8 are kept.",
        lambda: _cache("qwen3-4b", 1): "That is one token.",
    },
)

exercise(
    "ex-kv-cache-2",
    answer=_waste,
    hint="Count the empty places in the last page of each: 15 + 0 + …, then bytes a token.",
    wrong={
        lambda: _waste() + _cache("qwen3-0.6b", 16): "A page that is just full has no empty place.",
        lambda: _cache("qwen3-0.6b", 64): "Those are four whole pages; only their ends are empty.",
        lambda: _waste() // 2: "Keys and values: the factor 2 is missing.",
    },
)

exercise(
    "ex-kv-cache-3",
    answer=lambda: _cache("llama-3-8b", 8191) + _cache("llama-3-8b", 8192),
    hint="While torch.cat runs, its input and its result are both alive. How large is each?",
    wrong={
        lambda: 2 * _cache("llama-3-8b", 8192): "The old copy is one token shorter than the new.",
        lambda: _cache("llama-3-8b", 8192) + growth(8, head_dim=128, batch=1, tokens=8192): (
            "So it is with a tensor for each layer; here all layers are in one."
        ),
        lambda: _cache("llama-3-8b", 8192): "That is the new copy alone.",
    },
)


def _fit(format: str = "int8/128:bf16", limit: int | None = None, weights: int = 2) -> int:
    m = Model.preset("qwen3-4b")
    one = kv_cache(
        m.layers, kv_heads=m.kv_heads, head_dim=m.head_dim, batch=1, tokens=16384, format=format
    )
    return ((limit or limit_of("RTX 4090")[0]) - weights * m.parameter_count) // one


exercise(
    "ex-kv-cache-4",
    answer=_fit,
    hint="`limit_of(card)`, minus two bytes a parameter, divided by the cache of 16,384 tokens.",
    unit="conversations",
    wrong={
        lambda: _fit("bf16"): "That is a cache in bf16; int8 takes about half.",
        lambda: _fit(limit=device("RTX 4090").limit): "The CUDA context is on the card, too.",
        lambda: _fit(weights=0): "The weights are on the card as well.",
    },
)
