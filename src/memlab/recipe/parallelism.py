"""Sharding: how many devices share a run, what they divide, and what one of them holds of a tensor.

The arithmetic is memlab.terms.sharding's; here it meets the tensors of a model.
"""

from __future__ import annotations

from ..base.frozen import dataclass
from ..model import Model
from ..model.tensors import Tensor
from ..terms import sharding as terms
from ..terms.optimizer import numel
from ..units import whole

COUNTS = ("data", "tensor", "pipeline", "context")
# By which axis of [outputs, inputs] tensor parallelism cuts a linear layer of each layer.
COLUMNS = ("q", "k", "v", "qkv", "gate", "up", "gate_up")
ROWS = ("out", "down")


@dataclass(frozen=True, kw_only=True)
class Sharding:
    """What is divided among the devices of a run; what is not is replicated.

    data        ranks that see different sequences, each with the whole network
    zero        0 to 3: what the data ranks divide; 3 is FSDP2, which cuts each tensor by rows
    tensor      ranks that divide each matrix between them (whole heads, slices of F, words)
    pipeline    ranks that divide the layers
    context     ranks that divide the tokens of a sequence; their weights are shared like data's
    Raises      ValueError for a count below 1 or an unknown stage of ZeRO
    """

    data: int = 1
    zero: int = 0
    tensor: int = 1
    pipeline: int = 1
    context: int = 1

    def __post_init__(self) -> None:
        for field in COUNTS:
            if whole(field, getattr(self, field)) == 0:
                raise ValueError(f"{field}=0; at least 1 is needed")
        terms.divided("weights", zero=self.zero)

    @property
    def ranks(self) -> int:
        """All devices."""
        return self.data * self.tensor * self.pipeline * self.context

    @property
    def sharers(self) -> int:
        """The ranks among which ZeRO divides: all that hold the same part of the network."""
        return self.data * self.context

    def check(self, model: Model) -> None:
        """Refuse what cannot be cut.

        Raises      ValueError where `tensor` does not divide K, N or F, or `pipeline` exceeds L,
                    and for either of a mixture of experts
        """
        if model.experts and self.tensor * self.pipeline > 1:
            raise ValueError(
                f"tensor={self.tensor}, pipeline={self.pipeline}: experts are divided among data "
                "ranks alone"
            )
        terms.check_tensor(self.tensor, heads=model.heads, kv_heads=model.kv_heads, d_ff=model.d_ff)
        terms.stage_layers(model.layers, stages=self.pipeline, stage=0)

    def tensors(self, model: Model, stage: int = 0) -> list[Tensor]:
        """The parameter tensors of one pipeline stage, each as tensor parallelism leaves it.

        Leaves out  padding of the vocabulary to a round number, which Megatron adds
        Raises      as `check`; ValueError for a stage that does not exist
        """
        self.check(model)
        terms.stage_layers(model.layers, stages=self.pipeline, stage=stage)
        size = [
            terms.stage_layers(model.layers, stages=self.pipeline, stage=s)
            for s in range(stage + 1)
        ]
        layers = range(sum(size[:-1]), sum(size))
        last = stage == self.pipeline - 1
        found = []
        for tensor in model.tensors():
            if self.pipeline == 1:
                copies = tensor.copies
            elif tensor.name.startswith("layers."):
                # What only every second layer has (a value embedding), the last layer has too.
                every = 1 if tensor.copies == model.layers else 2
                copies = sum((model.layers - 1 - layer) % every == 0 for layer in layers)
                if self.pipeline == 1:  # of a mixture any number of layers, which no rank divides
                    copies = tensor.copies
            elif tensor.name in ("embedding", "positions", "project_in"):
                # A tied table is needed at both ends of the pipeline.
                tied_end = tensor.name == "embedding" and model.tied and last
                copies = tensor.copies if stage == 0 or tied_end else 0
            else:
                copies = tensor.copies if last else 0
            if copies:
                shape = terms.split(tensor.shape, axis=_axis(tensor, model), ranks=self.tensor)
                kind = (tensor.component, copies, tensor.linear)
                found.append(Tensor(tensor.name, shape, *kind))
        return found

    def shape(self, tensor: Tensor, copy: str) -> tuple[int, ...]:
        """The shape of rank 0's part of one copy (weights, gradients, …): the largest part.

        FSDP2 cuts by rows and keeps the shape; ZeRO 1 and 2 cut the flattened tensor.
        """
        if not terms.divided(copy, zero=self.zero):
            return tensor.shape
        if self.zero == 3:
            return terms.row_shard(tensor.shape, ranks=self.sharers)
        flat = terms.flat_shard(numel(tensor.shape), ranks=self.sharers)
        return (flat,) if len(tensor.shape) == 1 else (flat, 1)  # still a matrix's, for Muon

    def __str__(self) -> str:
        said = [f"{f} {getattr(self, f)}" for f in COUNTS if getattr(self, f) > 1]
        return ", ".join(said + [f"ZeRO {self.zero}"] * (self.zero > 0)) or "one device"


def _axis(tensor: Tensor, model: Model) -> int | None:
    """The dimension that tensor parallelism cuts; None for what every rank holds whole."""
    if tensor.name in ("embedding", "lm_head"):
        return 0
    words = tensor.name.split(".")
    bias = words[-1] == "bias"
    name = words[-2] if bias else words[-1]
    if name in COLUMNS:
        return 1 if model.conv1d and not bias else 0
    if name in ROWS and not bias:
        return 0 if model.conv1d else 1
    return None
