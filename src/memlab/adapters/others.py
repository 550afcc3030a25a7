"""Adapters of peft that are no thin matrices: (IA)³, VeRA and prompt tuning.

r rank · [F, D] a linear layer's weight · n virtual tokens · D the width of the stream
"""

from __future__ import annotations

from ..base.frozen import dataclass
from ..units import MANY, at_least_one
from .lora import DTYPES, Lora, linear_layers

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    from ..model import Model
    from ..model.tensors import Tensor

SCALED_BEFORE = "down"  # the layer whose inputs (IA)³ scales: in the paper what activates the gate


@dataclass(frozen=True)
class Ia3:
    """A vector beside each of these layers, which its outputs are multiplied with.

    targets     names of Model.tensors(), as of memlab.step.Lora
    feed_forward    those of them whose inputs are multiplied instead; None: `down`, where it is one
    dtype       as of memlab.step.Lora: None is what peft makes by itself
    Source      Liu et al. 2022, arXiv:2205.05638; run as peft, tuners/ia3/layer.py
    Leaves out  a base in nf4; modules_to_save
    Raises      ValueError for no targets and for a name that is not one of them
    """

    targets: tuple[str, ...] = ("k", "v", "down")
    feed_forward: tuple[str, ...] | None = None
    dtype: str | None = None

    def __post_init__(self) -> None:
        _listed(self, "targets")
        if self.feed_forward is not None:
            _listed(self, "feed_forward", empty=True)
            for name in self.feed_forward:
                if name not in self.targets:
                    raise ValueError(f"feed_forward names {name!r}, which is none of the targets")
        _known_format(self)

    def scales_inputs(self, target: str) -> bool:
        """Whether the vector beside this layer multiplies its inputs."""
        named = (SCALED_BEFORE,) if self.feed_forward is None else self.feed_forward
        return target in named

    def told(self) -> str:
        """What a title says of it."""
        return f"(IA)³ on {','.join(self.targets)}" + (f" in {self.dtype}" if self.dtype else "")

    def format(self, weights: str, *, peft: bool) -> str:
        """As of memlab.step.Lora."""
        return Lora(1, dtype=self.dtype).format(weights, peft=peft)

    def check(self, model: Model) -> None:
        """Refuse a target that this model has not."""
        Lora(1, self.targets).check(model)

    def parameter_count(self, model: Model) -> int:
        """Parameters of all vectors.

        Formula     sum over the layers [F, D] of F, or of D where the inputs are scaled
        """
        known, total = linear_layers(model), 0
        for name in self.targets:
            outputs, inputs = _sides(model, known[name])
            total += (inputs if self.scales_inputs(name) else outputs) * known[name].copies
        return total


@dataclass(frozen=True)
class Vera:
    """Two random matrices, shared by all layers and frozen, and two vectors beside each layer.

    rank        of the shared matrices, which are as wide as the widest of the targets
    targets     names of Model.tensors(), as of memlab.step.Lora
    dtype       as of memlab.step.Lora, of vectors and matrices
    dropout     the probability with which values of an adapter's input are dropped
    Source      Kopiczko et al. 2024, arXiv:2310.11454; run as peft, tuners/vera/layer.py
    Leaves out  a base in nf4; modules_to_save
    Raises      ValueError for rank 0, no targets, a probability of 1
    """

    rank: int = 256
    targets: tuple[str, ...] = ("q", "v")
    dtype: str | None = None
    dropout: float = 0.0

    def __post_init__(self) -> None:
        _listed(self, "targets")
        Lora(self.rank, self.targets, dropout=self.dropout)  # which checks them
        _known_format(self)

    def told(self) -> str:
        """What a title says of it."""
        words = f"VeRA r={self.rank} on {','.join(self.targets)}"
        return words + (f" in {self.dtype}" if self.dtype else "")

    def format(self, weights: str, *, peft: bool) -> str:
        """As of memlab.step.Lora."""
        return Lora(1, dtype=self.dtype).format(weights, peft=peft)

    def check(self, model: Model) -> None:
        """Refuse a target that this model has not."""
        Lora(1, self.targets).check(model)

    def parameter_count(self, model: Model) -> int:
        """Parameters of all vectors.

        Formula     sum over the layers [F, D] of r + F
        """
        known = linear_layers(model)
        adapted = [known[name] for name in self.targets]
        return sum([(self.rank + _sides(model, t)[0]) * t.copies for t in adapted])

    def shared(self, model: Model) -> tuple[int, int]:
        """The largest F and D of the targets: the shared matrices are [r, D] and [F, r].

        Formula     r · (max D + max F) frozen values, once for the whole model
        """
        known = linear_layers(model)
        found = [_sides(model, known[name]) for name in self.targets]
        return max([outputs for outputs, _ in found]), max([inputs for _, inputs in found])


@dataclass(frozen=True)
class Prompt:
    """Prompt tuning: virtual tokens before each sequence, whose embeddings alone are trained.

    tokens      virtual tokens, which stand before the `tokens` of the run in every layer
    Source      Lester et al. 2021, arXiv:2104.08691; run as peft, peft_model.py:
                PeftModelForCausalLM.forward, which makes the embeddings in fp32
    Leaves out  prompts made by a network of their own (p-tuning), prefixes of keys and values
    Raises      ValueError for no tokens
    """

    tokens: int = 20

    def __post_init__(self) -> None:
        at_least_one("virtual tokens", self.tokens, MANY)

    def told(self) -> str:
        """What a title says of it."""
        return f"a prompt of {self.tokens} trained tokens"

    def format(self, weights: str, *, peft: bool) -> str:
        """Of the embeddings: fp32, whatever the weights are."""
        return "fp32"

    def check(self, model: Model) -> None:
        """Refuse a model whose embeddings are not as wide as its stream."""
        if model.embed_dim != model.d_model:
            raise ValueError("a prompt beside projections of the embedding is not described")

    def parameter_count(self, model: Model) -> int:
        """Parameters of all virtual tokens.

        Formula     n · D
        """
        return self.tokens * model.d_model


def _sides(model: Model, tensor: Tensor) -> tuple[int, int]:
    """Outputs and inputs of a linear layer, which some families store the other way round."""
    first, last = tensor.shape
    return (last, first) if model.conv1d else (first, last)


def _listed(adapter: Any, field: str, *, empty: bool = False) -> None:
    value = getattr(adapter, field)
    if isinstance(value, str):
        raise TypeError(f"{field}={value!r} is text; a tuple such as ('k', 'v')")
    object.__setattr__(adapter, field, tuple(value))
    if not value and not empty:
        raise ValueError(f"{field}=(): adapters need at least one layer to stand beside")


def _known_format(adapter: Any) -> None:
    if adapter.dtype is not None and adapter.dtype not in DTYPES:
        raise ValueError(f"dtype={adapter.dtype!r} of adapters; known: {', '.join(DTYPES)}")
