"""Optimizer state: what an optimizer remembers of each parameter between two steps.

P parameters of one tensor · R, C its rows and columns · b bytes per value

Every function counts ONE parameter tensor, because the rules below are rules per tensor. `state`
is the way in; the named formulas are there to be read, one a paragraph, which makes the file long.
"""

from __future__ import annotations

from ..formats import format_of, storage
from ..units import whole
from .low_rank import galore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..formats import Format

# torch/optim/adamw.py, adafactor: `step` is a tensor of one fp32 value for each parameter tensor
# (kept on the CPU unless the optimizer is fused or capturable).
STEP_BYTES = 4

# torchao/optim/adam.py, `_subclass_zeros`: "follow bitsandbytes, only quantize tensors >= 4096
# values", and only where the block divides the number of values.
SMALLEST_QUANTIZED = 4096

# torchao/optim: block length, and the lookup table that each 8-bit and 4-bit state carries along
# (256 and 16 fp32 values). The FP8 state needs none.
QUANTIZED = {
    "adamw8bit": ("int8/256", 256 * 4),
    "adamw4bit": ("int4/128", 16 * 4),
    "adamw_fp8": ("fp8_e4m3/256", 0),
}


# bitsandbytes/optim/optimizer.py: values that share one largest magnitude; the fewest values of a
# tensor whose states are paged.
BNB_BLOCK, BNB_PAGED = 256, 100_000

# torchao/optim/adam.py: the learning rate of a parameter group is a tensor of one fp32 value.
LEARNING_RATE_BYTES = 4


def sgd(shape: Sequence[int], *, format: str | Format = "fp32") -> int:
    """Bytes of plain SGD: none.

    Formula     0
    Unit        bytes, a whole number
    Source      torch.optim.SGD with momentum=0
    """
    numel(shape)
    return 0


def momentum(shape: Sequence[int], *, format: str | Format = "fp32") -> int:
    """Bytes of SGD with momentum: one running mean.

    Formula     P · b
    Unit        bytes, a whole number
    Source      torch.optim.SGD, `momentum_buffer`
    """
    return storage(numel(shape), format)


def adamw(shape: Sequence[int], *, format: str | Format = "fp32") -> int:
    """Bytes of AdamW: a running mean of the gradient, one of its square, and a step counter.

    Formula     2 · P · b + 4
    Shapes      exp_avg, exp_avg_sq: the parameter's shape; step: one fp32 value
    Unit        bytes, a whole number
    Source      Loshchilov & Hutter 2019, arXiv:1711.05101; torch.optim.AdamW
    Leaves out  temporary copies inside `step()` (one more P · b with foreach)
    """
    return 2 * storage(numel(shape), format) + STEP_BYTES


def amsgrad(shape: Sequence[int], *, format: str | Format = "fp32") -> int:
    """Bytes of AdamW with amsgrad: a third state, the largest second moment so far.

    Formula     3 · P · b + 4
    Unit        bytes, a whole number
    Source      Reddi et al. 2018, arXiv:1904.09237; torch.optim.AdamW(amsgrad=True)
    """
    return 3 * storage(numel(shape), format) + STEP_BYTES


def adafactor(shape: Sequence[int], *, format: str | Format = "fp32") -> int:
    """Bytes of Adafactor: the second moment as a row and a column, no first moment.

    Formula     (R + C) · b + 4 for a matrix, P · b + 4 for a vector
    Shapes      row_var [R, 1], col_var [1, C]; variance [P]
    Unit        bytes, a whole number
    Source      Shazeer & Stern 2018, arXiv:1804.04235; torch.optim.Adafactor
    """
    count = numel(shape)
    if len(shape) < 2:
        return storage(count, format) + STEP_BYTES
    rows, columns = shape[-2], shape[-1]
    stacked = count // (rows * columns) if count else 0
    return storage(stacked * rows, format) + storage(stacked * columns, format) + STEP_BYTES


