"""Optimizer step: the room that an optimizer needs for a moment, beside what it keeps.

n values of the parameter at hand · b bytes per value
"""

from __future__ import annotations

from ..formats import format_of, storage
from .optimizer import QUANTIZED, SMALLEST_QUANTIZED, numel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..formats import Format

# torchao/optim/adam.py, `single_param_adam`, run line by line: the parameter, both moments, the
# root, the corrected mean and their quotient, all in fp32.
WIDENED = 6 * 4
# torchao/optim/quant_utils.py, `quantize_8bit_with_qmap`: while a moment is rounded, three of those
# six are there, and the scaled input (4), the codes and their successors (8 + 8, as int64), what
# both stand for (4 + 4), the residual (4), half the distance (4 + 4) and what is nearer (1).
ROUNDED = 3 * 4 + 4 + 8 + 8 + 4 + 4 + 4 + 4 + 4 + 1
# The two bias corrections, one fp32 number each.
SCALARS = 2 * 4


# The same, compiled by torch.compile for a CPU: of each moment the scaled values, in fp32; with 4
# bits also the codes as int64, and the unpacked codes of the last step. Counted from the buffers of
# the code that inductor writes, torch 2.13 and torchao 0.18.
COMPILED = {"adamw8bit": 2 * 4, "adamw4bit": 2 * (4 + 8 + 1), "adamw_fp8": 0}


