"""What a serving engine lays out: its pool of blocks, and the step that draws a token."""

from functools import partial

import torch

from ..formats import storage
from ..lab.block_pool import BlockPool
from ..model import Model
from ..terms.engine_pool import sampler_peak, sequences
from ..terms.kv_cache import kv_cache
from .case import Case, Predicted
from .meter import Meter

LLAMA = Model.preset("tiny-llama")
BLOCKS, BLOCK, PROMPT, PREFIX = 40, 16, 64, 48
TOKENS, ROWS, WIDTH, VOCAB = 512, 96, 64, 8192


def admitted(meter: Meter) -> None:
    """A pool that is given prompts until it is full, all of them with one beginning."""
    with torch.device(meter.device):
        pool = BlockPool(LLAMA, BLOCKS, block=BLOCK, dtype=torch.bfloat16)
        keys = torch.ones(2 * LLAMA.layers, LLAMA.kv_heads, PROMPT, LLAMA.head_dim)
    count = 0
    while pool.admit([*range(PREFIX), *[PROMPT + count] * (PROMPT - PREFIX)], keys):
        count += 1
    expected = sequences(BLOCKS, tokens=PROMPT, prefix=PREFIX, block=BLOCK)
    assert count == expected, f"{count} sequences were admitted instead of {expected}"
    del keys
    meter.note("held")
    del pool


def pool_bytes() -> int:
    shape = {"kv_heads": LLAMA.kv_heads, "head_dim": LLAMA.head_dim}
    return kv_cache(LLAMA.layers, **shape, tokens=BLOCK, batch=BLOCKS, format="bf16")


def drawn(meter: Meter) -> None:
    """A token for each of the last rows, as vLLM's sampler draws it where nothing is sorted.

    Source      vLLM, sampler.py and topk_topp_sampler.py, random_sample
    """
    how = {"dtype": torch.bfloat16, "device": meter.device}
    head = torch.ones(VOCAB, WIDTH, **how)  # type: ignore[call-overload]
    hidden = torch.ones(TOKENS, WIDTH, **how)  # type: ignore[call-overload]
    meter.reset_peak()
    last = hidden[-ROWS:].clone()
    logits = last @ head.T
    wide = logits.float()
    probabilities = wide.softmax(dim=-1, dtype=torch.float32)
    noise = torch.empty_like(probabilities).exponential_()
    tokens = probabilities.div_(noise).argmax(dim=-1)
    meter.note_peak()
    del tokens


def sampler_bytes() -> int:
    """The head, the rows of all tokens and of the last ones, the sampler, the tokens drawn."""
    rows = storage((VOCAB + TOKENS + ROWS) * WIDTH, "bf16")
    return rows + sampler_peak(ROWS, vocab=VOCAB) + 8 * ROWS


def cases() -> list[Case]:
    pool = f"a pool of {BLOCKS} blocks of {BLOCK} tokens for a tiny Llama in bf16, full"
    sampler = f"a sampler that draws {ROWS} tokens from {VOCAB:,} in bf16"
    several = (
        ("pool", pool, {"held": pool_bytes()}, admitted),
        ("sampler", sampler, {"peak": sampler_bytes()}, drawn),
    )
    return [
        Case(f"serving/{name}", words, dict.fromkeys(sizes, "serving"), partial(_said, sizes), run)
        for name, words, sizes, run in several
    ]


def _said(sizes: dict[str, int], backend: str) -> dict[str, Predicted]:
    return {moment: Predicted(derived=size) for moment, size in sizes.items()}
