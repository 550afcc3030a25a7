"""torch.nn.functional.linear_cross_entropy: PyTorch's own chunked loss, new in 2.13; and Liger's.

R rows: B · T tokens · C rows of one chunk · V vocabulary · D model width · b bytes
"""

from __future__ import annotations

from ..formats import storage
from ..units import whole
from .chunk_rows import FORMATS
from .chunk_rows import chunk_rows as chunk_rows
from .chunk_rows import liger_rows as liger_rows
from .logits import peak, scalars

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..formats import Format


def reference_peak(rows: int, *, vocab: int, format: str | Format = "fp32") -> int:
    """Bytes of copies of the logits at the peak with `options=None`: the path without chunks.

    Formula     3 · R · V · b: logits.peak without an upcast
    Unit        bytes, a whole number
    Source      torch, torch/nn/functional.py
    Raises      ValueError for an unknown format or a negative count
    """
    return peak(rows, vocab=vocab, format=format, upcast=False) + scalars(format, upcast=False)


def forward_peak(
    rows: int, *, vocab: int, d_model: int, chunk: int, format: str | Format = "fp32"
) -> int:
    """Bytes above the inputs at the peak of the chunked forward pass, on a CPU.

    Formula     both: 4 · C · V + 13 · R + 4 · C, and the gradients of x and the head;
                fp32 ("compact"): (R + V) · D · 4 + 4 · C · D + 4 · C + 4;
                bf16 ("accurate"): the head once more in fp32 and its gradient in fp32 too,
                4 · R · D + 10 · V · D + 4 · C · D + 2, and the larger of
                4 · C · D + 4 · C (in the loop) and 2 · R · D + 4 · (rows of the last chunk)
    Shapes      13 · R: a mask (bool), the labels (int64) and each row's share (fp32)
    Unit        bytes, a whole number
    Source      torch, torch/nn/modules/linear_cross_entropy.py
    Leaves out  reduction "none", a bias, the CUDA path (no fp32 copy of the head)
    Raises      ValueError for a chunk of 0 or more than R rows, for V < D, and for another format
    """
    _known(format)
    if not 1 <= whole("chunk", chunk) <= whole("rows", rows):
        raise ValueError(f"chunk={chunk}; between 1 and {rows} rows are needed")
    if whole("vocab", vocab) < whole("d_model", d_model):
        raise ValueError(f"V={vocab} is below D={d_model}; chunks would save nothing there")
    total = 4 * chunk * vocab + 13 * rows + 4 * chunk
    if format == "fp32":
        return total + 4 * (rows + vocab + chunk) * d_model + 4 * chunk + 4
    total += (4 * rows + 10 * vocab + 4 * chunk) * d_model + 2
    last = rows - (-(-rows // chunk) - 1) * chunk
    return total + max(4 * chunk * d_model + 4 * chunk, 2 * rows * d_model + 4 * last)


def backward_peak(rows: int, *, vocab: int, d_model: int, format: str | Format = "fp32") -> int:
    """Bytes above the inputs in the backward pass of the chunked loss.

    Formula     2 · (R + V) · D · b + 2 · b: the gradients that forward made, and as many zeros,
                which autograd makes for the results that nobody used
    Unit        bytes, a whole number
    Source      measured with memlab.measure.Tracker, torch 2.13 on CPU
    Raises      ValueError for a negative count or another format
    """
    _known(format)
    wide = (whole("rows", rows) + whole("vocab", vocab)) * whole("d_model", d_model)
    return 2 * storage(wide, format) + 2 * storage(1, format)


def _known(format: str | Format) -> None:
    if format not in FORMATS:
        raise ValueError(f"format={format!r} has no chunked path here; known: fp32, bf16")
