"""What both decoders share: running a layer, the loss, and the check of the model they get."""

import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ...families import record_of
from ...model import Model
from ..loss import IGNORED, chunked_cross_entropy


def run_layer(layer: nn.Module, x_BTD: Tensor, *more: Tensor, again: bool) -> Tensor:
    """Call a layer; `again`: keep only its input, and compute the rest again in backward.

    Source      Chen et al. 2016, arXiv:1604.06174
    """
    if again:
        return checkpoint(layer, x_BTD, *more, use_reentrant=False)
    return layer(x_BTD, *more)


def next_token_loss(logits_BTV: Tensor, labels_BT: Tensor) -> Tensor:
    """Mean cross-entropy of every next token, computed in fp32 as transformers does.

    Shapes      logits [B, T, V], labels [B, T] as the ids, not yet shifted; returns a scalar
    """
    next_BT = next_tokens(labels_BT)
    return F.cross_entropy(logits_BTV.float().flatten(0, 1), next_BT.flatten())


def next_tokens(ids_BT: Tensor) -> Tensor:
    """What each position is asked for: the token after it, and the last one nothing (-100)."""
    # Shifting the labels rather than the logits spares a copy of the largest tensor of the step.
    return F.pad(ids_BT[:, 1:], (0, 1), value=IGNORED)


def chunked_next_token_loss(
    x_BTD: Tensor, head_VD: Tensor, labels_BT: Tensor, chunks: int
) -> Tensor:
    """The same from the head's input, a chunk of rows at a time: no logits [B, T, V]."""
    next_BT = next_tokens(labels_BT)
    return chunked_cross_entropy(x_BTD.flatten(0, 1), head_VD, next_BT.flatten(), chunks)


def check(model: Model, families: tuple[str, ...], free: tuple[str, ...]) -> None:
    """Fail by name unless the model is what its family usually is, up to the flags in `free`."""
    if model.family not in families:
        known = ", ".join(families)
        raise ValueError(
            f"family {model.family!r} is not built here; known: {known}; "
            "implementation='transformers' builds it"
        )
    usual = {"embed_dim": model.d_model, **record_of(model.family).flags}
    for flag, value in usual.items():
        if flag not in free and getattr(model, flag) != value:
            raise ValueError(
                f"{flag}={getattr(model, flag)!r} is not built here; "
                f"in the {model.family} family it is {value!r}"
            )
