"""LoRA adapters in a simulated step: a frozen base, thin matrices beside some of its layers."""

from __future__ import annotations

from collections.abc import Mapping

from ..formats import storage
from ..frozen import dataclass
from ..model import Model
from ..units import whole
from .engine import Dim, Tensor, call
from .ops import Ops
from .widened import keep_wide, widen_again

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from .. import model as models

LLAMAS = ("llama", "mistral", "qwen2", "qwen3")

BLOCK = 64  # values under one scale of nf4: Dettmers et al. 2023, section 3
# What is narrower than the rest, by the end of its name.
DTYPES = {"codes": "uint8", "kept": "uint8", "scales": "fp32"}

# Where the layers that can carry an adapter are described.
KNOWN = (
    ("memlab", "gpt2"),
    ("transformers", "gemma"),
    *(("memlab", family) for family in LLAMAS),
    *(("transformers", family) for family in LLAMAS),
)


@dataclass(frozen=True)
class Lora:
    """Adapters of rank r beside every layer's linear layers of these names.

    targets     names of Model.tensors(): q, k, v, out (gpt2: qkv), gate, up, down
    base        the format of the frozen linear weights of the layers, if it is not the recipe's:
                QLoRA. nf4 is described, widened to the format of the input where it is used
    keep_wide   autograd keeps the widened weight until backward; else it is widened again there
    Source      Hu et al. 2021, arXiv:2106.09685, and Dettmers et al. 2023, arXiv:2305.14314; run
                as memlab.lab.lora and memlab.lab.qlora do
    Leaves out  dropout on the adapter's input; adapters in another format than the other weights;
                scales of scales; a base in nf4 under autocast or on CUDA
    """

    rank: int
    targets: tuple[str, ...] = ("q", "v")
    base: str | None = None
    keep_wide: bool = False

    def shapes(
        self, name: str, outputs: int, inputs: int, bias: bool
    ) -> dict[str, tuple[int, ...]]:
        """A linear layer and the matrices beside it, in the order in which they are registered."""
        shapes: dict[str, tuple[int, ...]] = {name: (outputs, inputs)}
        if self.base is not None:
            codes = f"{name}.codes.kept" if self.keep_wide else f"{name}.codes"
            shapes = {codes: (outputs, inputs // 2)}
            shapes[f"{name}.scales"] = (outputs, inputs // BLOCK)
        if bias:
            shapes[f"{name}.bias"] = (outputs,)
        r = Dim("r", self.rank)
        if name in self.targets:
            shapes |= {f"{name}.a": (r, inputs), f"{name}.b": (outputs, r)}
        return shapes

    def base_bytes(self, model: Model, dtype: str) -> int:
        """Bytes of all weights of the model but the adapters.

        Formula     nf4: half a byte for each value of a layer's linear weights, and a scale of 4
                    bytes for 64 of them; all else, and without `base` everything, in `dtype`
        """
        if self.base is None:
            return storage(model.parameter_count, dtype)
        linear = sum(tensor.count for tensor in _linear(model).values())
        return storage(model.parameter_count - linear, dtype) + storage(linear, self.base)

    def parameter_count(self, model: Model) -> int:
        """Parameters of all adapters.

        Formula     sum over the adapted matrices [F, D] of r · (D + F)
        """
        known = _linear(model)
        adapted = [known[name] for name in self.targets]
        return sum(self.rank * sum(tensor.shape) * tensor.copies for tensor in adapted)


def check(lora: Lora, model: Model, implementation: str) -> None:
    """Refuse what is not described of adapters.

    Raises      ValueError for rank 0, an unknown target, a family whose adapters are not described
    """
    if whole("rank", lora.rank) == 0:
        raise ValueError("rank=0; an adapter has at least rank 1")
    if (implementation, model.family) not in KNOWN:
        raise ValueError(f"adapters are not described for {implementation} {model.family}")
    known = _linear(model)
    for name in lora.targets:
        if name not in known:
            raise ValueError(f"target {name!r} is not described; known: {', '.join(known)}")
    if lora.base not in (None, "nf4"):
        raise ValueError(f"base={lora.base!r} is not described for adapters; known: nf4")
    for name, tensor in known.items() if lora.base else ():
        if tensor.shape[-1] % BLOCK:
            raise ValueError(f"{name}: {tensor.shape[-1]} inputs do not fill blocks of {BLOCK}")
    if not lora.targets:
        raise ValueError("targets=(): adapters need at least one layer to stand beside")


def linear(f: Ops, x: Tensor, weights: Mapping[str, Tensor], name: str) -> Tensor:
    """A linear layer, with its adapter where it has one."""
    if f"{name}.a" in weights:
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


def _linear(model: Model) -> dict[str, models.Tensor]:
    return {
        tensor.name.split(".")[-1]: tensor
        for tensor in model.tensors()
        if tensor.linear and tensor.component in ("attention", "feed_forward")
    }
