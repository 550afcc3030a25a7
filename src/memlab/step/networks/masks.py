"""The masks of transformers' decoders: who made them needs them, and when there is none.

Of the texts in a batch (`Setting.texts`), full rows need no mask under SDPA, which is causal by
itself. Rows that are padded need one that says so, and so do several texts packed into one row,
whose positions begin again: both are of yes and no, [B, 1, T, T], and SDPA turns them into numbers
to add, anew in each layer, which autograd keeps.

Source      transformers, masking_utils.py: create_causal_mask, sdpa_mask, and_masks
"""

from __future__ import annotations

from ..core.graph import Tensor
from ..core.setting import Setting
from ..core.storage_log import Dim
from ..ops import Ops


def packed_check(f: Ops, s: Setting) -> Tensor | None:
    """Whether position ids start again inside a row: the number of each token's text, if packed.

    Not asked where there is a cache.
    """
    if s.cached:
        return None
    first = f.new("sub", (s.B, 1), "int64")
    joined = f.new("cat", (s.B, Dim("(T+1)", s.T + 1)), "int64")
    difference = f.new("sub", (s.B, s.T), "int64")
    del joined
    jumps = f.new("ne", (s.B, s.T), "bool")
    packed = f.new("cumsum", (s.B, s.T), "int64")
    del jumps
    none = f.new("eq", (s.B,), "bool")
    answer = f.new("all", (), "bool")
    del none, answer, first, difference
    return packed if s.texts == "packed" else None


def mask_of(
    f: Ops, s: Setting, dtype: str, window: int | None, *, chunked: bool = False
) -> Tensor | None:
    """create_causal_mask, or create_sliding_window_causal_mask with a window.

    chunked     create_chunked_causal_mask: tokens see those of their own chunk, as wide as `window`

    Eager attention adds a mask of numbers. SDPA has none, if causal says it all; but tokens at or
    beyond the window need one, of yes and no, and so do padding and packed texts.

    Source      transformers, masking_utils.py: _ignore_causal_mask_sdpa
    """
    marks = marked(f, s)
    padding = f.new("zeros", (s.B,), "int64") if chunked else None
    if s.attention == "flash_attention_2":  # which tells texts and windows apart by itself
        return None
    if s.attention == "eager":
        return causal_mask(f, s, dtype, window, chunked=chunked)
    if window is None or s.within(window) < window:
        if s.masked_texts == "full":
            return None
        if s.texts == "padded":
            _look_for_padding(f)
    mask = _boolean_mask(f, s, window, chunked)
    del padding, marks
    return mask


def marked(f: Ops, s: Setting) -> Tensor | None:
    """What says which tokens belong together: padding as yes and no, or the number of each text."""
    if s.texts == "padded":
        return f.new("to", (s.B, s.T), "bool")
    return packed_check(f, s)


def _look_for_padding(f: Ops) -> None:
    """fast_all, sum() == numel(), of each of the two cases in which causal might say it all."""
    for _ in range(2):
        count = f.new("sum", (), "int64")
        answer = f.new("eq", (), "bool")
        del count, answer


def causal_mask(
    f: Ops, s: Setting, dtype: str, window: int | None = None, *, chunked: bool = False
) -> Tensor:
    """A mask of zeros and the smallest number, [B, 1, T, S]: eager attention adds it."""
    allowed = _boolean_mask(f, s, window, chunked)
    zero = f.new("zeros", (), dtype)
    smallest = f.new("scalar", (), dtype)
    mask = f.new("mask", (s.B, 1, s.T, s.within(window)), dtype)
    del allowed, zero, smallest
    return mask


def _boolean_mask(f: Ops, s: Setting, window: int | None, chunked: bool = False) -> Tensor:
    rows = f.new("arange", (s.B,), "int64")
    heads = f.new("arange", (1,), "int64")
    indices, seen = [], s.within(window)
    for size in (s.T, seen):
        plain = f.new("arange", (size,), "int64")
        indices.append(f.new("add", (size,), "int64"))
        del plain
    if chunked:
        return _chunked(f, s, seen)
    if s.masked_texts == "full":
        mask = _causal(f, s, window, seen)
    elif s.texts == "padded":
        mask = _without_padding(f, s, window, seen)
    else:
        mask = _of_one_text(f, s, window)
    del rows, heads, indices
    return mask


def _causal(f: Ops, s: Setting, window: int | None, seen: Dim) -> Tensor:
    """Whether a token comes after another one, and no further than the window."""
    causal = (1, 1, s.T, seen)
    if window is None:
        return f.new("le", causal, "bool")
    mask = f.new("ones", (), "bool")
    first = f.new("sub", (1, 1, s.T, 1), "int64")
    near = f.new("gt", causal, "bool")
    del first
    mask = f.new("and", causal, "bool")
    del near
    past = f.new("le", causal, "bool")
    mask = f.new("and", causal, "bool")
    del past
    return mask


def _without_padding(f: Ops, s: Setting, window: int | None, seen: Dim) -> Tensor:
    """and_masks of the causal one and of what is no padding: [B, 1, T, T]."""
    mask = f.new("ones", (), "bool")
    causal = _causal(f, s, window, seen)
    mask = f.new("and", causal.shape, "bool")
    del causal
    real = f.new("index", (s.B, 1, 1, seen), "bool")
    mask = f.new("and", (s.B, 1, s.T, seen), "bool")
    del real
    return mask


def _of_one_text(f: Ops, s: Setting, window: int | None) -> Tensor:
    """and_masks of the same text and of what is causal by the positions in it: [1, 1, T, T]."""
    both = (s.B, 1, s.T, s.T)

    def pair() -> list[Tensor]:
        queries, keys = (s.B, 1, s.T, 1), (s.B, 1, 1, s.T)
        return [f.new("index", shape, "int64") for shape in (queries, keys)]

    mask = f.new("ones", (), "bool")
    texts = pair()
    same = f.new("eq", both, "bool")
    del texts
    mask = f.new("and", both, "bool")
    del same
    places = pair()
    causal = _causal(f, s, window, s.T)
    del places
    mask = f.new("and", both, "bool")
    del causal
    return mask


def _chunked(f: Ops, s: Setting, seen: Dim) -> Tensor:
    """Whether two tokens are of one chunk, and one after the other."""
    mask = f.new("ones", (), "bool")
    near = _same_chunk(f, s, seen)
    mask = f.new("and", near.shape, "bool")
    del near
    past = f.new("le", (1, 1, s.T, seen), "bool")
    mask = f.new("and", mask.shape, "bool")
    del past
    return mask


def _same_chunk(f: Ops, s: Setting, seen: Dim) -> Tensor:
    """Whether two tokens are of one chunk, [B, 1, T, S]: texts may begin where padding ends."""
    numbers = []
    for shape in ((s.B, 1, 1, seen), (s.B, 1, s.T, 1)):
        padding = f.new("index", (s.B, 1, 1, 1), "int64")
        place = f.new("sub", shape, "int64")
        del padding
        numbers.append(f.new("floor_divide", shape, "int64"))
        del place
    return f.new("eq", (s.B, 1, s.T, seen), "bool")
