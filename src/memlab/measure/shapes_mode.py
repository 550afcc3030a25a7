"""FakeTensorMode with a shorter way to what it has already worked out.

Torch keeps what an operator makes of arguments of some shapes, and finds it by a description of
every argument that takes longer to write than a small operator to run. The layers of a model ask
for the same operators on the same shapes again and again. So here a short description is looked up
first: of a plain tensor it holds what torch's own holds, and whatever is not plain goes torch's
way.

Source      PyTorch 2.13: torch/_subclasses/fake_tensor.py, _cache_key, extract_tensor_metadata,
            _cached_dispatch_impl
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

# What torch's description of an argument is, itself and its type, and no more.
PLAIN = frozenset(
    (int, float, bool, complex, str, type(None))
    + (torch.dtype, torch.device, torch.layout, torch.memory_format)
)
# What this stands on, and no promise of torch's: without it FakeTensorMode does all by itself.
NEEDED = (
    *("_cache_key", "_cached_dispatch_impl", "_dispatch_impl", "_output_from_cache_entry"),
    *("cache",),
)
# Questions about one tensor, which torch answers before it looks anything up.
_ANSWERS = ("_DISPATCH_META_HANDLERS", "_DISPATCH_HANDLE_DIRECTLY")
_ANSWERED_APART = frozenset(func for name in _ANSWERS for func in getattr(fake_tensor, name, ()))
_VIEW, _UNSAFE_VIEW = torch.ops.aten.view.default, torch.ops.aten._unsafe_view.default
_TO = frozenset(getattr(torch.ops.aten.to, each) for each in torch.ops.aten.to.overloads())
_PROXY = torch._C._TorchDispatchModeKey.PROXY


class NotPlain(Exception):
    """An argument that the short description has no words for."""


class Numbers(NotPlain):
    """A tensor that has its values: a number on the host."""


class New(NamedTuple):
    """One tensor that an operator makes: a new one, or a view of the argument at `place`."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    kind: dict[str, Any]
    device: torch.device
    place: int | None
    at: tuple[Any, ...]


