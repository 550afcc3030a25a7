"""The cache of keys and values that transformers gives a model by default, as it grows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..run.loop_rules import keeps_output
from .core.graph import Tensor
from .core.setting import Setting
from .core.storage_log import SIZES, Dim
from .ops import Ops

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    from ..run.run import Run


def keeps_keys(run: Run, config: Mapping[str, Any]) -> bool:
    """Whether a kept output has the keys and values of every layer: those of its cache.

    A model of transformers makes one in training too, unless its config says use_cache=False, and
    none where layers are checkpointed. nanoGPT's own model has none.

    Source      transformers 5.23: models/*/modeling_*.py, forward; modeling_layers.py,
                GradientCheckpointingLayer
    """
    made = run.implementation == "transformers" and run.checkpointing == "none"
    made = made and run.loop != "nanogpt" and config.get("use_cache") is not False
    return made and keeps_output(run)


class Cache:
    """Mirrors DynamicCache: of each layer its keys and values, [B, K, S, H], of one dtype.

    Formula     torch.cat((old, new)): the longer tensor is there before the shorter one goes. With
                a window the old keys go only when the longer values are there too
    Dtype       that of a layer's first keys, to which values are brought: under autocast that is
                fp32 where positions are rotary, since they are applied in the dtype of the stream
    narrow      of each layer, whether its keys are left in autocast's dtype; None: where positions
                are learned
    rows        of keys and of values, how many of which width a token has; None: K of H
    Source      transformers: cache_utils.py, DynamicLayer and DynamicSlidingWindowLayer.update
    window      a layer gives back all keys that it joined and keeps its last W - 1 as a slice,
                which holds them all until the next call: after a prompt every token's, later W
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
        if s.past or s.window is None:
            self.open()
        if s.past:
            for layer in f.each_layer(s.L):
                past, dtype = self.past(layer), self.dtypes[layer]
                for i, (heads, width) in enumerate(self.rows):
                    made = f.new("cache", (s.B, heads, past, width), dtype, "kv_cache")
                    self.layers[layer][i] = made
                    del made

    @property
    def token_bytes(self) -> int:
        """Bytes that one more token of each sequence adds to all layers but those that are full."""
        s = self.s
        values = s.B * sum(heads * width for heads, width in self.rows)
        held = (s.past or 0) + s.tokens
        full = [s.window is not None and self.slides(i) and held >= s.window for i in range(s.L)]
        return sum(SIZES[self.dtypes[i]] * values for i in range(s.L) if not full[i])

    def slides(self, layer: int) -> bool:
        """Whether a layer has a window."""
        s = self.s
        return s.window is not None and (s.sliding is None or s.sliding[layer])

    def past(self, layer: int) -> int:
        """Tokens of which a layer holds keys and values, if they came one by one."""
        s = self.s
        assert s.past is not None
        return min(s.past, s.window) if s.window is not None and self.slides(layer) else s.past

    def open(self) -> None:
        """What a new cache holds: nothing, but of a layer with a window its length.

        One that a training forward pass makes has that number on the host: on CUDA it is there
        with the layer's first keys. A call's cache is made on the device.
        """
        if self.layers:
            return
        for layer in self.f.each_layer(self.s.L):
            self.layers.append([None, None])
            if self.slides(layer) and not (self.s.keeps_output and self.f.backend == "cuda"):
                self.layers[layer].append(self.length())

    def length(self) -> Tensor:
        """The length of a window."""
        return self.f.new("window", (), "int64", "kv_cache")

    def update(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Take in the new tokens' keys and values; returns all of them, in one piece each."""
        held = self.layers[self.f.layer]
        if self.slides(self.f.layer) and len(held) == 2:
            held.append(self.length())
        keys = self.joined(k)
        if not self.slides(self.f.layer):
            held[0] = keys
        values = self.joined(v)
        held[:2] = [keys, values]
        return keys, values

    def joined(self, new: Tensor) -> Tensor:
        """The old ones, which are still held, and the new ones as one tensor."""
        f, s = self.f, self.s
        dtype = self.dtypes[f.layer]
        wide = f.to(new, dtype) if f.backend == "cpu" else new  # as Ops.cat
        seen = s.within(s.window) if self.slides(f.layer) else s.seen
        joined = f.new("cat", (s.B, new.shape[1], seen, new.shape[3]), dtype, "kv_cache")
        shape = new.shape
        f.apply("cat", [wide], [joined], lambda grads, saved, needs: [f.view(grads[0], *shape)])
        del wide
        return joined

    def forget(self) -> None:
        """Let go of every layer's, those that are not simulated included."""
        log, between = self.f.log, max(0, self.s.L - self.f.shown)
        for layer, held in enumerate(self.layers):
            first = len(log.events)
            held.clear()
            if layer == self.f.repeated:
                log.repeat(first, len(log.events), between)


def cache_of(f: Ops, s: Setting, network: Any) -> Cache:
    """An empty one, as a network of its family fills it."""
    return Cache(f, s, *(getattr(network, name, None) for name in ("narrow_keys", "cached_rows")))
