"""The cache of keys and values that transformers gives a model by default, as it grows."""

from __future__ import annotations

from collections.abc import Sequence

from .graph import Tensor
from .ops import Ops
from .setting import Setting
from .storage_log import SIZES, Dim


class Cache:
    """Mirrors DynamicCache: of each layer its keys and values, [B, K, S, H], of one dtype.

    Formula     torch.cat((old, new)): the longer tensor is there before the shorter one goes. With
                a window the old keys go only when the longer values are there too
    Dtype       that of a layer's first keys, to which values are brought: under autocast that is
                fp32 where positions are rotary, since they are applied in the dtype of the stream
    narrow      of each layer, whether its keys are left in autocast's dtype; None: where positions
                are learned
    rows        of keys and of values, how many of which width a token has; None: K of H
    Source      transformers 5.23: cache_utils.py, DynamicLayer and DynamicSlidingWindowLayer.update
    Leaves out  what a window drops: the tokens must all lie inside it
    """

    def __init__(
        self,
        f: Ops,
        s: Setting,
        narrow: Sequence[bool] | None = None,
        rows: Sequence[tuple[Dim, Dim]] | None = None,
    ) -> None:
        self.f, self.s = f, s
        self.rows = rows or [(s.K, s.H), (s.K, s.H)]
        if narrow is None:
            narrow = [s.model.learned_positions] * s.L
        self.dtypes = [(f.autocast or s.dtype) if each else s.dtype for each in narrow]
        self.layers: list[list[Tensor | None]] = []
        self.windows: list[Tensor] = []
        if s.past or s.window is None:
            self.open()
        if s.past:
            for layer in f.each_layer(s.L):
                for i, (heads, width) in enumerate(self.rows):
                    made = f.new(
                        "cache", (s.B, heads, s.past, width), self.dtypes[layer], "kv_cache"
                    )
                    self.layers[layer][i] = made
                    del made

    @property
    def token_bytes(self) -> int:
        """Bytes that one more token of each sequence adds to all layers."""
        values = self.s.B * sum(heads * width for heads, width in self.rows)
        return sum(SIZES[dtype] * values for dtype in self.dtypes)

    def slides(self, layer: int) -> bool:
        """Whether a layer has a window."""
        s = self.s
        return s.window is not None and (s.sliding is None or s.sliding[layer])

    def open(self) -> None:
        """What a new cache holds: nothing, but of a layer with a window its length."""
        if self.layers:
            return
        for layer in self.f.each_layer(self.s.L):
            self.layers.append([None, None])
            if self.slides(layer):
                self.windows.append(self.f.new("window", (), "int64", "kv_cache"))

    def update(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Take in the new tokens' keys and values; returns all of them, in one piece each."""
        held = self.layers[self.f.layer]
        keys = self.joined(k)
        if not self.slides(self.f.layer):
            held[0] = keys
        values = self.joined(v)
        held[:] = [keys, values]
        return keys, values

    def joined(self, new: Tensor) -> Tensor:
        """The old ones, which are still held, and the new ones as one tensor."""
        f, s = self.f, self.s
        dtype = self.dtypes[f.layer]
        wide = f.to(new, dtype)
        joined = f.new("cat", (s.B, new.shape[1], s.seen, new.shape[3]), dtype, "kv_cache")
        del wide
        return joined
