"""The parameter tensors of a model whose network was recorded: as its own modules have them."""

from __future__ import annotations

from ..families import record_of
from ..families.recorded import own_of, recording, sized, variant

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .model import Model


def rows(model: Model) -> Iterator[tuple[str, tuple[int, ...], str, int, bool]]:
    """What memlab.model.tensors.Tensor is made of, in the order of the modules.

    Leaves out  a tied output head, because it is the embedding; buffers
    """
    pinned = record_of(model.family).recorded or {}
    sizes = {
        "L": model.layers,
        "D": model.d_model,
        "F": model.d_ff,
        "N": model.heads,
        "K": model.kv_heads,
        "G": model.heads // model.kv_heads,
        "H": model.head_dim,
        "V": model.vocab,
        "P": model.positions,
    }
    for letter, (key, usual) in own_of(model.family).items():
        sizes[letter] = model.config.get(key, usual)
    told = recording(model.family)["family"]["weights"][variant(pinned, model.config)]
    for name, component, words, linear, inside in told:
        if name == "lm_head" and model.tied:
            continue
        shape = tuple([sized(word, sizes.__getitem__) for word in words])
        where, copies = (f"layers.{component}.", model.layers) if inside else ("", 1)
        if inside and component == "norm":
            where = "layers."
        yield f"{where}{name}", shape, component, copies, bool(linear)


def counted(model: Model, parts: dict[str, int]) -> dict[str, int]:
    """The parameters of each component, added to `parts`."""
    for tensor in model.tensors():
        parts[tensor.component] += tensor.count
    return parts
