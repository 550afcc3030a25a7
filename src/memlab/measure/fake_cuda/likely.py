"""Values that are taken where none is known: finite numbers, even routers, tokens from the middle.

By them loops end and programs go the way of a run that goes well. What is a choice, and not a
certainty, is counted with its line.
"""

import math
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import unset_fake_temporarily

from .kinds import WHOLE, aten, whole
from .unknown import rule
from .values import RULES, Values

FINITE = "numbers that are not known: all finite"
EXPERTS, CHOSEN = 512, 16  # at most, for a top-k of floats to be a router's


def _taken(values: Values, made: Tensor, answer: Any) -> Tensor:
    """What is asked of every number, answered alike for all, and counted."""
    values.assumed.note(FINITE)
    if made.numel() <= WHOLE:
        with unset_fake_temporarily():
            values.say(made, answer(tuple(made.shape), dtype=torch.bool))
    return made


@rule(aten.isnan.default, aten.isinf.default, aten.isposinf.default, aten.isneginf.default)
def finite(values: Values, func: Any, args: Any, kwargs: Any) -> Any:
    """Nothing that is not known is infinite, or no number."""
    if values.of(args[0]) is not None:
        return NotImplemented
    return _taken(values, func(*args, **kwargs), torch.zeros)


@rule(aten.ne.Scalar, aten.eq.Tensor)
def asked_whether_finite(values: Values, func: Any, args: Any, kwargs: Any) -> Any:
    """The parts of isfinite(): another number than infinity, and equal to itself."""
    asked = args[1] == math.inf if func is aten.ne.Scalar else args[0] is args[1]
    if not asked or values.of(args[0]) is not None:
        return NotImplemented
    return _taken(values, func(*args, **kwargs), torch.ones)


ANDS = (aten.bitwise_and.Tensor, aten.logical_and.default)
ORS = (aten.bitwise_or.Tensor, aten.logical_or.default)


@rule(*ANDS, *ORS)
def absorbed(values: Values, func: Any, args: Any, kwargs: Any) -> Any:
    """No and anything is no, yes or anything is yes: by that generate() knows that it is done."""
    known = [values.of(each) if isinstance(each, Tensor) else None for each in args[:2]]
    sure = [each for each in known if each is not None]
    if len(sure) != 1 or kwargs:
        return NotImplemented
    made, ends = func(*args), func in ORS
    with unset_fake_temporarily():
        yes = sure[0].dtype == torch.bool or not ends
        decides = yes and bool((sure[0] == ends).all()) and sure[0].shape == made.shape
        if decides and made.numel() <= WHOLE:
            values.say(made, torch.full(tuple(made.shape), ends, dtype=made.dtype))
    return made


@rule(aten.all.default, aten.any.default)
def every(values: Values, func: Any, args: Any, kwargs: Any) -> Any:
    """A question about all of a tensor that is not known: yes to all, no to any."""
    if values.of(args[0]) is not None:
        return NotImplemented
    made, taken = func(*args, **kwargs), func is aten.all.default
    name = func._schema.name.removeprefix("aten::")
    values.assumed.note("{name}() of values that are not known: {taken}", name=name, taken=taken)
    with unset_fake_temporarily():
        return values.say(made, torch.tensor(taken))


EXTREMES = (aten.argmax.default, aten.argmin.default)


@rule(*EXTREMES, aten.multinomial.default)
def picked(values: Values, func: Any, args: Any, kwargs: Any) -> Any:
    """A sampled token, the likeliest class: the one in the middle, and so that loops go on and end.

    Vocabularies have their special tokens first or last, and one that ends a text would end it here
    """
    if values.of(args[0]) is not None and func is not aten.multinomial.default:
        return NotImplemented
    made = func(*args, **kwargs)
    if whole(made.dtype) and made.numel() <= WHOLE:
        name = func._schema.name.removeprefix("aten::")
        dim = args[1] if func in EXTREMES and len(args) > 1 else kwargs.get("dim", -1)
        among = args[0].numel() if dim is None or not args[0].dim() else args[0].size(dim)
        index = among // 2
        values.assumed.note(
            "{name} of values that are not known: index {index} of {among}",
            name=name,
            index=index,
            among=among,
        )
        with unset_fake_temporarily():
            values.say(made, torch.full(tuple(made.shape), index, dtype=made.dtype))
    return made


@rule(aten.topk.default)
def routed(values: Values, func: Any, args: Any, kwargs: Any) -> Any:
    """The experts of a router: each as often, or the first ones of every token."""
    tensor, count = args[0], args[1]
    if not router(tensor, count) or values.of(tensor) is not None:
        return NotImplemented
    made, among = func(*args, **kwargs), tensor.size(-1)
    if made[1].numel() > WHOLE:
        return made
    how = values.assumed.policy["routing"]
    values.assumed.note("{count} of {experts}: {how} routing", count=count, experts=among, how=how)
    with unset_fake_temporarily():
        values.say(made[1], experts(tuple(made[1].shape), among, how))
    return made


def router(scores: Tensor, count: int) -> bool:
    """Whether a choice of the `count` highest scores is taken for that of a router."""
    few = scores.dim() >= 2 and scores.size(-1) <= EXPERTS and count <= CHOSEN
    return few and scores.is_floating_point()


def experts(shape: tuple[int, ...], among: int, how: str) -> Tensor:
    """The experts that are chosen for each token.

    Shapes      [..., how many are chosen]
    how         "even": one after the other, so that no two loads differ by more than one;
                "fullest": the same ones for every token
    """
    order = torch.arange(math.prod(shape)) % (among if how == "even" else shape[-1])
    return order.view(shape)


ALL = RULES  # those of `unknown` and of here
