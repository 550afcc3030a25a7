"""Operators whose shapes depend on values: exact where those are known, else by a named policy.

Each rule is called with the mode, the operator and its arguments, with a fake tensor among them.
"""

import math
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import unset_fake_temporarily

from .kinds import aten
from .values import RULES, Rule, Values


def rule(*operators: Any) -> Any:
    """Registers a rule for operators."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(operators, function))
        return function

    return register


def _made(values: Values, like: Tensor, shape: Any, dtype: Any, value: Any = None) -> Tensor:
    made = torch.empty(tuple(shape), dtype=dtype, device=like.device)
    return made if value is None else values.say(made, value)


def _exact(values: Values, func: Any, args: Any, kwargs: Any) -> Any:
    """What an operator makes of known values; None where those of its first tensor are not."""
    known = values.of(args[0])
    if known is None:
        return None
    with unset_fake_temporarily():
        found = func(known, *args[1:], **kwargs)
    several = [found] if isinstance(found, Tensor) else found
    made = tuple(_made(values, args[0], each.shape, each.dtype, each) for each in several)
    return made[0] if isinstance(found, Tensor) else made


@rule(aten._local_scalar_dense.default)
def number(values: Values, func: Any, args: Any, kwargs: Any) -> Any:
    """item(), bool(), float(): the value, else 1, or no."""
    known = values.of(args[0])
    if known is not None:
        with unset_fake_temporarily():
            return known.item()
    dtype = args[0].dtype
    taken = False if dtype == torch.bool else 1.0 if dtype.is_floating_point else 1
    values.assumed.note("a number that is not known: {taken}", taken=taken)
    return taken


@rule(aten.nonzero.default)
def nonzero(values: Values, func: Any, args: Any, kwargs: Any) -> Any:
    """The places of a mask: all of one that is not known, or half."""
    exact = _exact(values, aten.nonzero.default, args, {})
    if exact is not None:
        return exact
    mask = args[0]
    return _made(values, mask, (_chosen(values, mask.numel()), mask.dim()), torch.int64)


def _chosen(values: Values, count: int) -> int:
    part = values.assumed.policy["mask"]
    values.assumed.note("a mask that is not known: {part} of {count}", part=part, count=count)
    return count if part == "all" else count // 2


@rule(aten.masked_select.default)
def masked_select(values: Values, func: Any, args: Any, kwargs: Any) -> Any:
    tensor, mask = args
    shape, known = torch.broadcast_shapes(tensor.shape, mask.shape), values.of(mask)
    if known is None:
        count = _chosen(values, math.prod(shape))
    else:
        with unset_fake_temporarily():
            count = int(known.expand(shape).sum())
    return _made(values, tensor, (count,), tensor.dtype)


@rule(aten.index.Tensor)
def index(values: Values, func: Any, args: Any, kwargs: Any) -> Any:
    """A mask among the indices is its places."""
    if not any(i is not None and i.dtype in (torch.bool, torch.uint8) for i in args[1]):
        return NotImplemented
    places: list[Any] = []
    for i in args[1]:
        if i is not None and i.dtype in (torch.bool, torch.uint8):
            found = nonzero(values, func, (i,), {})
            places += found.unbind(1)
            known = values.of(found)
            if known is not None:
                with unset_fake_temporarily():
                    for place, value in zip(places[-i.dim() :], known.unbind(1), strict=True):
                        values.say(place, value)
        else:
            places.append(i)
    return values.__torch_dispatch__(func, (), (args[0], places), kwargs)


@rule(aten.index_put_.default, aten._index_put_impl_.default)
def index_put(values: Values, func: Any, args: Any, kwargs: Any) -> Any:
    """Written in place: a mask decides which values, and none of them is known afterwards."""
    if all(values.of(i) is not None for i in args[1] if i is not None):
        return NotImplemented
    values.forget(args[0])
    return args[0]


@rule(aten.index_put.default)
def index_put_elsewhere(values: Values, func: Any, args: Any, kwargs: Any) -> Any:
    return torch.empty_like(args[0])


@rule(aten._unique2.default, aten.unique_consecutive.default, aten.unique_dim.default)
def unique(values: Values, func: Any, args: Any, kwargs: Any) -> Any:
    exact = _exact(values, func, args, kwargs)
    if exact is not None:
        return exact
    tensor = args[0]
    values.assumed.note("values that are not known: all different")
    return (
        _made(values, tensor, (tensor.numel(),), tensor.dtype),
        _made(values, tensor, tensor.shape, torch.int64),
        _made(values, tensor, (tensor.numel(),), torch.int64),
    )


@rule(aten.bincount.default)
def bincount(values: Values, func: Any, args: Any, kwargs: Any) -> Any:
    exact = _exact(values, func, args, kwargs)
    if exact is not None:
        return exact
    least = args[2] if len(args) > 2 else kwargs.get("minlength", 0)
    values.assumed.note("counts of values that are not known: {least} of them", least=least)
    return _made(values, args[0], (max(least, 1),), torch.int64)


@rule(aten.repeat_interleave.Tensor)
def repeat_interleave(values: Values, func: Any, args: Any, kwargs: Any) -> Any:
    exact = _exact(values, func, args, {})
    if exact is not None:
        return exact
    size = kwargs.get("output_size") or args[0].numel()
    values.assumed.note("repeats that are not known: {size} in all", size=size)
    return _made(values, args[0], (size,), torch.int64)


@rule(aten.equal.default)
def equal(values: Values, func: Any, args: Any, kwargs: Any) -> Any:
    first, second = (values.of(each) for each in args)
    if first is not None and second is not None:
        with unset_fake_temporarily():
            return torch.equal(first, second)
    alike = args[0].shape == args[1].shape
    values.assumed.note("two tensors that are not known: equal where their shapes are")
    return alike
