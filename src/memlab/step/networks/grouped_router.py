"""Routers that choose groups of experts first, and layers whose shared experts have no gate.

Source      transformers: models/glm4_moe/modeling_glm4_moe.py, Glm4MoeTopkRouter, Glm4MoeMoE
"""

from __future__ import annotations

from ...model.mixtures import groups
from ..adapters.experts import weight
from ..core.graph import Tensor, call
from ..core.storage_log import Dim
from .experts import Qwen3Moe
from .hf_llama import Shapes, Weights


class GroupedRouter(Qwen3Moe):
    """Scores by sigmoid in fp32; a correction in a buffer helps to choose, but does not weigh."""

    @property
    def correction(self) -> str | None:
        """The format of the correction; None: there is none."""
        return "fp32"

    @property
    def adds_to_one(self) -> bool:
        return bool((self.setting.extra or {}).get("norm_topk_prob", True))

    def feed_forward_shapes(self, layer: int) -> Shapes:
        s, shapes = self.setting, super().feed_forward_shapes(layer)
        if layer in s.model.dense_layers:
            return shapes
        return shapes | self.shared_shapes()

    def layer_weights(self, layer: int) -> Weights:
        w = super().layer_weights(layer)
        if "router" in w and self.correction is not None:
            w["correction"] = self.f.new(
                "correction", (self.setting.X,), self.correction, "buffers"
            )
        return w

    def feed_forward(self, w: Weights, x: Tensor, part: str = "") -> Tensor:
        if part or "router" not in w:
            return super().feed_forward(w, x, part)
        f, s = self.f, self.setting
        _, scores, chosen = self.through_router(w, x)
        y = call(self.experts, w, f.view(x, s.rows, s.D), chosen, scores)
        y = f.view(y, s.B, s.T, s.D)
        y = f.add(y, call(self.feed_forward, w, x, "shared_"))
        return y

    def router(self, w: Weights, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What is chosen has no gradient, but its graph lives until the router returns."""
        f, s = self.f, self.setting
        rows = f.seen_as(rows, s.rows, s.D)
        matrix = weight(f, w, "router")
        logits = f.linear(f.to(rows, "fp32"), f.to(matrix, "fp32"))
        scores = f.activation(logits, "sigmoid")
        graph = f.holds(scores)
        wanted = f.new("add", scores.shape, "fp32")
        hold, mask = self.best_groups(graph)
        wanted = f.new("masked_fill", scores.shape, "fp32")
        if not graph:
            del mask
        best = f.new("topk", (s.rows, s.k), "fp32")
        chosen = f.new("topk", (s.rows, s.k), "int64")
        del best
        weights = f.gather(scores, chosen)
        if self.adds_to_one:
            total = f.shift(f.total(weights))
            weights = f.divide_in_place(weights, total)
        weights = f.scale(weights)
        del hold, wanted
        return logits, weights, chosen

    def best_groups(self, graph: bool) -> tuple[list[Tensor], Tensor]:
        """What is held of choosing groups, and which experts are in none that was chosen."""
        f, s = self.f, self.setting
        count, best = groups(s.model.family, s.extra or {})
        G, g = Dim("G", count), Dim("g", best)
        values = f.new("topk", (s.rows, G, 2), "fp32")
        places = [f.new("topk", (s.rows, G, 2), "int64")]
        if not graph:
            places.clear()
        sums = f.new("sum", (s.rows, G), "fp32")
        del values
        values = f.new("topk", (s.rows, g), "fp32")
        held = [*places, sums, f.new("topk", (s.rows, g), "int64")]
        del values
        held.append(f.new("zeros_like", (s.rows, G), "fp32"))
        if count > 1:
            held.append(f.new("clone", (s.rows, s.X), "fp32"))
        flags = f.new("to", (s.rows, s.X), "bool")
        mask = f.new("bitwise_not", (s.rows, s.X), "bool")
        del flags
        return held, mask
