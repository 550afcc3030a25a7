"""Zeros: a mask while training, compressed rows, and the pattern of two in four."""

from functools import partial

import torch
from torch import nn
from torch.nn.utils import prune

from ..terms import sparse
from .case import Case, Predicted
from .meter import Meter

ROWS, COLUMNS, KEPT = 256, 512, 32  # of every row, so many values are not zero


def masked(meter: Meter) -> None:
    """A layer under torch.nn.utils.prune: the weight, its mask, and their product."""
    layer = nn.Linear(COLUMNS, ROWS, bias=False, device=meter.device)
    prune.l1_unstructured(layer, "weight", amount=0.5)
    with torch.no_grad():
        layer(torch.ones(1, COLUMNS, device=meter.device))
    meter.note("held")


def compressed(meter: Meter) -> None:
    """Compressed rows, made of their three parts."""
    columns = torch.arange(KEPT, device=meter.device).repeat(ROWS)
    starts = torch.arange(0, ROWS * KEPT + 1, KEPT, device=meter.device)
    values = torch.ones(ROWS * KEPT, device=meter.device)
    kept = torch.sparse_csr_tensor(starts, columns, values, (ROWS, COLUMNS))
    del columns, starts, values
    meter.note("held")
    del kept


def converted(meter: Meter) -> None:
    """Compressed rows as to_sparse_csr makes them of a full matrix, which is dropped.

    It finds rows and columns of all values in one tensor, and the columns stay a view of it.
    """
    full = torch.zeros(ROWS, COLUMNS, device=meter.device)
    full[:, :KEPT] = 1
    kept = full.to_sparse_csr()
    del full
    meter.note("held")
    del kept


def two_of_four(meter: Meter) -> None:
    """Half of a bf16 matrix and the places of what was kept, as the sparse tensor cores read it."""
    from torch.sparse import SparseSemiStructuredTensorCUTLASS, to_sparse_semi_structured

    dense = torch.tensor([0.0, 0.0, 1.0, 1.0], dtype=torch.bfloat16, device=meter.device)
    dense = dense.tile(ROWS, COLUMNS // 4)
    kept = to_sparse_semi_structured(dense)
    assert isinstance(kept, SparseSemiStructuredTensorCUTLASS), type(kept)
    del dense
    meter.note("held")
    del kept


def no_pattern(device: str) -> str:
    """Source      torch/sparse/semi_structured.py: it is for CUDA, Ampere and later"""
    if device != "cuda":
        return "to_sparse_semi_structured is for CUDA"
    capable = torch.cuda.get_device_capability() >= (8, 0)
    return "" if capable else "the pattern of two in four needs compute capability 8.0"


def cases() -> list[Case]:
    size = ROWS * COLUMNS
    csr, pattern = sparse.csr(ROWS, nonzero=ROWS * KEPT), sparse.two_four(ROWS, columns=COLUMNS)
    indices = csr + 8 * ROWS * KEPT
    several = (
        ("masked", "a layer of fp32 under a mask", sparse.masked(size), masked, _anywhere),
        ("csr", "compressed rows of fp32", csr, compressed, _anywhere),
        ("to-sparse-csr", "the same, converted from a matrix", indices, converted, _anywhere),
        ("two-of-four", "bf16, two in four", pattern, two_of_four, no_pattern),
    )
    term = {"held": "pruning"}
    return [
        Case(f"pruning/{name}", words, term, partial(_said, size), run, lacks=lacks)
        for name, words, size, run, lacks in several
    ]


def _anywhere(device: str) -> str:
    return ""


def _said(size: int, backend: str) -> dict[str, Predicted]:
    return {"held": Predicted(derived=size)}
