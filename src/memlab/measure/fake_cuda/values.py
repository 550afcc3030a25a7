"""Whole numbers keep their values, and so does what follows from them alone.

Tensors of a rehearsal have shapes and no values, but the shapes of a program follow from some:
lengths, masks, labels, the positions that are not padding. So whole numbers on the host are real
tensors, and a value that follows from known ones is kept beside its fake tensor, on the card too.
What does not follow is asked of `unknown`, which assumes by name and counts.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._ops import HigherOrderOperator
from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map
from torch.utils.weak import WeakIdKeyDictionary

from ..tracker import FAKE, _arguments
from .assumed import Assumed
from .kinds import WHOLE, Kind, given_tensors, kind_of, on_host, small

HOST = torch.device("cpu")
Rule = Callable[["Values", Any, Any, Any], Any]
RULES: dict[Any, Rule] = {}


class Values(TorchDispatchMode):
    """Knows values; stands between a FakeTensorMode and the tracker."""

    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __init__(self, shapes: Any, assumed: Assumed, rules: dict[Any, Rule]) -> None:
        super().__init__()
        self.shapes, self.assumed, self.rules = shapes, assumed, rules
        self._known: WeakIdKeyDictionary = WeakIdKeyDictionary()
        self._spoilt: dict[int, Tensor] = {}  # storages of values that somebody wrote over

    def of(self, tensor: Tensor) -> Tensor | None:
        """The values of a tensor, if they are known."""
        if type(tensor) is not FakeTensor:
            return tensor if tensor.device.type == "cpu" else None
        found = tensor.constant
        if found is not None:  # torch keeps those of a number that a program wrote down
            tensor.constant = None
            self._known[tensor] = found
            return found
        found = self._known.get(tensor)
        if found is not None and found.untyped_storage()._cdata in self._spoilt:
            return None
        return found

    def say(self, tensor: Tensor, value: Tensor) -> Tensor:
        """Keep the values of a tensor; returns the tensor."""
        self._known[tensor] = value
        return tensor

    def forget(self, tensor: Any) -> None:
        """Nothing is known of a tensor any more, nor of views of it."""
        if type(tensor) is FakeTensor:
            tensor.constant = None
            found = self._known.pop(tensor, None)
            if found is not None:
                self._spoilt[found.untyped_storage()._cdata] = found

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if torch._C._get_dispatch_mode(FAKE) is not self.shapes:
            return func(*args, **kwargs)
        for held in types:
            if hasattr(held, "__tensor_flatten__"):
                return NotImplemented
        if isinstance(func, HigherOrderOperator):  # it has no schema to be read
            return func(*args, **kwargs)
        given = list(given_tensors(args, kwargs))
        fake = False
        for each in given:
            if type(each) is FakeTensor:
                fake = True
                if each.constant is not None:
                    self.of(each)
        if not fake and on_host(func, given, args, kwargs):
            with unset_fake_temporarily():
                return func(*args, **kwargs)
        rule = self.rules.get(func) if fake else None
        if rule is not None:
            result = rule(self, func, args, kwargs)
            if result is not NotImplemented:
                return result
        try:
            result = func(*args, **kwargs)
        except NotImplementedError:
            if func._schema.returns:
                raise
            # Torch has no shapes of it (_fused_sgd_), and it makes no tensor.
            self.assumed.skip("{name}, which returns nothing", name=func._schema.name)
            result = None
        self._follow(func, args, kwargs, result, given)
        return result

    def _follow(self, func: Any, args: Any, kwargs: Any, result: Any, given: list[Tensor]) -> None:
        """Work out the values of what an operator made, or forget what it wrote over."""
        kind = kind_of(func)
        made = [each for each in _arguments((result,)) if type(each) is FakeTensor]
        if kind.keeps or not (made or kind.written):
            return
        if kind.written and not made:  # nothing comes back of a list: _foreach_add_
            over = [args[place] for place in kind.written if place < len(args)]
            made = [each for each in _arguments(over) if type(each) is FakeTensor]
            kept = all(small(each) for each in made) and self._follows(kind, given)
            if not kept or self._worked_out(func, kind, args, kwargs) is None:
                for each in made:
                    self.forget(each)
            return
        if all(small(each) for each in made) and self._follows(kind, given):
            values = self._worked_out(func, kind, args, kwargs)
            if values is not None and [v.shape for v in values] == [each.shape for each in made]:
                for each, value in zip(made, values, strict=True):
                    self._known[each] = value
                return
        if kind.written:
            for each in made:
                self.forget(each)

    def _follows(self, kind: Kind, given: list[Tensor]) -> bool:
        """Whether values of a result can be worked out."""
        if kind.fills:
            return True
        if kind.chance:
            return False
        if not given:
            return kind.factory
        return all(each.numel() <= WHOLE and self.of(each) is not None for each in given)

    def _worked_out(self, func: Any, kind: Kind, args: Any, kwargs: Any) -> list[Tensor] | None:
        def real(each: Any) -> Any:
            if isinstance(each, Tensor):
                found = self.of(each)
                if found is None:  # of which only the shape is looked at
                    found = torch.empty((), dtype=each.dtype).expand(each.shape)
                    found = found.clone() if kind.written else found
                return found
            return HOST if isinstance(each, torch.device) else each

        with unset_fake_temporarily():
            try:
                result = func(*tree_map(real, args), **tree_map(real, kwargs))
            except (RuntimeError, NotImplementedError, TypeError, ValueError, IndexError):
                return None  # the host has no such kernel: the value is not known
        return [each for each in _arguments((result,)) if isinstance(each, Tensor)]
