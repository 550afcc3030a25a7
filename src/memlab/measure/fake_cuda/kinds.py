"""What operators do with values: make them, write over them, draw them, leave them unwritten."""

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..tracker import _arguments

aten = torch.ops.aten
WHOLE, FLOATS = 2**24, 2**16  # values that a tensor may have and keep: whole numbers; others
# Factories of whole numbers without a dtype of their own in the call.
INT64 = ("aten::randint", "aten::randperm", "aten::tril_indices", "aten::triu_indices")
BY_ARGUMENT = ("aten::arange", "aten::full", "aten::scalar_tensor")
FACTORIES = (*BY_ARGUMENT, "aten::zeros", "aten::ones")
# What these make is in their arguments' shapes, not their values.
FILLS = (
    *("aten::zeros_like", "aten::ones_like", "aten::full_like", "aten::new_zeros"),
    *("aten::new_ones", "aten::new_full", "aten::zero_", "aten::fill_"),
)
EMPTY = (
    *("aten::empty", "aten::empty_strided", "aten::empty_like", "aten::new_empty"),
    "aten::new_empty_strided",
)
# GradScaler's flag: no gradient is infinite, and it stays the zero that it was made with. (1 for
# every unknown number would skip each step of the optimizer.)
KEEPS = ("aten::_amp_foreach_non_finite_check_and_unscale_", "aten::_amp_update_scale_")


def whole(dtype: torch.dtype) -> bool:
    """Whether a dtype is of whole numbers, yes and no among them."""
    return not dtype.is_floating_point and not dtype.is_complex


class Kind(NamedTuple):
    """What an operator does with values."""

    keeps: bool
    written: tuple[int, ...]  # places of arguments that it writes over
    chance: bool
    fills: bool
    factory: bool


@cache
def kind_of(func: Any) -> Kind:
    name = func._schema.name
    arguments = enumerate(func._schema.arguments)
    return Kind(
        name in KEEPS,
        tuple(i for i, each in arguments if each.alias_info and each.alias_info.is_write),
        name in EMPTY or torch.Tag.nondeterministic_seeded in func.tags,
        name in FILLS,
        name in FACTORIES,
    )


def given_tensors(args: Any, kwargs: Any) -> Iterator[Tensor]:
    for each in _arguments((args, kwargs)):
        if isinstance(each, Tensor):
            yield each


def small(tensor: Tensor) -> bool:
    count = tensor.numel()
    return count <= FLOATS or (count <= WHOLE and whole(tensor.dtype))


def on_host(func: Any, given: list[Tensor], args: Any, kwargs: Any) -> bool:
    """Whether an operator is the host's business with values: on its tensors, or whole numbers."""
    device = kwargs.get("device")
    if device is not None and torch.device(device).type != "cpu":
        return False
    if given:
        if not all(
            type(each) in (Tensor, torch.nn.Parameter) and each.device.type == "cpu"
            for each in given
        ):
            return False
        lifted = func is aten.lift_fresh.default and given[0].dtype.is_floating_point
        return not lifted
    dtype, name = kwargs.get("dtype"), func._schema.name
    if dtype is None:
        numbers = [each for each in args if isinstance(each, (bool, int, float))]
        by_argument = numbers and not any(isinstance(each, float) for each in numbers)
        if name not in INT64 and not (name in BY_ARGUMENT and by_argument):
            return False
    elif not whole(dtype):
        return False
    count = 1
    for size in args[0] if args and isinstance(args[0], (list, tuple)) else ():
        count *= int(size)
    return count <= WHOLE
