"""The exercises of the chapter on logits and loss."""

from ..formats import storage
from ..model import Model
from ..terms.logits import chunked_peak, logits, peak
from ..units import GiB
from . import exercise

LIMIT = 512 * 2**20


VOCAB = 151936  # Qwen3-0.6B
TRIED = 4.637 * GiB  # as the message prints it, rounded


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
    return round(TRIED / (each * 1024 * VOCAB))


exercise(
    "ex-logits-1",
    answer=lambda: 256 * 8192,
    hint="Only the rows that count reach the head: their number times the entries of the head.",
    unit="values",
    wrong={
        lambda: 1024 * 8192: "Those are the logits of all rows: select `x[counting]` first.",
        lambda: 64 * 8192: "That is one chunk; the rows that count fill four.",
        lambda: 256: "Those are the rows; each of them has one logit for every entry of the head.",
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
    answer=_sequences,
    hint="Which copies does the loss allocate, and in which format? Divide 4.637 GiB by the bytes "
    "of one token's row.",
    unit="sequences",
    wrong={
        lambda: _sequences(each=2): "That reads the tensor as bf16. The loss works on "
        "`logits.float()`, so its copies take four bytes.",
        lambda: _sequences(each=12): "12 bytes a logit are three copies; the message names one "
        "tensor.",
        lambda: 1024 * _sequences(): "Those are tokens; each sequence has 1,024.",
    },
)


exercise(
    "ex-logits-4",
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