class ShapesMode(FakeTensorMode):
    """A FakeTensorMode without symbolic sizes, which finds what it has seen sooner.

    Raises      what FakeTensorMode raises
    """

    def __init__(self) -> None:
        super().__init__(allow_non_fake_inputs=True)
        self._state = fake_tensor._CacheKeyState(None)
        self._found: dict[tuple[Any, ...], Any] = {}
        self._ready: Any = None
        self._marks: dict[torch.device, dict[str, Any]] = {}  # what torch writes on a new one

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Torch would wrap each call to keep Dynamo out; where this mode is, nothing compiles."""
        return False

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if func in _ANSWERED_APART:
            return super().__torch_dispatch__(func, types, args, kwargs or {})
        if func in _TO and type(args[0]) is torch.Tensor and _to_a_gpu(args, kwargs or {}):
            # torch.tensor(..., device="cuda") under inference_mode, where autograd leaves `to`
            # whole. Torch would copy the numbers; of `_to_copy` alone it knows that it cannot.
            with self:
                return func.decompose(*args, **(kwargs or {}))
        # Torch keeps nothing of _unsafe_view, which below autograd is a view like another.
        called = _VIEW if func is _UNSAFE_VIEW else func
        return self._cached_dispatch_impl(called, types, args, kwargs or {})

    def _cached_dispatch_impl(
        self, func: Any, types: Sequence[type], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        try:
            short = self._short(func, args, kwargs)
        except Numbers:  # of which torch keeps nothing, and looks for nothing
            return self._dispatch_impl(func, types, args, kwargs)
        except NotPlain:
            return super()._cached_dispatch_impl(func, types, args, kwargs)
        if short in self._found:
            found = self._found[short]
            if found is None:  # torch keeps nothing of this
                return self._dispatch_impl(func, types, args, kwargs)
            if type(found) is New:
                return self._new(found, args)
            entry, key = found
            return self._output_from_cache_entry(self._state, entry, key, func, args)
        try:
            key = self._cache_key(fake_tensor._CacheKeyState(None), func, args, kwargs)
        except fake_tensor._BypassDispatchCache:
            return self._dispatch_impl(func, types, args, kwargs)
        self._ready = key
        output = super()._cached_dispatch_impl(func, types, args, kwargs)
        entry = FakeTensorMode.cache.get(key)
        if isinstance(entry, fake_tensor._DispatchCacheValidEntry):
            self._found[short] = self._one(entry, func, output) or (entry, key)
        elif isinstance(entry, fake_tensor._DispatchCacheBypassEntry):
            self._found[short] = None
        return output

    def _cache_key(self, *described: Any) -> Any:
        """Torch's description, which is asked for a second time by what looks it up."""
        ready, self._ready = self._ready, None
        return super()._cache_key(*described) if ready is None else ready

    def _one(self, entry: Any, func: Any, output: Any) -> New | None:
        """How to make the result again, where it is one new tensor or a view of an argument."""
        if entry.is_output_tuple or type(output) is not FakeTensor:
            return None
        (info,) = entry.output_infos
        told = info.metadata
        if info.inplace_idx is not None or told is None or told.is_conj or told.is_neg:
            return None
        device = told.device
        self._marks.setdefault(device, dict(vars(output)))
        place = info.view_idx if getattr(func, "is_view", False) else None
        at = () if place is None else (told.storage_offset, told.shape, told.stride)
        kind = {"dtype": told.dtype, "layout": told.layout, "requires_grad": told.requires_grad}
        return New(tuple(told.shape), tuple(told.stride), kind, device, place, at)

    def _new(self, found: New, args: Sequence[Any]) -> FakeTensor:
        """As torch's _get_output_tensor_from_cache_entry and FakeTensor.__new__."""
        storage = None if found.place is None else args[found.place].untyped_storage()
        with torch._C._DisableTorchDispatch():
            bare = torch.empty_strided(found.shape, found.stride, device="meta", **found.kind)
            if storage is not None:
                bare.set_(storage, *found.at)
        made = torch.Tensor._make_subclass(
            FakeTensor,
            bare,
            bare.requires_grad,
            dispatch_device=True,
            device_for_backend_keys=found.device,
        )
        if self._allow_unsafe_data_ptr_access:
            torch._C._set_warn_deprecated_on_mutable_data_ptr(made)
        else:
            torch._C._set_throw_on_mutable_data_ptr(made)
        vars(made).update(self._marks[found.device])
        return made

    def _short(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        if torch._C._get_dispatch_mode(_PROXY) is not None:
            raise NotPlain
        made = [
            func,
            torch.get_default_dtype(),
            torch._C._get_default_device(),
            torch.is_inference_mode_enabled(),
        ]
        self._add(made, args)
        for name, value in kwargs.items():
            made.append(name)
            self._add(made, (value,))
        return tuple(made)

    def _add(self, made: list[Any], values: Sequence[Any]) -> None:
        """All that decides what torch's description of these arguments is."""
        made.append(len(values))
        for value in values:
            kind = type(value)
            if kind is FakeTensor:
                if value.fake_mode is not self:
                    raise NotPlain
                if value.constant is not None:
                    raise Numbers
                if value.layout is not torch.strided or value.is_quantized:
                    raise NotPlain
                made += (
                    value.shape,
                    value.stride(),
                    value.dtype,
                    value.storage_offset(),
                    value.untyped_storage().nbytes(),
                    value.fake_device,
                    value.requires_grad,
                    value.is_conj(),
                    value.is_neg(),
                    value.is_inference(),
                )
            elif kind in PLAIN:
                made += (kind, value)
            elif kind is list or kind is tuple:
                made.append(kind)
                self._add(made, value)
            else:
                raise NotPlain


def _to_a_gpu(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    given = (*args, *kwargs.values())
    return any(type(each) is torch.device and each.type != "cpu" for each in given)


def shapes_mode() -> FakeTensorMode:
    """A mode in which tensors have shapes and no values, the quicker one where torch has its parts.

    Both give the same tensors.
    """
    parts = ("_CacheKeyState", "_BypassDispatchCache", "_DispatchCacheValidEntry")
    there = all(hasattr(FakeTensorMode, name) for name in NEEDED)
    if there and all(hasattr(fake_tensor, name) for name in (*parts, *_ANSWERS)):
        _higher_order()
        return ShapesMode()
    return FakeTensorMode(allow_non_fake_inputs=True)


def _higher_order() -> None:
    """Let operators that take operators be called here as in a FakeTensorMode.

    Torch looks them up by the mode's own class: torch/_ops.py, HigherOrderOperator.dispatch.
    """
    for each in getattr(torch._ops, "_higher_order_ops", {}).values():
        table = each.python_key_table
        if FakeTensorMode in table:
            table.setdefault(ShapesMode, table[FakeTensorMode])
