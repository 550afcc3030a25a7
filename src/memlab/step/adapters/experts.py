"""LoRA beside parameters that are no linear layers: all experts of a layer, and its router.

peft wraps the module that has the parameter and, while that module runs, puts the parameter plus
the adapter's product in its place. So a weight as large as all experts of the layer is written out
in each forward pass, and autograd keeps it until backward, where its gradient is as large again.

r rank · X experts · [X, F, D] their weight: an adapter is a [X·r, D] and b [F, X·r]

Source      peft, tuners/lora/layer.py: ParamWrapper, _LoraFactorsProxy; torch,
            torch/nn/utils/parametrize.py, whose check of a new parametrization makes the sum once
            before it is used, and whose cache holds it until the outermost wrapper returns
Leaves out  adapters in 16 bits beside a router on a CPU, where peft casts them; lora_alpha = r, for
            which autograd makes one small product less
"""

from __future__ import annotations

from ..core.graph import Grads, Tensor, call
from ..core.storage_log import Dim
from ..ops import Ops

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ...adapters import Lora

    Shapes = dict[str, tuple[int, ...]]
    Weights = dict[str, Tensor]

# Outermost first: peft wraps a module once for each of its parameters, in their order.
EXPERTS = ("experts_down", "experts_up")
ROUTER = ("router",)


def with_adapters(lora: Lora | None, shapes: Shapes, *, rows: bool = False) -> Shapes:
    """Parameters of one module, and after them the matrices beside those that are targets.

    rows        whether experts are stored [X, D, F], as peft knows by their `is_transposed`
    """
    made = dict(shapes)
    for name, shape in shapes.items():
        if lora is None or name not in lora.targets:
            continue
        r, last = lora.rank_of(name), len(shape) - 1
        inputs, outputs = (shape[1], shape[2]) if rows else (shape[last], shape[last - 1])
        narrow = Dim("r", r) if last == 1 else Dim("X·r", shape[0] * r)
        made |= {f"{name}.a": (narrow, inputs), f"{name}.b": (outputs, narrow)}
    return made


def wrapped(
    f: Ops, w: Weights, names: tuple[str, ...], run: Callable[[Weights], Any], rows: bool = False
) -> Any:
    """ParamWrapper.forward around the module that has these parameters, for each with an adapter.

    run         what the module does with its weights, which it asks for by `weight`
    """
    if not names:
        return run(w)
    name = names[0]
    if f"{name}.a" not in w or not f.adapters:
        return wrapped(f, w, names[1:], run, rows)
    made = _product(f, w, name) if len(w[name].shape) == 2 else _factors(f, w, name, rows)
    check = _sum(f, w[name], made)  # of register_parametrization
    del check
    beside = {f"{name}.{i}": part for i, part in enumerate(made)}
    return call(wrapped, f, {**w, **beside}, names[1:], run, rows)


def weight(f: Ops, w: Weights, name: str) -> Tensor:
    """The parameter as the module sees it; who asks holds it until the wrapper returns."""
    made = [w[key] for key in (f"{name}.0", f"{name}.1") if key in w]
    return _sum(f, w[name], made) if made else w[name]


def _sum(f: Ops, base: Tensor, made: list[Tensor]) -> Tensor:
    return f.add(base, made[0]) if len(made) == 1 else folded(f, base, *made)


def _factors(f: Ops, w: Weights, name: str, rows: bool) -> list[Tensor]:
    """get_delta_factors: left and right of the product [X, F, r] · [X, r, D], or of its transpose.

    b lies [F, r, X] in memory, so its gradient is written out once more; a's is a view, but for
    experts that are stored [X, D, F].
    """
    a, b = w[f"{name}.a"], w[f"{name}.b"]
    base = w[name]
    r = Dim("r", a.shape[0] // base.shape[0])
    X, D, F = base.shape[0], a.shape[1], b.shape[0]
    if rows:
        left = _seen(f, a, (X, D, r), copied=True)
        right = _seen(f, b, (X, r, F), copied=True)
    else:
        right = _seen(f, a, (X, r, D))
        left = _seen(f, b, (X, F, r), copied=True)
    left = f.to(left, base.dtype)
    return [left, f.to(right, base.dtype)]


def _seen(f: Ops, x: Tensor, shape: tuple[int, ...], *, copied: bool = False) -> Tensor:
    """Another order of the same storage; its gradient is a view of, or has to be copied into, x's.

    copied      whether it is
    """
    out = Tensor(shape, x.dtype, x.storage)
    before = x.shape

    def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
        (g,) = grads
        return [f.new("clone", before, g.dtype) if copied else f.view(g, *before)]

    f.apply("view", [x], [out], run)
    return out


def _product(f: Ops, w: Weights, name: str) -> list[Tensor]:
    """get_delta_weight of a parameter of two dimensions: b · a, written out."""
    a, b = f.cast(w[f"{name}.a"]), f.cast(w[f"{name}.b"])
    made = f.new("mm", w[name].shape, a.dtype)
    shapes = (b.shape, a.shape)

    def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
        (g,) = grads
        found: Grads = [None, None]
        for i in (1, 0):
            if needs[i]:
                found[i] = f.new("mm", shapes[i], g.dtype)
        return found

    f.apply("mm", [b, a], [made], run, [("self", b), ("mat2", a)])
    made = f.scale(made)
    return [f.to(made, w[name].dtype)]


def folded(f: Ops, base: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """torch.baddbmm(base, left, right, alpha): base and the product in one new tensor.

    Autocast is off inside, so all are in the format of the base, which is frozen.

    Source      torch: tools/autograd/derivatives.yaml, baddbmm; maybe_multiply in
                torch/csrc/autograd/FunctionsManual.cpp
    """
    out = f.new("baddbmm", base.shape, base.dtype)
    shapes = (left.shape, right.shape)

    def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
        (g,) = grads
        made: Grads = [None, None]
        for i, shape in enumerate(shapes):
            product = f.new("bmm", shape, g.dtype)
            made[i] = f.new("mul", shape, g.dtype)
            del product
        return made

    kept = [("batch1", left), ("batch2", right)]
    f.apply("baddbmm", [left, right], [out], run, kept)
    return out
