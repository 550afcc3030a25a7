"""Sparse storage: the closed forms against torch's own tensors, byte for byte."""

import pytest
import torch
from torch.nn.utils import prune as torch_prune

from memlab.measure import storage_bytes
from memlab.terms.sparse import coo, csr, csr_break_even, masked, two_four

pytestmark = pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


def matrix(rows, columns, zeros, dtype=torch.float32):
    weight = torch.ones(rows * columns)
    weight[torch.randperm(rows * columns)[:zeros]] = 0
    return weight.view(rows, columns).to(dtype)


def parts(sparse):
    if sparse.layout == torch.sparse_coo:
        return [sparse.indices(), sparse.values()]
    return [sparse.crow_indices(), sparse.col_indices(), sparse.values()]


@pytest.mark.parametrize("format", DTYPES)
@pytest.mark.parametrize(("rows", "columns", "zeros"), [(8, 8, 60), (33, 17, 0), (5, 70, 350)])
def test_lists_and_rows_have_the_bytes_of_torch(format, rows, columns, zeros):
    full = matrix(rows, columns, zeros, DTYPES[format])
    nonzero = rows * columns - zeros
    assert coo(nonzero, format=format) == sum(t.nbytes for t in parts(full.to_sparse().coalesce()))
    compressed = full.to_sparse_csr()
    assert csr(rows, nonzero=nonzero, format=format) == sum(t.nbytes for t in parts(compressed))
    starts, places, values = parts(compressed)
    assert places.untyped_storage().nbytes() == 2 * places.nbytes  # what `csr` leaves out
    narrow = torch.sparse_csr_tensor(starts.int(), places.int(), values, check_invariants=True)
    assert csr(rows, nonzero=nonzero, format=format, index_bytes=4) == sum(
        t.nbytes for t in parts(narrow)
    )


@pytest.mark.parametrize("format", DTYPES)
@pytest.mark.parametrize("index_bytes", [4, 8])
@pytest.mark.parametrize(("rows", "columns"), [(16, 16), (100, 3), (1, 1), (512, 256)])
def test_break_even_is_the_first_number_of_zeros_that_gains(format, index_bytes, rows, columns):
    zeros = csr_break_even(rows, columns=columns, format=format, index_bytes=index_bytes)
    full = rows * columns * (4 if format == "fp32" else 2)

    def size(zeros):
        return csr(rows, nonzero=rows * columns - zeros, format=format, index_bytes=index_bytes)

    assert size(zeros - 1) >= full
    assert zeros > rows * columns or size(zeros) < full


@pytest.mark.parametrize("format", ["fp32", "bf16", "fp16", "int8"])
def test_two_of_four_has_the_bytes_of_torchs_own_layout(format):
    from torch.sparse._semi_structured_conversions import (
        sparse_semi_structured_from_dense_cutlass as pack,
    )

    dtype = {"fp16": torch.float16, "int8": torch.int8, **DTYPES}[format]
    full = torch.tensor([1, 0, 2, 0]).repeat(64, 32).to(dtype)
    assert two_four(64, columns=128, format=format) == sum(part.nbytes for part in pack(full))


@pytest.mark.parametrize("format", DTYPES)
def test_a_mask_triples_a_weight(format):
    linear = torch.nn.Linear(64, 48, bias=False).to(DTYPES[format])
    torch_prune.l1_unstructured(linear, "weight", 0.9)
    held = [linear.weight_orig, linear.weight_mask, linear.weight]
    assert storage_bytes(held) == masked(64 * 48, format=format)
    torch_prune.remove(linear, "weight")
    assert storage_bytes(linear) == masked(64 * 48, format=format, training=False)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: csr(4, nonzero=4, index_bytes=2), "index_bytes=2; an index has 4 or 8"),
        (lambda: two_four(4, columns=6), "columns=6 is not a multiple of 4"),
        (lambda: coo(-1), "nonzero=-1"),
    ],
)
def test_wrong_input_is_refused_by_name(act, message):
    with pytest.raises(ValueError, match=message):
        act()
