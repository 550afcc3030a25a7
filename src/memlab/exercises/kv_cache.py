"""Exercises of KV cache."""

from ..model import Model
from ..terms.kv_cache import growth, kv_cache, pages
from . import exercise


def _cache(name: str, tokens: int, **changes: int) -> int:
    m = Model.preset(name)
    shape = {"layers": m.layers, "kv_heads": m.kv_heads, "head_dim": m.head_dim} | changes
    return kv_cache(**shape, batch=1, tokens=tokens, format="bf16")


def _forked(prompt: int = 1000, more: int = 24, conversations: int = 10) -> int:
    """Pages of a prompt, and of conversations that share its full ones."""
    own = pages(prompt + more) - prompt // 16
    return pages(prompt) + conversations * own


exercise(
    "ex-kv-cache-1",
    answer=_forked,
    unit="pages",
    hint="1,000 tokens are 62 full pages and half of another. Which pages does a fork own?",
    wrong={
        lambda: pages(1000) + 10 * pages(1024): "Full pages of the prompt are stored only once.",
        lambda: 10 * pages(1024): "That is without sharing, and without the prompt's own pages.",
        lambda: pages(1000) + 10: "8 tokens are copied and 24 follow: that is more than a page.",
        lambda: 62 + 20: "The prompt keeps its own partial page, too.",
    },
)

exercise(
    "ex-kv-cache-2",
    answer=lambda: _cache("llama-3-8b", 8191) + _cache("llama-3-8b", 8192),
    hint="While torch.cat runs, its input and its result are both in memory. How large is each?",
    wrong={
        lambda: 2 * _cache("llama-3-8b", 8192): "The old copy is one token shorter than the new.",
        lambda: _cache("llama-3-8b", 8192) + growth(8, head_dim=128, batch=1, tokens=8192): (
            "So it is with a tensor for each layer; here all layers are in one."
        ),
        lambda: _cache("llama-3-8b", 8192): "That is the new copy alone.",
    },
)

exercise(
    "ex-kv-cache-3",
    answer=lambda: 8 * 16 - 40 - 23,
    unit="tokens",
    hint="Count the white places: in the free pages, and at the end of each last page.",
    wrong={
        lambda: 3 * 16: "Those are the free pages; each last page has room, too.",
        lambda: (-40) % 16 + (-23) % 16: "Those are the last pages; three more pages are free.",
        lambda: 8 * 16: "That is the whole pool; 63 places are used.",
        lambda: 40 + 23: "Those are the tokens that are there already.",
    },
)

exercise(
    "ex-kv-cache-4",
    answer=lambda: _cache("qwen3-4b", 40960),
    hint="Keys and values, 36 layers, 8 heads of width 128, two bytes, 40,960 tokens.",
    wrong={
        lambda: _cache("qwen3-4b", 40960, head_dim=80): "The head width is the model's own, 128.",
        lambda: _cache("qwen3-4b", 40960) // 2: "Keys and values: the factor 2 is missing.",
        lambda: _cache("qwen3-4b", 40960, kv_heads=32): (
            "There are 32 query heads, but only 8 heads of keys and values are stored."
        ),
        lambda: _cache("qwen3-4b", 1): "That is one token.",
    },
)
