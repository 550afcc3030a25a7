"""LoRA: thin matrices beside frozen ones, which are trained in their place.

r rank of an adapter · [F, D] a linear layer's weight: an adapter is a [r, D] and b [F, r]
"""

from __future__ import annotations

from ..base.frozen import dataclass
from ..formats import storage
from ..units import whole

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from ..model import Model
    from ..model.tensors import Tensor

BLOCK = 64  # values under one scale of nf4: Dettmers et al. 2023, section 3


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
    Raises      ValueError for rank 0, no targets, a base that is not described
    """

    rank: int
    targets: tuple[str, ...] = ("q", "v")
    base: str | None = None
    keep_wide: bool = False

    def __post_init__(self) -> None:
        if whole("rank", self.rank) == 0:
            raise ValueError("rank=0; an adapter has at least rank 1")
        if isinstance(self.targets, str):
            raise TypeError(f"targets={self.targets!r} is text; a tuple such as ('q', 'v')")
        object.__setattr__(self, "targets", tuple(self.targets))
        if not self.targets:
            raise ValueError("targets=(): adapters need at least one layer to stand beside")
        if self.base not in (None, "nf4"):
            raise ValueError(f"base={self.base!r} is not described for adapters; known: nf4")

    def check(self, model: Model) -> None:
        """Refuse what this model has no place for.

        Raises      ValueError for an unknown target and for rows that blocks of 64 do not fill
        """
        known = linear_layers(model)
        for name in self.targets:
            if name not in known:
                raise ValueError(
                    f"target {name!r} is not described; known: {', '.join(sorted(known))}"
                )
        for name in sorted(known) if self.base else ():
            inputs = known[name].shape[-1]
            if inputs % BLOCK:
                raise ValueError(f"{name}: {inputs} inputs do not fill blocks of {BLOCK}")

    def base_bytes(self, model: Model, dtype: str) -> int:
        """Bytes of all weights of the model but the adapters.

        Formula     nf4: half a byte for each value of a layer's linear weights, and a scale of 4
                    bytes for 64 of them; all else, and without `base` everything, in `dtype`
        """
        if self.base is None:
            return storage(model.parameter_count, dtype)
        linear = sum(tensor.count for tensor in linear_layers(model).values())
        return storage(model.parameter_count - linear, dtype) + storage(linear, self.base)

    def parameter_count(self, model: Model) -> int:
        """Parameters of all adapters.

        Formula     sum over the adapted matrices [F, D] of r · (D + F)
        """
        known = linear_layers(model)
        adapted = [known[name] for name in self.targets]
        return sum(self.rank * sum(tensor.shape) * tensor.copies for tensor in adapted)


def linear_layers(model: Model) -> dict[str, Tensor]:
    """The linear layers inside a model's blocks, by the last part of their names.

    Formula     an adapter of rank r beside a layer [F, D] has r · (D + F) parameters
    Source      Hu et al. 2021, arXiv:2106.09685, section 4.1
    """
    return {
        tensor.name.split(".")[-1]: tensor
        for tensor in model.tensors()
        if tensor.linear and tensor.component in ("attention", "feed_forward")
    }
