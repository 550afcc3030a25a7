"""Routers whose answer is assumed: which experts each token goes to, where no tensor has values.

A layer that loops over its experts reads from its router which of them were chosen, and how many
tokens each has. Tensors without values cannot say. Here the experts that a router picks are
assumed, and whatever the layer works out from them alone (masks, counts, positions) is worked out
beside the tensors, so that it can be read.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map
from torch.utils.weak import WeakIdKeyDictionary

ATEN = torch.ops.aten
ROUTINGS = ("even", "fullest")
LARGEST = 2**26  # values of a tensor that is worked out; larger ones are no router's
_NO_VALUES = (ATEN.empty.memory_format, ATEN.empty_strided.default)


def chosen(rows: int, per_token: int, experts: int, routing: str) -> Tensor:
    """The experts of each token, [rows, per_token].

    routing     "even": one expert after the other, so that no two loads differ by more than one;
                "fullest": every token goes to the same ones
    Raises      ValueError for another routing
    """
    if routing not in ROUTINGS:
        raise ValueError(f"unknown routing {routing!r}; known: {', '.join(ROUTINGS)}")
    if routing == "fullest":
        return torch.arange(per_token).repeat(rows, 1)
    return (torch.arange(rows * per_token) % experts).view(rows, per_token)


class Routed(TorchDispatchMode):
    """While its block runs, each choice among so many experts is the assumed one.

    experts     how many there are to choose among, and
    per_token   how many are chosen; a topk of other sizes is no router's, and is left alone
    assumed     how many choices were assumed
    On          tensors without values, which get some beside them; or real ones, whose choice is
                overwritten, so that a real run can be held against the other
    Raises      what the operators raise; a value that does not follow from the choices is not there
    """

    def __init__(
        self, experts: Iterable[int], per_token: Iterable[int], routing: str = "even"
    ) -> None:
        super().__init__()
        self.experts, self.per_token = frozenset(experts), frozenset(per_token)
        self.routing, self.assumed = routing, 0
        self._values: Any = WeakIdKeyDictionary()
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> "Routed":
        self._stack.enter_context(_one_hot_as_with_values())
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._stack.close()

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func in (ATEN.nonzero.default, ATEN._local_scalar_dense.default):
            values = self._values.get(args[0])
            if values is not None:
                return self._read(func, args[0], values)
        result = func(*args, **kwargs)
        if func is ATEN.topk.default and self._routes(*args):
            self._assume(result[1], args[0].size(-1))
        else:
            self._follow(func, args, kwargs, result)
        return result

    def _routes(self, scores: Tensor, count: int, dim: int = -1, *_: Any) -> bool:
        last = dim in (-1, scores.dim() - 1)
        return last and scores.size(-1) in self.experts and count in self.per_token

    def _assume(self, picked: Tensor, experts: int) -> None:
        self.assumed += 1
        with unset_fake_temporarily():
            per_token = picked.size(-1)
            rows = picked.numel() // per_token
            values = chosen(rows, per_token, experts, self.routing).view(picked.shape)
        if _has_values(picked):
            picked.copy_(values)
        else:
            self._values[picked] = values

    def _read(self, func: Any, fake: Tensor, values: Tensor) -> Any:
        with unset_fake_temporarily():
            found = func(values)
        if not isinstance(found, Tensor):
            return found
        made = fake.new_empty(found.shape, dtype=found.dtype)
        self._values[made] = found
        return made

    def _follow(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        """The values of a result, where all that it is made of has some."""
        made = [each for each in tree_flatten(result)[0] if isinstance(each, Tensor)]
        given = [each for each in tree_flatten((args, kwargs))[0] if isinstance(each, Tensor)]
        if not made or any(_has_values(each) or each.numel() > LARGEST for each in made):
            return
        if func in _NO_VALUES or not all(each in self._values for each in given):
            for each in made:  # it may have been written into
                self._values.pop(each, None)
            return
        with unset_fake_temporarily():
            real = tree_map(lambda each: self._of(each), (args, kwargs))
            try:
                found = func(*real[0], **real[1])
            except (RuntimeError, NotImplementedError):  # a CPU cannot work it out: no value, then
                for each in made:  # an old one would be wrong, where this was written into
                    self._values.pop(each, None)
                return
            values = [each for each in tree_flatten(found)[0] if isinstance(each, Tensor)]
            for each, value in zip(made, values, strict=True):
                self._values[each] = value

    def _of(self, each: Any) -> Any:
        return self._values[each] if isinstance(each, Tensor) else each


def _has_values(tensor: Tensor) -> bool:
    return type(tensor) is Tensor and tensor.device.type != "meta"


@contextlib.contextmanager
def _one_hot_as_with_values() -> Iterator[None]:
    """torch makes one-hot rows of tensors without values by comparing, and of others by writing."""
    before: Any = F.one_hot

    def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
        if num_classes < 0:
            return before(tensor, num_classes)
        made = torch.zeros((*tensor.shape, num_classes), dtype=tensor.dtype, device=tensor.device)
        return made.scatter_(-1, tensor.unsqueeze(-1), 1)

    F.one_hot = one_hot
    try:
        yield
    finally:
        F.one_hot = before
