"""transformers' deepseek_v2: latent attention, positions as complex numbers, a softmax router.

Source      transformers: models/deepseek_v2/modeling_deepseek_v2.py
"""

from __future__ import annotations

from ...model.mixtures import TOPK_METHODS, groups
from ..core.graph import Tensor
from ..core.storage_log import Dim
from .attention import scores_kept
from .complex_rotary import polar, turned
from .grouped_router import GroupedRouter
from .hf_llama import Weights
from .latent import LatentAttention

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any


class DeepseekV2(LatentAttention, GroupedRouter):
    """Mirrors DeepseekV2ForCausalLM."""

    correction = None

    def rotary(self, dtype: str) -> Any:
        self.scaled.update()
        return (polar(self.f, self.rates[0], self.setting.T),)

    def rotate(self, q: Tensor, k: Tensor, angles: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        """In fp32, and then as narrow as before."""
        f = self.f
        wide_q, wide_k = f.to(q, "fp32"), f.to(k, "fp32")
        q_out = f.to(self.spread(turned(f, wide_q, angles), q), q.dtype)
        k_out = f.to(turned(f, wide_k, angles), k.dtype)
        return q_out, k_out

    def spread(self, y: Tensor, x: Tensor) -> Tensor:
        """The gradient is a part of each head's: it is copied, unless a cast has made it whole.

        What a kernel gives lies in rows of all heads, and so does what is cast from it.
        """
        f, s = self.f, self.setting
        whole = x.dtype != y.dtype and (scores_kept(f, s) or s.N == 1 or s.T == 1)
        return y if whole or s.B * s.N * s.T == 1 else f.folded(y)

    def router(self, w: Weights, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Probabilities of all experts; those in groups that were not chosen are made zero."""
        f, s = self.f, self.setting
        rows = f.seen_as(rows, s.rows, s.D)
        logits = f.linear(f.to(rows, "fp32"), f.to(w["router"], "fp32"))
        scores = f.softmax(f.to(logits, "fp32"))
        hold: list[Tensor] = []
        if (s.extra or {}).get("topk_method", TOPK_METHODS[0]) != TOPK_METHODS[0]:
            hold, mask = self.best_groups(f.holds(scores))
            scores = f.masked(scores, mask)
            del mask
        best, chosen = f.topk(scores, s.k)
        best = f.scale(best)
        del hold
        return logits, best, chosen

    def best_groups(self, graph: bool) -> tuple[list[Tensor], Tensor]:
        """As of other routers, but a group is as good as its best expert."""
        f, s = self.f, self.setting
        count, chosen = groups(s.model.family, s.extra or {})
        G, g = Dim("G", count), Dim("g", chosen)
        held = [f.new("max", (s.rows, G), "fp32")]
        places = f.new("max", (s.rows, G), "int64")
        if graph:
            held.append(places)
        del places
        values = f.new("topk", (s.rows, g), "fp32")
        held.append(f.new("topk", (s.rows, g), "int64"))
        del values
        held.append(f.new("zeros_like", (s.rows, G), "fp32"))
        if 1 < count < s.X:
            held.append(f.new("clone", (s.rows, s.X), "fp32"))
        flags = f.new("to", (s.rows, s.X), "bool")
        mask = f.new("bitwise_not", (s.rows, s.X), "bool")
        del flags
        return held, mask
