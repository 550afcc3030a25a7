"""Adapters in a simulated step: a frozen base, and beside some of its layers what is trained."""

from __future__ import annotations

from collections.abc import Mapping

from ...adapters import Ia3, Lora, Prompt, Vera
from ...adapters.lora import BLOCK as BLOCK
from ...adapters.lora import LEVELS
from ...base.not_described import NotDescribed
from ...families import proven, record_of
from ...model import Model
from ...run import Run
from ..core.graph import Tensor, call
from ..core.storage_log import Dim
from ..ops import Ops
from ..ops.dropout import dropout

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable

    Base = Callable[[Ops, Tensor, Mapping[str, Tensor], str], Tensor]

# What is narrower than the rest, by the end of its name.
DTYPES = {"codes": "uint8", "kept": "uint8", "scales": "fp32", "levels": "fp32"}
ADAPTERS = ("a", "b", "magnitude", "ia3", "lambda_b", "lambda_d")


def shapes(
    lora: Lora, name: str, outputs: int, inputs: int, bias: bool, *, peft: bool
) -> dict[str, tuple[int, ...]]:
    """A linear layer and the matrices beside it, in the order in which they are registered."""
    found: dict[str, tuple[int, ...]] = {name: (outputs, inputs)}
    if lora.base is not None:
        codes = f"{name}.codes.kept" if lora.keep_wide else f"{name}.codes"
        found = {codes: (outputs, inputs // 2)}
        found[f"{name}.scales"] = (outputs, inputs // BLOCK)
        if peft:
            found[f"{name}.levels"] = (LEVELS,)
    if bias:
        found[f"{name}.bias"] = (outputs,)
    if name in lora.targets:
        r = Dim("r", lora.rank_of(name))
        found |= {f"{name}.a": (r, inputs), f"{name}.b": (outputs, r)}
        if lora.dora:
            found[f"{name}.magnitude"] = (outputs,)
    return found


def other_shapes(
    adapter: Ia3 | Vera | Prompt, name: str, outputs: int, inputs: int, bias: bool
) -> dict[str, tuple[int, ...]]:
    """A linear layer and the vectors beside it, of a kind that is not LoRA."""
    found: dict[str, tuple[int, ...]] = {name: (outputs, inputs)}
    if bias:
        found[f"{name}.bias"] = (outputs,)
    if isinstance(adapter, Prompt) or name not in adapter.targets:
        return found
    if isinstance(adapter, Ia3):
        found[f"{name}.ia3"] = (1, inputs) if adapter.scales_inputs(name) else (outputs, 1)
        return found
    found[f"{name}.lambda_b"] = (outputs,)
    found[f"{name}.lambda_d"] = (Dim("r", adapter.rank),)
    return found


def check_other(adapter: Ia3 | Vera | Prompt, model: Model, run: Run, weights: str) -> None:
    """Refuse what is not described of adapters that are not LoRA.

    Raises      ValueError for a family, a loop or a loss that is not described beside them
    """
    what = adapter.told()
    if run.implementation != "transformers" or not record_of(model.family).proves("adapters"):
        raise NotDescribed(f"{what} is not described for {run.implementation} {model.family}")
    if run.loop not in ("plain", "keeps-outputs"):
        raise NotDescribed(f"loop={run.loop!r} with {what} is not described")
    if not isinstance(adapter, Prompt):
        from .experts_supported import check_attention

        check_attention(model, adapter.targets)
    if isinstance(adapter, Prompt):
        if not record_of(model.family).proves("prompt"):
            known = ", ".join(proven("prompt"))
            raise NotDescribed(f"{what} is not described for {model.family}; known: {known}")
        if run.loss != "plain":
            raise ValueError(f"loss={run.loss!r} with {what}: it is made of the body alone")
    adapter.check(model)
    adapter.format(weights, peft=True)


def check(lora: Lora, model: Model, run: Run, weights: str) -> None:
    """Refuse what is not described of adapters.

    weights     the format of the model's own
    Raises      ValueError for a family whose adapters are not described; what `Lora.check` and
                `Lora.format` raise
    """
    peft, known = run.implementation == "transformers", record_of(model.family)
    if not (known.proves("adapters") if peft else known.own_network):
        raise NotDescribed(f"adapters are not described for {run.implementation} {model.family}")
    for field in ("dropout", "ranks", "saved", "dora"):
        if getattr(lora, field) and not peft:
            value = getattr(lora, field)
            raise ValueError(f"{field}={value!r} of adapters: peft has it, memlab.lab.lora has not")
    if peft and lora.keep_wide:
        raise ValueError("keep_wide=True is memlab.lab.quantized_linear's; bitsandbytes has it not")
    if lora.base not in (None, "nf4"):
        raise NotDescribed(f"base={lora.base!r} is not described for adapters; known: nf4")
    if lora.base is not None and model.conv1d and peft:
        raise NotDescribed(f"base={lora.base!r} is not described for transformers {model.family}")
    if model.experts:
        from .experts_supported import check_mixture

        check_mixture(lora, model, run)
    lora.check(model)
    own = run.adapters_in(weights)
    if lora.dora and lora.dropout and model.conv1d and own == weights:
        raise NotDescribed(
            f"dropout={lora.dropout} with dora=True is not described for {model.family} where "
            "adapters are stored as the weights are: peft makes a parameter of each weight there, "
            "whose gradient is computed as well (torch.nn.Parameter(weight.T))"
        )


def linear(f: Ops, x: Tensor, weights: Mapping[str, Tensor], name: str) -> Tensor:
    """A linear layer, with its adapter where it has one."""
    return adapted(f, x, weights, name, _base)


def adapted(f: Ops, x: Tensor, weights: Mapping[str, Tensor], name: str, base: Base) -> Tensor:
    """What `base` makes of x, and its adapter's product where there is one."""
    if not f.adapters:
        return base(f, x, weights, name)
    if f"{name}.ia3" in weights:
        from .ia3 import ia3

        return call(ia3, f, x, weights, name, base)  # type: ignore[no-any-return]
    if f"{name}.lambda_b" in weights:
        from .vera import vera

        return call(vera, f, x, weights, name, base)  # type: ignore[no-any-return]
    if f"{name}.a" not in weights:
        return base(f, x, weights, name)
    return call(_peft if f.peft else _ours, f, x, weights, name, base)


def _ours(f: Ops, x: Tensor, weights: Mapping[str, Tensor], name: str, base: Base) -> Tensor:
    """memlab.lab.lora.LoRALinear: base(x) + b(a(x)) · scale."""
    return f.add(
        base(f, x, weights, name),
        f.scale(f.linear(f.linear(x, weights[f"{name}.a"]), weights[f"{name}.b"])),
    )


def _peft(f: Ops, x: Tensor, weights: Mapping[str, Tensor], name: str, base: Base) -> Tensor:
    """peft.tuners.lora.layer.Linear.forward: each adapter casts its input for itself.

    Source      peft, tuners/lora/layer.py
    """
    a, b = weights[f"{name}.a"], weights[f"{name}.b"]
    if f"{name}.levels" in weights:
        return _peft_on_codes(f, x, weights, name)
    result = base(f, x, weights, name)
    dtype = result.dtype
    cast = f.to(x, a.dtype)
    if f"{name}.magnitude" in weights:
        from .dora import dora

        result = dora(f, cast, weights, name, result)
    else:
        result = f.add(result, f.scale(f.linear(f.linear(dropout(f, cast, f.lora_dropout), a), b)))
    result = f.to(result, dtype)
    return result


def _peft_on_codes(f: Ops, x: Tensor, weights: Mapping[str, Tensor], name: str) -> Tensor:
    """peft.tuners.lora.bnb.Linear4bit.forward: the base's result is copied, the product cast.

    Under autocast it leaves casts to autocast; torch.is_autocast_enabled(), which it asks, knows
    CUDA's alone.

    Source      peft, tuners/lora/bnb.py
    """
    a, b = weights[f"{name}.a"], weights[f"{name}.b"]
    result = _base(f, x, weights, name)
    result = f.copy(result)
    converts = not f.autocast or f.backend == "cpu"
    cast = f.to(x, a.dtype) if converts else x
    if f"{name}.magnitude" in weights:
        from .dora import dora

        dtype = result.dtype
        result = dora(f, cast, weights, name, result)
        return f.to(result, dtype) if converts else result
    output = f.scale(f.linear(f.linear(dropout(f, cast, f.lora_dropout), a), b))
    output = f.to(output, result.dtype) if converts else output
    result = f.add(result, output)
    return result


def _base(f: Ops, x: Tensor, weights: Mapping[str, Tensor], name: str) -> Tensor:
    bias, scales = weights.get(f"{name}.bias"), weights.get(f"{name}.scales")
    if scales is None:
        return f.linear(x, weights[name], bias)
    from ..ops.nf4_linear import keep_wide, linear_4bit, widen_again

    if f"{name}.levels" in weights:
        return call(linear_4bit, f, x, weights[f"{name}.codes"])
    if f"{name}.codes" in weights:
        return widen_again(f, x, weights[f"{name}.codes"], scales)
    return keep_wide(f, x, weights[f"{name}.codes.kept"], scales, bias)