def low_bit_eager(
    shape: Sequence[int], *, kind: str = "adamw8bit", format: str | Format = "fp32"
) -> int:
    """Bytes that torchao's low-bit AdamW adds for a moment to update one tensor, not compiled.

    Formula     53 · n + S + 8 for 8 and 4 bits, 24 · n + 8 for FP8; 4 · n more for a gradient that
                is not fp32
    Shapes      S: the new scales of one state
    Unit        bytes, a whole number
    Source      torchao/optim 0.18, counted allocation by allocation
    Leaves out  torch.compile, which torchao asks for and which keeps these copies in registers;
                lookup tables and states, which stay
    Raises      ValueError for an unknown kind, and for a tensor whose states are not quantized
    """
    count, stored = numel(shape), _stored(kind)
    if not _quantizes(count, stored):
        raise ValueError(f"{count} values keep plain states: too few, or blocks do not divide them")
    gradient = 0 if format_of(format).name == "fp32" else storage(count, "fp32")
    if kind == "adamw_fp8":
        return WIDENED * count + SCALARS + gradient
    scales = storage(count // stored.block, "fp32")
    return ROUNDED * count + scales + SCALARS + gradient


def low_bit_compiled(
    shape: Sequence[int], *, kind: str = "adamw8bit", format: str | Format = "fp32"
) -> int:
    """Bytes that torchao's low-bit AdamW adds for a moment to update one tensor, compiled.

    Formula     2 · S + 8 · n with 8 bits, 2 · S + 26 · n with 4 bits, 2 · S with FP8; 0 for a
                tensor whose states are not quantized
    Shapes      S: the new scales of one state, 4 bytes a block
    Unit        bytes, a whole number
    Source      the code that torch.compile writes for a CPU, torch 2.13 and torchao 0.18; that for
                CUDA was not measured
    Leaves out  two numbers (12 bytes); new FP8 codes (2 · n), which the program keeps for some
                shapes whose rows are no multiple of the block: for (352, 128), not for (64, 96)
    Raises      ValueError for an unknown kind
    """
    stored = _stored(kind)
    count = numel(shape)
    if not _quantizes(count, stored):
        return 0
    return COMPILED[kind] * count + 2 * storage(count // stored.block, "fp32")


def low_bit_room(
    shape: Sequence[int], *, kind: str, format: str | Format = "fp32", compiled: bool = True
) -> int:
    """Bytes that torchao's low-bit AdamW adds for a moment to update one tensor of any size.

    Formula     `low_bit_compiled`, or `low_bit_eager`; where states are plain and nothing is
                compiled 24 · n + 8, and 4 · n more for a gradient that is not fp32
    Unit        bytes, a whole number
    Source      torchao/optim/adam.py, `single_param_adam`
    Raises      ValueError for an unknown kind
    """
    if compiled:
        return low_bit_compiled(shape, kind=kind, format=format)
    count = numel(shape)
    if _quantizes(count, _stored(kind)):
        return low_bit_eager(shape, kind=kind, format=format)
    gradient = 0 if format_of(format).name == "fp32" else storage(count, "fp32")
    return WIDENED * count + SCALARS + gradient


def _quantizes(count: int, stored: Format) -> bool:
    """Whether the states of so many values are quantized at all."""
    return count >= SMALLEST_QUANTIZED and count % stored.block == 0


def _stored(kind: str) -> Format:
    if kind not in QUANTIZED:
        raise ValueError(f"unknown kind {kind!r}; known: {', '.join(sorted(QUANTIZED))}")
    return format_of(QUANTIZED[kind][0])


# torch/optim/_muon.py works on the wide side of a matrix in bf16.
NARROW = 2


def step_room(
    optimizer: str,
    tensors: Sequence[tuple[tuple[int, ...], bool]],
    *,
    format: str | Format = "fp32",
    loop: str = "foreach",
) -> int:
    """Bytes that one step of an optimizer takes for a moment beside states and gradients.

    Formula     foreach: P · b (AdamW), the same over matrices and vectors in turn (Adafactor); one
                by one: the largest n · b with what stays of the tensor before it (Lion), Muon's
                n · b + 2 · n + max(6 · s², 4 · s² + 2 · n) beside AdamW's, GaLore's 3 · r · C · b
                + n · b, the largest `low_bit_room` (torchao); nothing for SGD, bitsandbytes on
                CUDA, fused kernels and a step on a host
    Shapes      tensors: in the order of registration, those of a layer once for each layer (twice
                will do but for foreach), and whether Muon takes them; s: the shorter side, C: the
                longer one; optimizer: "muon8" and "galore/" with its rank r are memlab.lab's
    Unit        bytes, a whole number
    Source      memlab.step.optimizers, which tells each step operator by operator
    Raises      ValueError for an optimizer or a loop that has no formula here
    """
    format = format_of(format)
    if optimizer in ("sgd", "momentum", "offload_adamw") or optimizer.startswith("bnb"):
        return 0
    if optimizer in QUANTIZED:
        yes, counts = loop == "compiled", {numel(shape) for shape, _ in tensors}
        return max(
            [low_bit_room((n,), kind=optimizer, format=format, compiled=yes) for n in counts]
        )
    sizes = [storage(numel(shape), format) for shape, _ in tensors]
    if optimizer == "lion":
        return max([sizes[i] + (sizes[i - 1] if i else 0) for i in range(len(sizes))])
    base, _, rank = optimizer.partition("/")
    if base in ("muon", "muon8", "galore"):
        rest = [each for each in tensors if not each[1]]
        mine = [_matrix_room(base, shape, format, rank) for shape, hidden in tensors if hidden]
        return max(mine + [step_room("adamw", rest, format=format, loop=loop)])
    if optimizer in ("adamw", "amsgrad") and loop == "fused":
        return 0
    if optimizer in ("adamw", "amsgrad", "adafactor") and loop == "foreach":
        corners = [
            storage(numel(tuple(shape[:-2]) + (1, 1)), format)
            for shape, _ in tensors
            if len(shape) > 1
        ]
        vectors = [sizes[i] for i in range(len(sizes)) if len(tensors[i][0]) < 2]
        more = max(0, sum(corners) - sum(vectors)) if optimizer == "adafactor" else 0
        return sum(sizes) + more
    raise ValueError(f"optimizer {optimizer!r} in the loop {loop!r} has no formula here")


def _matrix_room(base: str, shape: Sequence[int], format: str | Format, rank: str) -> int:
    """What the update of one matrix takes: Muon's, that of memlab.lab's Muon8, or its GaLore's."""
    if base == "muon":
        return _orthogonal_room(shape, format)
    count, side = numel(shape), min(shape)
    if base == "galore":  # the projected gradient, its two corrected means; the update
        low = min(int(rank), side) * max(shape)
        return 3 * storage(low, format) + storage(count, format)
    # Torch's keeps the mean ahead as its first x; here it stays beside every x.
    late = storage(count, format) + 2 * NARROW * count + 2 * NARROW * side * side
    if count < SMALLEST_QUANTIZED or count % 128:
        return late
    # The momentum in fp32, what is rounded of it, the new codes and their scales.
    return max(late, 9 * count + storage(count // 128, "fp32"))


def _orthogonal_room(shape: Sequence[int], format: str | Format) -> int:
    """Muon's update of one matrix: the mean ahead, its bf16 copy, Gram matrices of the short side.

    In bf16 the copy is the mean itself until the first round has made another.
    """
    count, side = numel(shape), min(shape)
    square = NARROW * side * side
    return storage(count, format) + NARROW * count + max(3 * square, 2 * square + NARROW * count)
