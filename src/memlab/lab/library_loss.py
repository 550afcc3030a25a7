"""torch's own chunked loss, F.linear_cross_entropy, and the same opened for a tracker.

torch registers that loss as one operator: what it allocates and frees before it returns is
invisible to a dispatch mode. `opened` lets torch's Python run outside of the operator, with torch's
own backward pass, so that each tensor is seen. The values are the same.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .models.common import next_tokens


def library_loss(name: str, x_BTD: Tensor, head_VD: Tensor, labels_BT: Tensor) -> Tensor:
    """The mean loss of every next token, from the head's input, by `memlab.Run`'s name of it.

    Raises      ValueError for Liger's, whose kernels are a GPU's, and without torch 2.13
    """
    if name != "linear_cross_entropy":
        raise ValueError(f"loss={name!r} does not run here; it is derived from its source")
    if not hasattr(torch.nn, "LinearCrossEntropyOptions"):
        raise ValueError(f"loss={name!r} needs torch 2.13; this is {torch.__version__}")
    options = torch.nn.LinearCrossEntropyOptions()
    with opened():
        return F.linear_cross_entropy(
            x_BTD.flatten(0, 1), head_VD, next_tokens(labels_BT).flatten(), options=options
        )


@contextmanager
def opened() -> Iterator[None]:
    """Within the block torch's chunked loss is no operator of its own: trackers see inside.

    Source      torch, torch/nn/modules/linear_cross_entropy.py
    """
    from torch.nn.modules import linear_cross_entropy as theirs

    name = "_linear_cross_entropy_batch_chunked"
    before = getattr(theirs, name)
    setattr(theirs, name, _Opened.apply)
    try:
        yield
    finally:
        setattr(theirs, name, before)


class _Opened(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *given: Any) -> Any:
        from torch.nn.modules import linear_cross_entropy as theirs

        # All but `allow_retain_graph`, which is for the backward pass.
        found = theirs._linear_cross_entropy_batch_chunked_accumulator(*given[:11], *given[12:])
        theirs._linear_cross_entropy_batch_chunked_setup_context(ctx, given, found)
        return found

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:  # type: ignore[override]
        from torch.nn.modules import linear_cross_entropy as theirs

        return theirs._linear_cross_entropy_batch_chunked_backward(ctx, *grads)
