"""Exercises of a serving engine's pool."""

from typing import Any

from ..engines import Engine, Pool, pool
from ..model import Model
from ..terms import engine_pool, kv_cache
from ..units import GiB
from . import exercise

_QWEN = Model.preset("qwen3-8b")
_LLAMA = Model.preset("llama-3.1-8b")
_MIXTURE = Model.preset("qwen3-30b-a3b")


def _blocks(memory: int, block: int = 16, sides: int = 2) -> int:
    page = kv_cache.kv_cache(1, kv_heads=8, head_dim=128, batch=1, tokens=block) * sides // 2
    return engine_pool.blocks(memory, page=page, layers=_QWEN.layers)


def _posted(longest: int) -> Pool:
    """The pool on the RTX 3090 of the thread, where the first step reads so many tokens."""
    told: dict[str, Any] = {"max_model_len": longest, "batched": longest, "seqs": 256}
    told["utilization"] = 0.9  # vLLM 0.6
    engine = Engine(**told, sampler="sort", non_torch=35 * GiB // 100)
    return pool(_LLAMA, engine, on=2358 * GiB // 100)


def _rank_tokens(ranks: int) -> int:
    """Tokens in 40 GiB of one rank."""
    heads = engine_pool.rank_heads(_MIXTURE.kv_heads, ranks=ranks)
    sizes: dict[str, Any] = {"kv_heads": heads, "head_dim": _MIXTURE.head_dim}
    return 40 * GiB // kv_cache.per_token(_MIXTURE.layers, **sizes)


def _with_the_bug() -> int:
    """Sequences where a block that is not full counts as shared, too."""
    return (2000 - 1 - 7) // (512 // 16 - 7)


def _right() -> int:
    return engine_pool.sequences(2000, tokens=512, prefix=100)


exercise(
    "ex-serving-1",
    answer=lambda: _blocks(40 * GiB),
    hint="A block is 16 tokens in every layer: 2 · L · K · H · b · 16 bytes, with L = 36.",
    unit="blocks",
    wrong={
        lambda: _blocks(40 * GiB, block=1): "Those are tokens. A block holds 16 of them.",
        lambda: _blocks(40 * GiB, sides=1): "A block holds keys and values: twice as many bytes.",
    },
)

exercise(
    "ex-serving-2",
    answer=lambda: _posted(29000).longest,
    hint="The log says how many blocks there are, and one request may have all of them.",
    unit="tokens",
    wrong={
        lambda: _posted(20000).slots: "That is the pool of the other start: 1,953 blocks.",
        lambda: _posted(29000).blocks: "Those are blocks. A block holds 16 tokens.",
    },
)

exercise(
    "ex-serving-3",
    answer=lambda: _rank_tokens(8) - _rank_tokens(4),
    hint="How many of the 4 key/value heads does one of 8 ranks keep? And one of 4 ranks?",
    unit="tokens",
    wrong={
        lambda: _rank_tokens(4): "That would be right if a head could be cut in half.",
    },
)

exercise(
    "ex-serving-4",
    answer=lambda: _with_the_bug() - _right(),
    hint="100 tokens fill 6 blocks of 16. The 7th also holds tokens that differ.",
    unit="sequences",
    wrong={
        _right: "That is the right count. How many too many does the program promise?",
        _with_the_bug: "That is what the program promises. How many of them are too many?",
    },
)
