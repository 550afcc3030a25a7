"""The cache of keys and values that transformers gives a model by default, as it grows."""

from __future__ import annotations

from .graph import Tensor
from .ops import Ops
from .setting import Setting
from .storage_log import SIZES


class Cache:
    """Mirrors DynamicCache: of each layer its keys and values, [B, K, S, H], of one dtype.

    Formula     torch.cat((old, new)): the longer tensor is there before the shorter one goes. With
                a window the old keys go only when the longer values are there too
    Dtype       that of the first keys, to which values are brought: under autocast that is fp32
                where positions are rotary, since they are applied in the dtype of the stream
    Source      transformers 5.23: cache_utils.py, DynamicLayer and DynamicSlidingWindowLayer.update
    Leaves out  what a window drops: the tokens must all lie inside it
    """

    def __init__(self, f: Ops, s: Setting) -> None:
        self.f, self.s = f, s
        self.dtype = (f.autocast or s.dtype) if s.model.learned_positions else s.dtype
        self.layers: list[list[Tensor | None]] = []
        self.windows: list[Tensor] = []
        if s.past or s.window is None:
            self.open()
        if s.past:
            shape = (s.B, s.K, s.past, s.H)
            for layer in f.each_layer(s.L):
                for i in range(2):
                    self.layers[layer][i] = f.new("cache", shape, self.dtype, "kv_cache")

    @property
    def token_bytes(self) -> int:
        """Bytes that one more token of each sequence adds to one layer."""
        return 2 * SIZES[self.dtype] * self.s.B * self.s.K * self.s.H

    def open(self) -> None:
        """What a new cache holds: nothing, but of a layer with a window its length."""
        if self.layers:
            return
        for _ in self.f.each_layer(self.s.L):
            self.layers.append([None, None])
            if self.s.window is not None:
                self.windows.append(self.f.new("window", (), "int64", "kv_cache"))

    def update(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Take in the new tokens' keys and values; returns all of them, in one piece each."""
        held = self.layers[self.f.layer]
        keys = self.joined(k)
        if self.s.window is None:
            held[0] = keys
        values = self.joined(v)
        held[:] = [keys, values]
        return keys, values

    def joined(self, new: Tensor) -> Tensor:
        """The old ones, which are still held, and the new ones as one tensor."""
        f, s = self.f, self.s
        wide = f.to(new, self.dtype)
        joined = f.new("cat", (s.B, s.K, s.seen, s.H), self.dtype, "kv_cache")
        del wide
        return joined
