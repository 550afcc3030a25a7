"""The exercises of chapter 06, logits and loss."""

from ..formats import storage
from ..model import Model
from ..terms.logits import chunked_peak, logits, peak
from ..units import GiB
from . import exercise

LIMIT = 512 * 2**20


VOCAB = 151936  # Qwen3-0.6B
TRIED = 3.91 * GiB  # as a message says it, rounded


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
    most = (LIMIT - beside) // (each * VOCAB)
    return -(-4096 // most)


def _gradients() -> int:
    return storage((4096 + VOCAB) * Model.preset("qwen3-0.6b").d_model, "bf16")


def _sequences(each: int = 4) -> int:
    """Sequences of 1,024 tokens whose logits, of so many bytes each, PyTorch tried to allocate."""
    return round(TRIED / (each * 1024 * Model.preset("llama-3-8b").vocab))


exercise(
    "ex-logits-1",
    answer=_sequences,
    hint="Which copy is allocated in backward, and in which format? Divide 3.91 GiB by the bytes "
    "of one token's row.",
    unit="sequences",
    wrong={
        lambda: _sequences(each=2): "That reads the tensor as bf16. The loss works on "
        "`logits.float()`, so the copies that backward allocates take four bytes.",
        lambda: _sequences(each=12): "12 bytes a logit are three copies; the message names one "
        "tensor.",
        lambda: 1024 * _sequences(): "Those are tokens; each sequence has 1,024.",
    },
)


exercise(
    "ex-logits-2",
    answer=lambda: logits(4 * 2048, vocab=VOCAB),
    hint="What does a slice hold: the numbers that it shows, or the whole storage behind them?",
    wrong={
        lambda: logits(4, vocab=VOCAB): "That is what the slice shows. A slice is a view, and a "
        "view keeps the whole storage; `.clone()` would not.",
        lambda: logits(2048, vocab=VOCAB): "There are 4 sequences.",
        lambda: logits(4 * 2048, vocab=VOCAB, format="fp32"): "Without a loss nothing is cast: the "
        "logits stay in bf16.",
        lambda: peak(4 * 2048, vocab=VOCAB, backward=False): "There is no loss here, so there is "
        "one copy.",
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


def _chunked(rows: int = 4096) -> int:
    return chunked_peak(rows, vocab=VOCAB, d_model=1024, chunks=16, format="bf16")


exercise(
    "ex-logits-4",
    answer=lambda: min(_chunked(), peak(1024, vocab=VOCAB)),
    hint="(a) is 12 B for each logit of 1,024 rows; (b) is `chunked_peak` of 4,096 rows.",
    wrong={
        lambda: peak(1024, vocab=VOCAB): "That is (a), and it is the larger one: a quarter of the "
        "rows, at 12 B a logit.",
        lambda: peak(4096, vocab=VOCAB): "Those are all rows with the plain loss: neither of the "
        "two.",
        lambda: _chunked(1024): "That is both at once: the answer's rows alone, and in chunks. It "
        "is smaller than either, and worth doing.",
        lambda: logits(1024, vocab=VOCAB): "That is one copy in bf16; the plain loss has three in "
        "fp32 at its peak.",
    },
)
