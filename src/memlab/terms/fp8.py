"""FP8 training: what linear layers that multiply in eight bits keep for their backward pass.

T rows of the input, all tokens of the batch · C inputs · O outputs of a linear layer
B batch · D model width · F feed-forward width · N query heads · K key/value heads · H head width

The weights are bf16 and stay so. Three programs differ in what they keep beside them.
"""

from __future__ import annotations

from ..units import whole
from . import activations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# original: torchao keeps the bf16 input and casts it again. fp8: the cast copy of the input.
# fp8+weight: that and cast copies of the weight, as Transformer Engine does: two on Hopper.
KEEP = ("original", "fp8", "fp8+weight")
SCALING = ("tensor", "row")
SCALE_BYTES = 4  # one fp32


def scales(inputs: int, *, scaling: str = "tensor") -> int:
    """Bytes of the scales of one kept copy, of the input or of the weight.

    Formula     4 for the tensor, 4 · C by row
    Shapes      [] or [1, C]: backward adds up along T and along O, and scales are kept across
    Unit        bytes, a whole number
    Source      torch._scaled_mm: one fp32 scale for each factor, or one for each row of the first
                and each column of the second
    Raises      ValueError for a negative size or another scaling
    """
    _known("scaling", scaling, SCALING)
    return SCALE_BYTES * (whole("inputs", inputs) if scaling == "row" else 1)


def linear(
    rows: int,
    *,
    inputs: int,
    outputs: int,
    keep: str = "fp8",
    scaling: str = "tensor",
    copies: int = 1,
) -> int:
    """Bytes that one FP8 linear layer keeps for backward, its own bf16 weight not counted.

    Formula     original: 2 · T · C;  fp8: T · C + S;  fp8+weight: (T + n · O) · C + (1 + n) · S
    Shapes      x [T, C] in bf16 or in fp8; W [O, C] in fp8; S as `scales`
    Unit        bytes, a whole number
    copies      n, of the weight where it is kept: two in Transformer Engine on Hopper, whose FP8
                tensor cores add up along the contiguous dimension alone, where the input asks for
                a gradient
    Source      torchao, float8/float8_linear.py; Transformer Engine's documentation,
                performance considerations, and its pytorch/module/linear.py
    Raises      ValueError for a negative size or an unknown word
    """
    _known("keep", keep, KEEP)
    weights = whole("copies", copies)
    copy = scales(inputs, scaling=scaling)
    if keep == "original":
        return 2 * whole("rows", rows) * inputs
    kept = whole("rows", rows) * inputs + copy
    one = weight_copy(inputs, outputs=outputs, scaling=scaling)
    return kept + (weights * one if keep == "fp8+weight" else 0)


def weight_copy(inputs: int, *, outputs: int, scaling: str = "tensor") -> int:
    """Bytes of the FP8 copy of a weight.

    Formula     O · C + S
    Shapes      W [O, C] in fp8; S as `scales`
    Unit        bytes, a whole number
    Source      Transformer Engine's documentation, performance considerations
    Raises      as `linear`
    """
    return whole("outputs", outputs) * inputs + scales(inputs, scaling=scaling)


def break_even(inputs: int, *, outputs: int, scaling: str = "tensor", copies: int = 1) -> int:
    """The fewest rows with which FP8 copies of input and weight are smaller than a bf16 input.

    Formula     the smallest T with (T + n · O) · C + (1 + n) · S < 2 · T · C: the first one above
                n · O + (1 + n) · S / C, which is O + 1 for a wide layer scaled by tensor
    copies      n, of the weight, as in `linear`
    Unit        rows, a whole number
    Raises      ValueError for a layer without inputs, and as `linear`
    """
    if not whole("inputs", inputs):
        raise ValueError("inputs=0; a layer has at least one")
    one = weight_copy(inputs, outputs=outputs, scaling=scaling)
    return (whole("copies", copies) * one + scales(inputs, scaling=scaling)) // inputs + 1


def llama_layer(
    batch: int,
    *,
    tokens: int,
    d_model: int,
    d_ff: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    keep: str = "fp8",
    scaling: str = "tensor",
    shared: bool = True,
    backend: str = "cpu",
) -> int:
    """Bytes that one bf16 layer of memlab's TinyLlama keeps, its seven linear layers in FP8.

    Formula     the layer in bf16 - 2 · B·T·(2·D + F), the inputs that only linear layers kept,
                + B·T·(2·D + N·H + F) + 4 · S: a copy for q, k and v, one for gate and up, one for
                out, whose wide input attention keeps all the same, and one for down;
                not shared: three and two copies where there was one; fp8+weight: + the weights'
    Unit        bytes, a whole number
    Source      memlab.lab.fp8 on memlab.lab.models.llama
    Leaves out  norms on queries and keys
    Raises      ValueError as `linear` and as `activations.llama_layer`
    """
    _known("keep", keep, KEEP)
    queries, keys = heads * head_dim, kv_heads * head_dim
    kept = activations.llama_layer(
        batch,
        tokens=tokens,
        d_model=d_model,
        d_ff=d_ff,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        precision="bf16",
        backend=backend,
    )
    if keep == "original":
        return kept
    rows = batch * tokens
    kept -= 2 * rows * (2 * d_model + d_ff)
    for width, readers in ((d_model, 3), (d_model, 2), (queries, 1), (d_ff, 1)):
        kept += (1 if shared else readers) * linear(
            rows, inputs=width, outputs=0, keep="fp8", scaling=scaling
        )
    if keep == "fp8+weight":
        layers = [(d_model, queries), (d_model, keys), (d_model, keys), (queries, d_model)]
        for width, outputs in layers + [(d_model, d_ff), (d_model, d_ff), (d_ff, d_model)]:
            kept += weight_copy(width, outputs=outputs, scaling=scaling)
    return kept


def _known(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise ValueError(f"{name}={value!r} is unknown; known: {', '.join(known)}")
