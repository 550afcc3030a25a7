"""DoRA in a simulated step: each row of an adapted weight has a length of its own.

The product b · a is written out in each forward pass, and so is the weight that it is added to:
with the unit matrix that peft sends through the adapter, three matrices of the layer's size for as
long as the layer runs. What stays for backward is the base's result and the adapter's, both [B, T,
F], where LoRA keeps neither.

Source      Liu et al. 2024, arXiv:2402.09353; peft, tuners/lora/dora.py: DoraLinearLayer,
            tuners/lora/variants.py: DoraLinearVariant
"""

from __future__ import annotations

from collections.abc import Mapping

from ..core.graph import Grads, Tensor, call
from ..ops import Ops
from ..ops.dropout import dropout


def dora(f: Ops, x: Tensor, weights: Mapping[str, Tensor], name: str, result: Tensor) -> Tensor:
    """The base's result, and what the adapter and the lengths of its rows change of it.

    With dropout what is dropped goes through the base once more, instead of its result.
    """
    own: Tensor | None = result
    if f.lora_dropout:
        x = dropout(f, x, f.lora_dropout)
        own = None
    return f.add(result, call(_changes, f, x, weights, name, own))


def _changes(
    f: Ops, x: Tensor, weights: Mapping[str, Tensor], name: str, result: Tensor | None
) -> Tensor:
    """DoraLinearLayer.forward: what is here has its name there, and lives as long."""
    a, b, magnitude = (weights[f"{name}.{part}"] for part in ("a", "b", "magnitude"))
    lora_weight = call(_product, f, a, b)
    lora_weight = f.to(lora_weight, x.dtype)
    weight = _whole(f, weights, name)
    weight = f.view(f.to(weight, x.dtype), b.shape[0], a.shape[1])  # gpt2 stores its transpose
    norm = call(_norms, f, weight, f.detach(lora_weight))
    scale = f.seen_as(_divided(f, magnitude, norm), 1, b.shape[0])
    lora_result = f.linear(f.linear(x, a), b)
    if result is None:
        result = f.linear(x, weight)
    elif f"{name}.bias" in weights:
        result = f.sub(result, weights[f"{name}.bias"])
    return f.add(f.mul(f.shift(scale), result), f.scale(f.mul(scale, lora_result)))


def _product(f: Ops, a: Tensor, b: Tensor) -> Tensor:
    """b · a by the forward pass of a unit matrix: three matrices, whose graph lives as they do."""
    unit = f.new("eye", (a.shape[1], a.shape[1]), a.dtype)
    made = f.linear(f.linear(unit, a), b)
    return f.seen_as(made, b.shape[0], a.shape[1])


def _norms(f: Ops, weight: Tensor, lora_weight: Tensor) -> Tensor:
    weight = f.add(weight, f.scale(lora_weight))
    return f.new("linalg_vector_norm", (weight.shape[0],), weight.dtype)


def _divided(f: Ops, a: Tensor, b: Tensor) -> Tensor:
    """a / b, of which b needs no gradient."""
    out = f.new("div", a.shape, a.dtype)

    def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
        return [f.new("div", grads[0].shape, grads[0].dtype), None]

    f.apply("div", [a, b], [out], run, [("other", b)])
    return out


def _whole(f: Ops, weights: Mapping[str, Tensor], name: str) -> Tensor:
    """The base's weight [F, D] in its own format; of codes it is written out."""
    if name in weights:
        return weights[name]
    codes = weights[f"{name}.codes"]
    return f.new("dequantize_4bit", (codes.shape[0], 2 * codes.shape[1]), "bf16")