def hf_adafactor(shape: Sequence[int], *, format: str | Format = "fp32") -> int:
    """Bytes of transformers' own Adafactor: always fp32, and the size of the weights beside it.

    Formula     (R + C) · 4 + 4 for a matrix, P · 4 + 4 for a vector
    Shapes      exp_avg_sq_row [R], exp_avg_sq_col [C]; exp_avg_sq [P]; RMS: one number
    Unit        bytes, a whole number
    Source      transformers, optimization.py, which Trainer(optim="adafactor") takes
    """
    return adafactor(shape, format="fp32")


def bnb_adamw8bit(shape: Sequence[int], *, format: str | Format = "fp32") -> int:
    """Bytes of bitsandbytes' AdamW8bit: codes of 8 bits, and a largest magnitude for each block.

    Formula     2 · (P + 4 · ⌈P / 256⌉), 2 · P · 4 for a tensor of fewer than 4,096 values
    Shapes      state1, state2: the parameter's shape, uint8; absmax1, absmax2: one fp32 a block
    Unit        bytes, a whole number
    Source      bitsandbytes, optim/optimizer.py, Optimizer2State.init_state; Dettmers et al.
                2022, arXiv:2110.02861
    Leaves out  two tables of 256 fp32 values, one pair for all tensors; what transformers' Trainer
                changes: it keeps the states of embeddings in fp32, as `bnb_adamw`
    """
    count = numel(shape)
    if count < SMALLEST_QUANTIZED:
        return 2 * storage(count, "fp32")
    return 2 * (count + 4 * -(-count // BNB_BLOCK))


def bnb_adamw(shape: Sequence[int], *, format: str | Format = "fp32") -> int:
    """Bytes of bitsandbytes' AdamW: two moments in fp32, whatever the weights are in.

    Formula     2 · P · 4
    Shapes      state1, state2: the parameter's shape
    Unit        bytes, a whole number
    Source      bitsandbytes, optim/optimizer.py; the steps are counted in a plain number
    """
    return 2 * storage(numel(shape), "fp32")


def managed(optimizer: str, *, shape: Sequence[int]) -> int:
    """Bytes of a paged optimizer's states that the driver moves between a host and the device.

    Formula     2 · P of bnb_paged_adamw8bit, 2 · P · 4 of bnb_paged_adamw; none for a tensor of
                fewer than 100,000 values, and for other optimizers
    Unit        bytes of CUDA's managed memory, which torch's allocator does not count
    Source      bitsandbytes, optim/optimizer.py, get_state_buffer; functional.py, get_paged
    Leaves out  the largest magnitudes of blocks, which stay on the device; a CPU, where nothing is
                paged
    Raises      ValueError for an unknown optimizer
    """
    _parsed(optimizer)
    count = numel(shape)
    if not optimizer.startswith("bnb_paged") or count < BNB_PAGED:
        return 0
    return 2 * count if optimizer.endswith("8bit") else 2 * storage(count, "fp32")


def bnb_paged_adamw8bit(shape: Sequence[int], *, format: str | Format = "fp32") -> int:
    """Bytes of bitsandbytes' PagedAdamW8bit that torch's allocator counts on the device.

    Formula     that of bnb_adamw8bit; 2 · 4 · ⌈P / 256⌉ for a tensor of 100,000 values or more
    Unit        bytes, a whole number
    Source      bitsandbytes, optim/optimizer.py, get_state_buffer
    Leaves out  what is `managed`
    """
    return bnb_adamw8bit(shape) - managed("bnb_paged_adamw8bit", shape=shape)


def bnb_paged_adamw(shape: Sequence[int], *, format: str | Format = "fp32") -> int:
    """Bytes of bitsandbytes' PagedAdamW that torch's allocator counts on the device.

    Formula     2 · P · 4; 0 for a tensor of 100,000 values or more
    Unit        bytes, a whole number
    Source      bitsandbytes, optim/optimizer.py, get_state_buffer
    Leaves out  what is `managed`
    """
    return bnb_adamw(shape) - managed("bnb_paged_adamw", shape=shape)


def offload_adamw(shape: Sequence[int], *, format: str | Format = "fp32") -> int:
    """Bytes on the device of AdamW on a host: torchao's CPUOffloadOptimizer.

    Formula     0; 2 · P · b + 4 for a tensor of fewer than 4,096 values
    Unit        bytes, a whole number
    Source      torchao, optim/cpu_offload.py; it needs CUDA, so no step of it ran here
    Leaves out  on the host 4 · P · b: weights, gradients and both moments, the first two pinned
    """
    return adamw(shape, format=format) if numel(shape) < SMALLEST_QUANTIZED else 0


def lion(shape: Sequence[int], *, format: str | Format = "fp32") -> int:
    """Bytes of Lion: one running mean, whose sign is the update.

    Formula     P · b
    Unit        bytes, a whole number
    Source      Chen et al. 2023, arXiv:2302.06675
    """
    return storage(numel(shape), format)


def muon(shape: Sequence[int], *, format: str | Format = "fp32") -> int:
    """Bytes of Muon for one hidden matrix: one running mean, orthogonalized at each step.

    Formula     P · b
    Shapes      momentum_buffer: the matrix's shape
    Unit        bytes, a whole number
    Source      Jordan et al. 2024, kellerjordan.github.io/posts/muon; torch.optim.Muon
    Leaves out  the bf16 working copies of the Newton-Schulz iteration
    Raises      ValueError for anything but a matrix: embeddings, norms and biases go to AdamW
    """
    if len(shape) != 2:
        raise ValueError(f"shape={tuple(shape)} is not a matrix; Muon takes 2-D weights only")
    return storage(numel(shape), format)


def quantized_adamw(
    shape: Sequence[int], *, format: str | Format = "fp32", kind: str = "adamw8bit"
) -> int:
    """Bytes of AdamW whose two moments are stored in blocks of 8 or 4 bits.

    Formula     2 · (P · bits/8 + 4 · P/block + table) + 4,
                2 · P · b + 4 for a tensor of fewer than 4,096 values or one that the block does
                not divide
    Unit        bytes, a whole number
    Source      Dettmers et al. 2022, arXiv:2110.02861; torchao.optim
    Raises      ValueError for an unknown kind (known: adamw8bit, adamw4bit, adamw_fp8)
    """
    if kind not in QUANTIZED:
        raise ValueError(f"unknown kind {kind!r}; known: {', '.join(sorted(QUANTIZED))}")
    stored, table = QUANTIZED[kind]
    return 2 * block_state(shape, stored=stored, format=format, table=table) + STEP_BYTES


def block_state(
    shape: Sequence[int], *, stored: str | Format, format: str | Format = "fp32", table: int = 0
) -> int:
    """Bytes of one state in a block format, with the rule for small tensors.

    Formula     P · bits/8 + scales + table; P · b where the tensor is too small or not divisible
    Unit        bytes, a whole number
    Source      torchao/optim/adam.py, `_subclass_zeros`
    """
    count = numel(shape)
    block = format_of(stored).block
    if block > 1 and (count < SMALLEST_QUANTIZED or count % block):
        return storage(count, format)
    return storage(count, stored) + table


def numel(shape: Sequence[int]) -> int:
    """How many values a tensor of this shape holds."""
    count = 1
    for size in shape:
        count *= whole("size", size)
    return count


# name: bytes of one tensor's state. Muon stands here for its matrices; `hidden` decides below.
OPTIMIZERS: dict[str, Callable[..., int]] = {
    "sgd": sgd,
    "momentum": momentum,
    "adamw": adamw,
    "amsgrad": amsgrad,
    "adafactor": adafactor,
    "hf_adafactor": hf_adafactor,
    "lion": lion,
    "muon": muon,
    "adamw8bit": quantized_adamw,
    "adamw4bit": quantized_adamw,
    "adamw_fp8": quantized_adamw,
    "offload_adamw": offload_adamw,
    "bnb_adamw": bnb_adamw,
    "bnb_adamw8bit": bnb_adamw8bit,
    "bnb_paged_adamw": bnb_paged_adamw,
    "bnb_paged_adamw8bit": bnb_paged_adamw8bit,
}

# How many numbers each keeps per parameter, and whether it counts steps: what a recipe that names
# its own state formats replaces. Adafactor keeps rows and columns, so it is not in this list.
STATES = {"sgd": 0, "momentum": 1, "adamw": 2, "amsgrad": 3, "lion": 1, "muon": 1}


def state(
    optimizer: str,
    *,
    shape: Sequence[int],
    format: str | Format = "fp32",
    hidden: bool = True,
    formats: Sequence[str | Format] | None = None,
) -> int:
    """Bytes of an optimizer's state for one parameter tensor.

    Formula     that of the named optimizer; with `formats`, one block state for each of them
    Shapes      shape: the parameter's; hidden: a matrix inside the network (not an embedding, the
                output head, a norm or a bias), which is what Muon and GaLore take; AdamW takes
                the rest
    optimizer   a name of OPTIMIZERS, or "galore/" and a rank
    Unit        bytes, a whole number
    Raises      ValueError for an unknown optimizer, or a number of formats that it has no use for
    """
    base, rank = _parsed(optimizer)
    if (base == "muon" and not hidden) or (rank and not (hidden and len(shape) == 2)):
        return adamw(shape, format=format)
    if formats is None:
        if rank:
            return galore(shape, rank=rank, format=format)
        if optimizer in QUANTIZED:
            return quantized_adamw(shape, format=format, kind=optimizer)
        return OPTIMIZERS[optimizer](shape, format=format)
    if len(formats) != STATES.get(optimizer, -1):
        wanted = STATES.get(optimizer)
        raise ValueError(
            f"{len(formats)} state formats for {optimizer}, which "
            + (f"keeps {wanted}" if wanted is not None else "fixes its own")
        )
    steps = STEP_BYTES if optimizer in ("adamw", "amsgrad") else 0
    return sum(block_state(shape, stored=stored, format=format) for stored in formats) + steps


def learning_rates(optimizer: str, *, groups: int = 1) -> int:
    """Bytes of the learning rates that an optimizer keeps as tensors.

    Formula     4 · groups for torchao's low-bit AdamW; none for the others, where it is a number
    Unit        bytes, a whole number
    Source      torchao/optim/adam.py; torch.optim, parameter groups
    Raises      ValueError for an unknown optimizer
    """
    _parsed(optimizer)
    return LEARNING_RATE_BYTES * whole("groups", groups) if optimizer in QUANTIZED else 0


def shared_state(optimizer: str) -> int:
    """Bytes that an optimizer keeps once, for all of its parameters.

    Formula     `learning_rates` of torchao's low-bit AdamW; 2 · 256 · 4 for the two tables of
                bitsandbytes' AdamW8bit, paged or not; none for the others
    Unit        bytes, a whole number
    Source      bitsandbytes, optim/optimizer.py, fill_qmap; torchao/optim/adam.py
    Raises      ValueError for an unknown optimizer
    """
    rates = learning_rates(optimizer)
    return 2 * 256 * 4 if optimizer.startswith("bnb") and optimizer.endswith("8bit") else rates


def _parsed(optimizer: str) -> tuple[str, int]:
    """The name of an optimizer without its rank, and the rank, 0 where it has none."""
    base, _, rank = optimizer.partition("/")
    if base == "galore":
        if not rank.isdigit() or not int(rank):
            raise ValueError(f"optimizer {optimizer!r} has no rank; 'galore/128', say, has one")
        return base, int(rank)
    if optimizer not in OPTIMIZERS:
        known = ", ".join(sorted(OPTIMIZERS))
        raise ValueError(f"unknown optimizer {optimizer!r}; known: {known}, galore/<rank>")
    return base, 0
