"""The tensors of a checkpoint one by one, in the order of its file, and their bytes.

`Model.tensors()` names each kind once; a file holds every copy, layer after layer.
"""

from __future__ import annotations

from ..formats import storage
from .model import Model
from .tensors import Tensor


def listed(model: Model) -> list[tuple[str, Tensor]]:
    """Name and kind of every tensor, the first layer's before the second's.

    Example     listed(Model.preset("gpt2"))[2][0] -> "layers.0.attention.qkv"
    Source      torch.nn.Module.state_dict, which goes through the modules in order
    Leaves out  a tied output head (it is the embedding) and buffers
    """
    kinds = model.tensors()
    before = [kind for kind in kinds if not kind.name.startswith("layers.")]
    found = [(kind.name, kind) for kind in before if kind.component in ("embedding", "positions")]
    for layer in range(model.layers):
        for kind in kinds:
            # A kind that only some layers have stands in the last ones, as far as it goes.
            if kind.name.startswith("layers.") and layer >= model.layers - kind.copies:
                found.append((kind.name.replace("layers.", f"layers.{layer}.", 1), kind))
    rest = [kind for kind in before if kind.component not in ("embedding", "positions")]
    # norms and projections come before the head
    rest.sort(key=lambda kind: kind.component == "lm_head")
    return found + [(kind.name, kind) for kind in rest]


def sizes(model: Model, format: str = "bf16") -> list[int]:
    """Bytes of every tensor in one format, in the order of `listed`.

    Formula     storage(numel, format), blocks along the last dimension
    Unit        bytes; their sum is the checkpoint without the headers of its files
    Raises      ValueError for an unknown format
    """
    return [storage(kind.numel, format, row=kind.shape[-1]) for _, kind in listed(model)]
