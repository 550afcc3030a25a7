"""attn_implementation="flash_attention_2" in a simulated step: the package flash-attn, on CUDA.

B batch · T tokens of a row · N query heads · K key/value heads · H head width · n texts in a row

No mask is made, for whichever texts: packed ones are told apart by where each begins, which the
kernel is given as `cu_seqlens` [n+1]. A batch may have them (TRL's collator has); else each layer
looks for them in the positions of its one row and keeps them, and the longest text's length: a
number that the graph's node has by itself, until the loss is dropped.

Keeps       q, k, v, the output, one fp32 number for each query and head, two numbers of the state
            of its random numbers; of packed rows the starts. SDPA's flash kernel keeps one number
            more, and takes no packed rows
Source      transformers, modeling_flash_attention_utils.py: _flash_attention_forward,
            _is_packed_sequence, prepare_fa_kwargs_from_position_ids; masking_utils.py:
            flash_attention_mask; flash-attn 2.7, flash_attn/flash_attn_interface.py: FlashAttnFunc,
            FlashAttnVarlenFunc
Leaves out  scratch memory of its kernels, in backward an fp32 number for each query, head and 128
            more for each text, and what it accumulates gradients in; padding of heads whose width
            is no multiple of 8, which is refused
Held by     transformers' own code around a stand-in that makes and keeps what the package does, as
            the package runs on CUDA alone: tests/real/flash2.py. Not yet measured on a GPU
"""

from __future__ import annotations

from ..core.graph import Grads, Tensor
from ..core.setting import Setting
from ..ops import Ops

FLASH_2 = "flash_attention_2"


def flash2(f: Ops, s: Setting, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """flash_attention_forward: of q [B, N, T, H], k and v [B, K, T, H] the output [B, T, N·H]."""
    if q.dtype == "fp32":  # norms and rotary under autocast
        narrow = f.autocast or s.dtype
        q, k, v = f.to(q, narrow), f.to(k, narrow), f.to(v, narrow)
    if s.texts == "packed" and s.cached and s.K > 1 and s.T > 1:
        k, v = f.copy(k), f.copy(v)  # from head by head into rows
    found: list[Tensor] = []
    if s.B == 1 and s.T > 1 and not (s.texts == "packed" and not s.looked_for):
        _look(f, s)
        found = _starts(f, s) if s.texts == "packed" else []
    out = f.new("flash_attn", q.shape, q.dtype)
    lse = f.new("flash_attn", (s.B, s.N, s.T), "fp32")
    state = f.new("flash_attn", (2,), "int64")
    shapes = (q.shape, k.shape, v.shape)
    f.hold(found[1:])

    def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
        return [f.new("flash_attn_backward", shape, grads[0].dtype) for shape in shapes]

    kept = [("q", q), ("k", k), ("v", v), ("out", out), ("softmax_lse", lse)]
    kept += [("cu_seqlens", found[0])] if found else []
    kept.append(("rng_state", state))
    f.apply("flash_attn", [q, k, v], [out], run, kept, late=True)
    return f.view(out, s.B, s.T, s.attended)


def _look(f: Ops, s: Setting) -> None:
    """_is_packed_sequence: whether the positions of the one row are 0, 1, 2, ..."""
    plain, least = f.new("arange", (s.T,), "int64"), f.new("min", (), "int64")
    rising = f.new("add", (s.T,), "int64")
    del plain, least
    apart = f.new("sub", (1, s.T), "int64")
    size = f.new("abs", (1, s.T), "int64")
    del apart
    count = f.new("sum", (), "int64")
    del size
    answer = f.new("bool", (), "bool")
    del rising, count, answer


def _starts(f: Ops, s: Setting) -> list[Tensor]:
    """Where texts begin, and the length of the longest: prepare_fa_kwargs_from_position_ids."""
    texts = s.looked_for
    least = f.new("min", (), "int64")
    first = f.new("eq", (s.T,), "bool")
    del least
    places = f.new("nonzero", (texts, 1), "int64")
    del first
    narrow, end = f.new("to", (texts,), "int32"), f.new("tensor", (1,), "int32")
    starts = f.new("cat", (texts + 1,), "int32")
    del narrow, end
    lengths = f.new("diff", (texts,), "int32")
    longest = f.new("max", (), "int32")
    del lengths, places
    return [starts, longest]
