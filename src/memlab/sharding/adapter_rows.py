"""LoRA's matrices as FSDP2 divides them: each by its rows, which few of them have many of.

r rank of an adapter · R ranks · [F, D] a linear layer's weight: an adapter is a [r, D] and b [F, r]
"""

from __future__ import annotations

from ..adapters import Lora
from ..adapters.lora import beside
from ..formats import storage
from ..model import Model
from ..terms.optimizer import numel
from ..terms.sharding import row_shard
from . import Sharding

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Iterator


def trained_shapes(lora: Lora, model: Model) -> Iterator[tuple[tuple[int, ...], int]]:
    """The shape of each kind of matrix beside the layers, and how many of it there are.

    Source      peft, tuners/lora/layer.py: lora_A is a linear layer from D to r, lora_B one
                from r to F, of a Conv1D as well
    """
    known = beside(model)
    for name in lora.targets:
        tensor, rank = known[name], lora.rank_of(name)
        outputs, inputs = reversed(tensor.shape) if model.conv1d else tensor.shape[-2:]
        rank *= tensor.numel // (outputs * inputs)  # all experts of a layer in one parameter
        yield (rank, inputs), tensor.copies
        yield (outputs, rank), tensor.copies
        if lora.dora:
            yield (outputs,), tensor.copies


def part_count(lora: Lora, model: Model, devices: Sharding) -> int:
    """Values of all adapters that the fullest of R ranks stores.

    Formula     sum over the adapted layers of ceil(r / R) · D + ceil(F / R) · r, and with DoRA of
                ceil(F / R): beyond r ranks a's part is one row however many there are
    Unit        values; the tables that are trained in full (`saved`) are counted by `saved_part`
    Source      torch, torch/distributed/fsdp/_fully_shard/_fsdp_param.py: Shard(0), padded
    """
    shapes = trained_shapes(lora, model)
    return sum(numel(row_shard(shape, ranks=devices.sharers)) * n for shape, n in shapes)


def saved_part(lora: Lora, model: Model, devices: Sharding) -> int:
    """Values of the copies of tables that are trained in full: ceil(V / R) · D for each."""
    (table,) = [t for t in model.tensors() if t.component == "embedding"]
    return numel(row_shard(table.shape, ranks=devices.sharers)) * len(set(lora.saved))


def weight_bytes(lora: Lora, model: Model, dtype: str, theirs: str, devices: Sharding) -> int:
    """Bytes of one rank's part of the frozen base, of the adapters and of saved copies.

    dtype       of the base and of the copies
    theirs      of the adapters
    """
    base = sum(numel(devices.shape(t, "weights")) * t.copies for t in model.tensors())
    rest = storage(part_count(lora, model, devices), theirs)
    return storage(base + saved_part(lora, model, devices), dtype) + rest
