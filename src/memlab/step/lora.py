"""LoRA adapters in a simulated step: a frozen base, thin matrices beside some of its layers."""

from __future__ import annotations

from collections.abc import Mapping

from ..frozen import dataclass
from ..model import Model
from ..units import whole
from .engine import Dim, Tensor, call
from .ops import Ops

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from .. import model as models

LLAMAS = ("llama", "mistral", "qwen2", "qwen3")

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
    Source      Hu et al. 2021, arXiv:2106.09685; run as memlab.lab.lora does
    Leaves out  dropout on the adapter's input; adapters in another format than the weights
    """

    rank: int
    targets: tuple[str, ...] = ("q", "v")

    def shapes(self, name: str, outputs: int, inputs: int) -> dict[str, tuple[int, ...]]:
        """The two matrices beside a linear layer, in the order in which they are registered."""
        if name not in self.targets:
            return {}
        r = Dim("r", self.rank)
        return {f"{name}.a": (r, inputs), f"{name}.b": (outputs, r)}

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
    if not lora.targets:
        raise ValueError("targets=(): adapters need at least one layer to stand beside")


def linear(f: Ops, x: Tensor, weights: Mapping[str, Tensor], name: str) -> Tensor:
    """A linear layer, with its adapter where it has one."""
    if f"{name}.a" in weights:
        return call(_adapted, f, x, weights, name)
    return f.linear(x, weights[name], weights.get(f"{name}.bias"))


def _adapted(f: Ops, x: Tensor, weights: Mapping[str, Tensor], name: str) -> Tensor:
    """memlab.lab.lora.LoRALinear: base(x) + b(a(x)) · scale."""
    return f.add(
        f.linear(x, weights[name], weights.get(f"{name}.bias")),
        f.scale(f.linear(f.linear(x, weights[f"{name}.a"]), weights[f"{name}.b"])),
    )


def _linear(model: Model) -> dict[str, models.Tensor]:
    return {
        tensor.name.split(".")[-1]: tensor
        for tensor in model.tensors()
        if tensor.linear and tensor.component in ("attention", "feed_forward")
    }
