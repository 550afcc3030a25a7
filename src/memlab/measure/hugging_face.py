"""Let transformers' masks be made as in a real run.

Its mask code reads values ("is any token padding?", "are several texts packed into this row?") and,
because it takes fake tensors for a compiler at work, it does not read those of a trace: it then
builds a full mask, and attention with a mask runs in another kernel that keeps other tensors.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor


@contextmanager
def real_masks(padding: bool) -> Iterator[None]:
    """While the block runs, answer for the values that a trace does not have.

    Packed      each row is taken for one text: position_ids count up
    Padding     a mask for padded tokens is made if `padding` (see `pads`), else none
    Source      transformers 5.23, masking_utils.py
    """
    masking: Any = sys.modules.get("transformers.masking_utils")
    if masking is None:
        yield
        return
    packed = masking.find_packed_sequence_indices
    skips = ("_ignore_causal_mask_sdpa", "_ignore_bidirectional_mask_sdpa")
    before = {name: getattr(masking, name) for name in skips}

    def one_text(position_ids: Tensor) -> Tensor | None:
        indices = packed(position_ids)  # the real run makes these tensors too, then drops them
        if not isinstance(indices, FakeTensor):
            return indices
        (indices[:, -1] == 0).all()
        return None

    def asked(name: str) -> Any:
        def skip(padding_mask: Tensor | None, *args: Any, **kwargs: Any) -> bool:
            if isinstance(padding_mask, FakeTensor) and not padding:
                padding_mask = None
            return before[name](padding_mask, *args, **kwargs)

        return skip

    masking.find_packed_sequence_indices = one_text
    for name in skips:
        setattr(masking, name, asked(name))
    try:
        yield
    finally:
        masking.find_packed_sequence_indices = packed
        for name, function in before.items():
            setattr(masking, name, function)


def pads(inputs: Any) -> bool:
    """Whether tokens may be padding: inputs have an attention_mask that is not known to be true."""
    mask = inputs.get("attention_mask") if hasattr(inputs, "get") else None
    if not isinstance(mask, Tensor) or isinstance(mask, FakeTensor) or mask.is_meta:
        return mask is not None
    return not bool(mask.all())
