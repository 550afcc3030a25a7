"""Dropout: the mask that says which values were dropped, kept from forward to backward.

n values that go through dropout · B batch · T tokens · N query heads · b bytes per value
"""

from __future__ import annotations

from ..formats import format_of, storage
from ..units import whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..formats import Format

BACKENDS = ("cpu", "cuda")
# torch.bool: one byte a value.
BOOL_BYTES = 1

# Whether attention has a mask of its own: the kernels that draw their random numbers again in
# backward keep a seed and an offset, which `activations.attention` counts.
KERNELS = {"flash": False, "efficient": False, "math": True, "eager": True}


def mask_format(format: str, *, backend: str = "cpu") -> str:
    """The format of the mask: that of the values on a CPU, "bool" on CUDA.

    Formula     cpu: as the values; cuda: bool
    Unit        the name of a format
    Source      torch, aten/src/ATen/native/Dropout.cpp: `is_fused_kernel_acceptable` takes the
                fused kernel, native_dropout, on CUDA only; elsewhere the values are multiplied by
                a tensor like them, of 0 and 1 / (1 - p)
    Raises      ValueError for an unknown backend
    """
    if backend not in BACKENDS:
        raise ValueError(f"unknown backend {backend!r}; known: {', '.join(BACKENDS)}")
    return "bool" if backend == "cuda" else format


def mask(values: int, *, format: str | Format = "fp32", backend: str = "cpu") -> int:
    """Bytes of the mask that torch.nn.Dropout keeps for its backward pass.

    Formula     cpu: n · b;  cuda: n
    Shapes      the shape of the values; on CUDA in bool
    Unit        bytes, a whole number
    Source      as `mask_format`; tools/autograd/derivatives.yaml: mul keeps the mask,
                native_dropout its second result
    Leaves out  the dropped values, where another operator keeps them beside the values themselves
                (a product after a softmax); p = 0 and evaluation, where nothing is kept
    Raises      ValueError for a negative count, an unknown format or backend
    """
    if mask_format("", backend=backend) == "bool":
        return BOOL_BYTES * whole("values", values)
    return storage(whole("values", values), format)


def attention_mask(
    batch: int,
    *,
    tokens: int,
    heads: int,
    kernel: str,
    format: str | Format = "fp32",
    backend: str = "cpu",
) -> int:
    """Bytes of the mask of dropout inside attention.

    Formula     0 in flash and efficient;  eager and math: `mask` of B·N·T·T values
    Shapes      [B, N, T, T], where scores are written out: eager is what transformers spells out,
                math what scaled_dot_product_attention does where no kernel takes the call (on a CPU
                wherever there is dropout), in fp32 whatever the format
    Unit        bytes, a whole number
    Source      torch, aten/src/ATen/native/transformers/attention.cpp; derivatives.yaml: flash
                and efficient keep philox_seed and philox_offset instead
    Leaves out  seed and offset: `activations.attention` has them, as they are kept at p = 0 too
    Raises      ValueError for an unknown kernel; otherwise as `mask`
    """
    if kernel not in KERNELS:
        raise ValueError(f"unknown kernel {kernel!r}; known: {', '.join(sorted(KERNELS))}")
    scores = whole("batch", batch) * whole("heads", heads) * whole("tokens", tokens) * tokens
    size = mask(scores, format="fp32" if kernel == "math" else format_of(format), backend=backend)
    return size if KERNELS[kernel] else 0
