"""Multi-head latent attention: one narrow row a token, from which every head's keys are made.

Letters     C the latent's width, P and R the parts of a head that positions pass and turn, U the
            width of a head's values
Source      transformers: models/deepseek_v3/modeling_deepseek_v3.py, DeepseekV3Attention
"""

from __future__ import annotations

from ..adapters.lora import linear
from ..core.graph import Tensor, call
from ..core.storage_log import Dim
from .hf_llama import HFLlama, Shapes, Weights

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    from ...model.latent import Latent


class LatentAttention(HFLlama):
    """A cache keeps the latent and the one key that is turned; heads are made from them anew."""

    rows = False

    @property
    def latent(self) -> Latent:
        found = self.setting.model.latent
        assert found is not None
        return found

    def turned(self) -> Dim:
        return Dim("R", self.latent.rope)

    @property
    def parts(self) -> tuple[Dim, Dim]:
        """The parts of a head's query and key: what passes and what turns."""
        return Dim("P", self.latent.nope), self.turned()

    @property
    def row(self) -> tuple[Dim, Dim]:
        """What a token has of keys and values: the latent, and the key that is turned."""
        return Dim("C", self.latent.kv_rank), self.turned()

    @property
    def cached_rows(self) -> list[tuple[Dim, Dim]]:
        """One of each for all heads."""
        return [(Dim("1", 1), width) for width in self.row]

    def attention_shapes(self) -> Shapes:
        s, m, c = self.setting, self.setting.model, self.latent
        shapes: Shapes = {}
        if c.q_rank:
            rank = Dim("C'", c.q_rank)
            shapes |= s.linear("q_a", rank, s.D, m.qkv_bias) | {"q_a_norm": (rank,)}
            shapes |= s.linear("q_b", s.queries, rank, False)
        else:
            shapes |= s.linear("q", s.queries, s.D, False)
        row = Dim("(C+R)", c.kv_rank + c.rope)
        shapes |= s.linear("kv_a", row, s.D, m.qkv_bias) | {"kv_a_norm": (self.row[0],)}
        both = Dim("N·(P+U)", m.heads * (c.nope + c.value))
        shapes |= s.linear("kv_b", both, self.row[0], False)
        return shapes | s.linear("out", s.D, s.attended, m.out_bias)

    def attention(
        self, w: Weights, x: Tensor, angles: Any, mask: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        f, s = self.f, self.setting
        q = self.by_head(self.projected_queries(w, x), s.T, s.H)
        q_pass, q_rot = f.split(q, *self.parts)
        compressed = linear(f, x, w, "kv_a")
        latent, k_rot = f.split(compressed, *self.row)
        latent = call(self.norm, latent, w["kv_a_norm"])
        latent = f.view(latent, s.B, 1, s.T, self.row[0])
        k_rot = f.view(k_rot, s.B, 1, s.T, self.row[1])
        q_rot, k_rot = call(self.rotate, q_rot, k_rot, *angles)
        if self.cache is not None:
            latent, k_rot = self.cache.update(latent, k_rot)
        query = f.cat([q_pass, q_rot])
        keys, values = call(self.expanded, w, latent, k_rot)
        y, kept = self.attend(query, keys, values, mask)
        y = f.view(y, s.B, s.T, s.attended)
        y = linear(f, y, w, "out")
        return y, kept

    def projected_queries(self, w: Weights, x: Tensor) -> Tensor:
        f = self.f
        if "q" in w:
            return linear(f, x, w, "q")
        return call(linear, f, call(self.norm, linear(f, x, w, "q_a"), w["q_a_norm"]), w, "q_b")

    def by_head(self, y: Tensor, tokens: Dim, width: Dim) -> Tensor:
        """Rows of all heads as [B, N, tokens, width]; gradients come head by head."""
        f, s = self.f, self.setting
        y = f.view(y, s.B, tokens, s.N, width)
        if s.N > 1 and tokens > 1:
            y = f.folded(y)
        return f.view(y, s.B, s.N, tokens, width)

    def expanded(self, w: Weights, latent: Tensor, k_rot: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of all heads from the rows of all tokens, cached ones too."""
        f, s = self.f, self.setting
        passes, value = self.parts[0], s.values
        both = linear(f, latent, w, "kv_b")
        both = self.by_head(both, s.seen, Dim("(P+U)", passes + value))
        k_pass, values = f.split(both, passes, value)
        k_rot = f.repeat_heads(k_rot, s.N)
        keys = f.new("new_empty", (s.B, s.N, s.seen, s.H), both.dtype)
        keys = f.written(keys, k_pass)
        keys = f.written(keys, k_rot)
        return keys, values


class Interleaved(LatentAttention):
    """Every second value turns with the one after it, unless the config says otherwise."""

    def rotate(self, q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
        if not (self.setting.extra or {}).get("rope_interleave", True):
            return super().rotate(q, k, cos, sin)
        f, half = self.f, self.rates[0].shape[0]
        cos = f.view(cos, 1, 1, self.setting.T, half)
        sin = f.view(sin, 1, 1, self.setting.T, half)
        q1, q2 = (f.part_of(q, *q.shape[:-1], half) for _ in range(2))
        k1, k2 = (f.part_of(k, *k.shape[:-1], half) for _ in range(2))
        q_embed = f.cat(
            [
                f.subtract(f.mul(q1, cos), f.mul(q2, sin)),
                f.add(f.mul(q2, cos), f.mul(q1, sin)),
            ]
        )
        k_embed = f.cat(
            [
                f.subtract(f.mul(k1, cos), f.mul(k2, sin)),
                f.add(f.mul(k2, cos), f.mul(k1, sin)),
            ]
        )
        return q_embed, k_embed
