"""LoRA adapters in a simulated step: a frozen base, thin matrices beside some of its layers."""

from __future__ import annotations

from collections.abc import Mapping

from ..model import Model
from ..terms.lora import BLOCK as BLOCK
from ..terms.lora import Lora
from .graph import Tensor, call
from .ops import Ops
from .storage_log import Dim
from .widened import keep_wide, widen_again

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    pass

LLAMAS = ("llama", "mistral", "qwen2", "qwen3")

# What is narrower than the rest, by the end of its name.
DTYPES = {"codes": "uint8", "kept": "uint8", "scales": "fp32"}

# Where the layers that can carry an adapter are described.
KNOWN = (
    ("memlab", "gpt2"),
    ("transformers", "gemma"),
    *(("memlab", family) for family in LLAMAS),
    *(("transformers", family) for family in LLAMAS),
)


def shapes(
    lora: Lora, name: str, outputs: int, inputs: int, bias: bool
) -> dict[str, tuple[int, ...]]:
    """A linear layer and the matrices beside it, in the order in which they are registered."""
    found: dict[str, tuple[int, ...]] = {name: (outputs, inputs)}
    if lora.base is not None:
        codes = f"{name}.codes.kept" if lora.keep_wide else f"{name}.codes"
        found = {codes: (outputs, inputs // 2)}
        found[f"{name}.scales"] = (outputs, inputs // BLOCK)
    if bias:
        found[f"{name}.bias"] = (outputs,)
    r = Dim("r", lora.rank)
    if name in lora.targets:
        found |= {f"{name}.a": (r, inputs), f"{name}.b": (outputs, r)}
    return found


def check(lora: Lora, model: Model, implementation: str) -> None:
    """Refuse what is not described of adapters.

    Raises      ValueError for a family whose adapters are not described; what `Lora.check` raises
    """
    if (implementation, model.family) not in KNOWN:
        raise ValueError(f"adapters are not described for {implementation} {model.family}")
    lora.check(model)


def linear(f: Ops, x: Tensor, weights: Mapping[str, Tensor], name: str) -> Tensor:
    """A linear layer, with its adapter where it has one."""
    if f.adapters and f"{name}.a" in weights:
        return call(_adapted, f, x, weights, name)
    return _base(f, x, weights, name)


def _adapted(f: Ops, x: Tensor, weights: Mapping[str, Tensor], name: str) -> Tensor:
    """memlab.lab.lora.LoRALinear: base(x) + b(a(x)) · scale."""
    return f.add(
        _base(f, x, weights, name),
        f.scale(f.linear(f.linear(x, weights[f"{name}.a"]), weights[f"{name}.b"])),
    )


def _base(f: Ops, x: Tensor, weights: Mapping[str, Tensor], name: str) -> Tensor:
    bias, scales = weights.get(f"{name}.bias"), weights.get(f"{name}.scales")
    if scales is None:
        return f.linear(x, weights[name], bias)
    if f"{name}.codes" in weights:
        return widen_again(f, x, weights[f"{name}.codes"], scales)
    return keep_wide(f, x, weights[f"{name}.codes.kept"], scales, bias)
