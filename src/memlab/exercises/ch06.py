"""The exercises of chapter 06, logits and loss."""

from ..formats import storage
from ..model import Model
from ..terms.logits import chunked_peak, logits, peak
from . import exercise

LIMIT = 512 * 2**20


def _llama(**how: bool) -> int:
    return peak(8192, vocab=Model.preset("llama-3-8b").vocab, format="bf16", **how)


def _qwen(rows: int = 4 * 2048, **how: bool) -> int:
    return peak(rows, vocab=Model.preset("qwen3-0.6b").vocab, format="bf16", **how)


def _fewest_chunks() -> int:
    qwen = Model.preset("qwen3-0.6b")
    count = 1
    while (
        chunked_peak(4096, vocab=qwen.vocab, d_model=qwen.d_model, chunks=count, format="bf16")
        > LIMIT
    ):
        count += 1
    return count


def _by_rows(each: int, beside: int = 0) -> int:
    """Chunks where a row of logits takes so many bytes, with so many bytes beside them."""
    most = (LIMIT - beside) // (each * Model.preset("qwen3-0.6b").vocab)
    return -(-4096 // most)


def _gradients() -> int:
    qwen = Model.preset("qwen3-0.6b")
    return storage((4096 + qwen.vocab) * qwen.d_model, "bf16")


exercise(
    "ex-logits-1",
    answer=lambda: _llama(kept=True),
    hint="Three copies in fp32 while the gradient is made, and who holds the bf16 logits?",
    wrong={
        lambda: _llama(): "The script holds `out`, and `out.logits` with it: one copy more, in "
        "bf16.",
        lambda: logits(
            8192, vocab=128256
        ): "That is one copy, as the head made it. How many are alive at the peak?",
        lambda: logits(
            8192, vocab=128256, format="fp32"
        ): "That is one copy, in fp32. How many are alive at the peak?",
        lambda: peak(
            8192, vocab=128256, format="fp32", kept=True
        ): "The logits that `out` holds are bf16; only the loss works in fp32.",
        lambda: _llama(upcast=False, kept=True): "The loss works on `logits.float()`, so its "
        "copies take four bytes.",
    },
)


exercise(
    "ex-logits-2",
    answer=lambda: _qwen(backward=False),
    hint="While log_softmax runs: the bf16 logits, their upcast, and its own result.",
    wrong={
        lambda: _qwen(): "Those 12 B a logit need a backward pass; here two of the three copies "
        "are never made.",
        lambda: _qwen(2048, backward=False): "There are 4 sequences.",
        lambda: logits(8192, vocab=151936): "That is the first copy alone.",
        lambda: (
            2 * logits(8192, vocab=151936, format="fp32")
        ): "Nearly: the bf16 logits are still there while log_softmax reads their upcast.",
        lambda: (
            logits(8192, vocab=151936) + logits(8192, vocab=151936, format="fp32")
        ): "log_softmax writes its result beside the upcast: one copy more.",
    },
)


exercise(
    "ex-logits-3",
    answer=_fewest_chunks,
    hint="First what chunks cannot shrink, (R + V) · D · 2 B; what is left is for C · V · 6 B.",
    unit="chunks",
    wrong={
        lambda: _by_rows(6): "Those chunks fit by themselves. The gradients of the head and of its "
        "input wait beside them.",
        lambda: _by_rows(4, _gradients()): "A chunk is there in fp32 and, for a moment, in bf16 as "
        "well: 6 B a logit.",
        lambda: 16: "Close: 16 chunks take a little more than that. See the widget.",
        lambda: 32: "That fits, but it is a power of two and not the smallest number.",
    },
)


def _in_chunks(beside: bool = True, each: int = 6) -> int:
    qwen, limit = Model.preset("qwen3-0.6b"), _qwen(1024)
    if not beside:
        return 16 * (limit // (each * qwen.vocab))
    low, high = 1024, 2**20  # bisect: the largest that fits
    while low < high:
        middle = (low + high + 1) // 2
        fits = (
            chunked_peak(middle, vocab=qwen.vocab, d_model=qwen.d_model, chunks=16, format="bf16")
            <= limit
        )
        low, high = (middle, high) if fits else (low, middle - 1)
    return low


exercise(
    "ex-logits-4",
    answer=_in_chunks,
    hint="`peak(1024, vocab=V, format='bf16')` is the limit; raise R in `chunked_peak` until it is "
    "passed.",
    unit="tokens",
    wrong={
        lambda: _in_chunks(beside=False): "Those are the chunks alone. The gradients of the head "
        "and of its input wait beside them.",
        lambda: _in_chunks(beside=False, each=4): "A chunk is there in fp32 and, for a moment, in "
        "bf16 too; and gradients wait beside it.",
        lambda: 16 * 1024: "In chunks a logit costs less, too: 6 B where the plain loss has 12.",
        lambda: _in_chunks() + 1: "One too many: count the few numbers that each row keeps.",
    },
)
