"""What both decoders share: running a layer, the loss, and the check of the model they get."""

import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ...families import FAMILIES
from ...model import Model


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
    # Position t is asked for token t+1, and the last one for nothing (-100 is ignored). Shifting
    # the labels rather than the logits spares a copy of the largest tensor of the step.
    next_BT = F.pad(labels_BT[:, 1:], (0, 1), value=-100)
    return F.cross_entropy(logits_BTV.float().flatten(0, 1), next_BT.flatten())


def check(model: Model, families: tuple[str, ...], free: tuple[str, ...]) -> None:
    """Fail by name unless the model is what its family usually is, up to the flags in `free`."""
    if model.family not in families:
        raise ValueError(f"family {model.family!r} is not built here; known: {', '.join(families)}")
    usual = {"embed_dim": model.d_model, **FAMILIES[model.family]}
    for flag, value in usual.items():
        if flag not in free and getattr(model, flag) != value:
            raise ValueError(
                f"{flag}={getattr(model, flag)!r} is not built here; "
                f"in the {model.family} family it is {value!r}"
            )
