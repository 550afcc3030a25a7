"""How many rows torch's loss in chunks, and Liger's, take at once.

R rows: B · T tokens · C rows of one chunk · V vocabulary · D model width
"""

from __future__ import annotations

from ..units import whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..formats import Format

FORMATS = ("fp32", "bf16")  # which the chunked path of torch's is described in


def chunk_rows(
    rows: int, *, vocab: int, d_model: int, format: str | Format = "fp32", backend: str = "cpu"
) -> int:
    """Rows of a chunk that `LinearCrossEntropyOptions()` takes.

    Formula     P / 2, and P in bf16 on a CPU; at least 1 and at most R;
                P: the first power of two from ⌈R / ⌈V / D⌉⌉
    Unit        rows, a whole number
    Source      torch, torch/nn/modules/linear_cross_entropy_options.py
    Raises      ValueError for a format without a chunked path here
    """
    if format not in FORMATS:
        raise ValueError(f"format={format!r} has no chunked path here; known: fp32, bf16")
    power = _power(rows, vocab, d_model)
    return max(1, min(power if format == "bf16" and backend == "cpu" else power // 2, rows))


def liger_rows(rows: int, *, vocab: int, d_model: int) -> int:
    """Rows of a chunk of Liger's fused linear cross-entropy.

    Formula     P, at most R; P: the first power of two from ⌈R / ⌈V / D⌉⌉
    Unit        rows, a whole number
    Source      liger-kernel 0.8.5, ops/fused_linear_cross_entropy.py, chunk_mem_const=1
    """
    return min(_power(rows, vocab, d_model), rows)


def _power(rows: int, vocab: int, d_model: int) -> int:
    """The first power of two from R / (V / D), so that a chunk's logits are as large as x."""
    target = -(-whole("rows", rows) // -(-whole("vocab", vocab) // whole("d_model", d_model)))
    power = 1
    while power < target:
        power *= 2
    return power
