"""transformers' mixtures of experts: the llama block with another feed-forward layer.

Experts are grouped, as transformers does unless it is told otherwise: every token stands once for
each of its experts, sorted by expert, and one operator multiplies each group by its own matrix. So
a step has the same bytes wherever the router sends its tokens.

Source      transformers: models/*_moe/modeling_*.py, mixtral, olmoe; integrations/moe.py,
            grouped_mm_experts_forward
Leaves out  other implementations of experts, experts on several devices
"""

from __future__ import annotations

from functools import partial

from .. import keys
from ..adapters.experts import EXPERTS, ROUTER, weight, with_adapters, wrapped
from ..adapters.lora import linear
from ..core.graph import Tensor, call
from ..core.storage_log import Dim
from ..parallel.expert_parallel import ExpertParallelOps
from .hf_common import causal_lm_loss
from .hf_llama import HFLlama, Shapes, Weights
from .router_loss import load_balancing_loss


class Qwen3Moe(HFLlama):
    """Qwen3MoeForCausalLM: layers with experts, and some without."""

    is_transposed = False  # whether experts are stored [X, inputs, outputs], and say so
    router_first = False  # whether the router is registered before its experts
    cache_first = True
    gates: dict[int, Tensor] | None = None  # each layer's logits, while somebody collects them
    uneven: Tensor | None = None  # the routers' loss, which a call gives back beside them

    def forward(self, ids: Tensor) -> Tensor:
        if not keys.router_loss(self.setting.extra or {}):
            return super().forward(ids)
        return self.balanced(ids)

    def balanced(self, ids: Tensor) -> Tensor:
        """With output_router_logits: all routers' logits live until the loss has its part of them.

        Source      utils/output_capturing.py, whose hooks collect while the body runs, and not when
                    a checkpoint is computed again
        """
        f, s = self.f, self.setting
        self.gates = {}
        hidden = call(self.body, ids)
        gates, self.gates = self.gates, None
        f.begin_loss()
        logits = self.logits(hidden)
        loss = causal_lm_loss(f, logits, counted=s.counted)
        uneven = load_balancing_loss(f, s, gates)
        loss = f.add_in_place(loss, f.scale(uneven))
        for layer in f.each_layer(s.L):
            gates.pop(layer, None)
        del logits, uneven  # the output of the model, of which the caller takes the loss
        return loss

    @property
    def adds_to_one(self) -> bool:
        """Whether the weights of a token's experts are divided by their sum."""
        return bool((self.setting.extra or {}).get("norm_topk_prob", False))

    @property
    def experts_here(self) -> Dim:
        """Experts of a layer that this rank has."""
        f, all_ = self.f, self.setting.X
        return f.local(all_) if isinstance(f, ExpertParallelOps) else all_

    def feed_forward_shapes(self, layer: int) -> Shapes:
        s = self.setting
        if layer in s.model.dense_layers:
            return super().feed_forward_shapes(layer)
        router = with_adapters(s.lora, {"router": (s.X, s.D)})
        X = self.experts_here
        experts = with_adapters(
            s.lora,
            {"experts_up": (X, Dim("2·M", 2 * s.M), s.D), "experts_down": (X, s.D, s.M)},
        )
        return router | experts if self.router_first else experts | router

    def shared_shapes(self) -> Shapes:
        """The expert that every token passes, of linear layers."""
        s, wide = self.setting, Dim("M'", self.setting.model.shared_ff)
        shapes: Shapes = {}
        for name in ("shared_gate", "shared_up"):
            shapes |= s.linear(name, wide, s.D, False)
        return shapes | s.linear("shared_down", s.D, wide, False)

    def feed_forward(self, w: Weights, x: Tensor, part: str = "") -> Tensor:
        if part or "router" not in w:
            return super().feed_forward(w, x, part)
        f, s = self.f, self.setting
        return f.view(self.mixture(w, f.view(x, s.rows, s.D)), s.B, s.T, s.D)

    def mixture(self, w: Weights, rows: Tensor) -> Tensor:
        _, scores, chosen = self.routed(w, rows)
        return call(self.experts, w, rows, chosen, scores)

    def routed(self, w: Weights, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What the router gives; its logits are collected where the config asks for them."""
        found = self.through_router(w, rows)
        if self.gates is not None:
            self.gates[self.f.layer] = found[0]
        return found

    def through_router(self, w: Weights, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The router, with its adapter where it has one."""
        return wrapped(self.f, w, ROUTER, lambda w: call(self.router, w, rows))  # type: ignore[no-any-return]

    def router(self, w: Weights, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Logits, the weights of the chosen experts, and which they are."""
        f, s = self.f, self.setting
        matrix = weight(f, w, "router")
        logits = f.linear(f.seen_as(rows, *rows.shape), matrix)
        probabilities = f.softmax(f.to(logits, "fp32"))
        best, chosen = f.topk(probabilities, s.k)
        if self.adds_to_one:
            best = f.divide_in_place(best, f.total(best))
        best = f.to(best, logits.dtype)
        return logits, best, chosen

    def experts(self, w: Weights, x: Tensor, chosen: Tensor, scores: Tensor) -> Tensor:
        """Rows by their experts, here or on the ranks that have them."""
        f, s = self.f, self.setting
        if not isinstance(f, ExpertParallelOps):
            return wrapped(
                f, w, EXPERTS, lambda w: self.grouped(w, x, chosen, scores), self.is_transposed
            )
        here = partial(self.grouped, w, nobodys=True)
        return f.experts(here, x, chosen, scores, of=w["experts_up"], all_=s.X)

    def grouped(
        self, w: Weights, x: Tensor, chosen: Tensor, scores: Tensor, *, nobodys: bool = False
    ) -> Tensor:
        """grouped_mm_experts_forward: one row for each token and expert.

        nobodys     whether rows may be of experts that other ranks have, and are masked
        """
        f, s = self.f, self.setting
        size = 1
        for part in chosen.shape:
            size *= part
        rows, X = (Dim("r" if nobodys else "B·T·k", size),), w["experts_up"].shape[0]
        scores = f.view(scores, *rows)
        by_expert, order = f.new("sort", rows, "int64"), f.new("sort", rows, "int64")
        picked = f.rows_of(x, f.new("floor_divide", rows, "int64"))
        weights = f.rows_of(scores, order)
        numbers = f.new("to", rows, "fp32" if f.backend == "cpu" else "int32")
        tokens = f.new("histc", (X,), numbers.dtype)
        offsets = f.new("cumsum", (X,), "int32")
        mask = f.new("ge", rows, "bool") if nobodys else None
        up = weight(f, w, "experts_up")
        bias = self.bias(w, "experts_up", by_expert)
        if mask is not None:
            picked = f.masked_in_place(picked, mask)
        y = f.grouped_mm(picked, up, offsets, Dim("2·M", 2 * s.M))
        y = y if bias is None else f.add_in_place(y, bias)
        y = y if mask is None else f.masked(y, mask)
        y = call(self.gate, y)
        down = weight(f, w, "experts_down")
        bias = self.bias(w, "experts_down", by_expert)
        y = f.grouped_mm(y, down, offsets, s.D)
        y = y if bias is None else f.add_in_place(y, bias)
        y = y if mask is None else f.masked(y, mask)
        y_weighted = f.mul(y, f.view(weights, *rows, 1))
        back = f.new("empty_like", rows, "int64")
        numbered = f.new("arange", rows, "int64")
        del numbered
        y_weighted = f.rows_of(y_weighted, back)
        y = f.to(f.sum_of_parts(y_weighted, x.shape[0]), x.dtype)
        del by_expert, tokens, bias, mask, up, down  # which nothing reads, but live until here
        return y

    def bias(self, w: Weights, name: str, by_expert: Tensor) -> Tensor | None:
        """The bias of each row's expert, where experts have one."""
        return None

    def gate(self, y: Tensor) -> Tensor:
        f = self.f
        gate, up = f.halves(y, self.setting.M)
        return f.mul(call(f.activation, gate, "silu"), up)


class Mixtral(Qwen3Moe):
    """MixtralForCausalLM: every layer has experts, whose weights stay in fp32 and add to one."""

    router_first = True
    adds_to_one = True

    def router(self, w: Weights, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        f, s = self.f, self.setting
        matrix = weight(f, w, "router")
        logits = f.linear(f.seen_as(rows, *rows.shape), matrix)
        probabilities = f.softmax(f.to(logits, "fp32"))
        best, chosen = f.topk(probabilities, s.k)
        best = f.divide_in_place(best, f.total(best))
        return logits, best, chosen


class Olmoe(Qwen3Moe):
    """OlmoeForCausalLM: every layer has experts; queries and keys are normed as whole rows."""

    router_first = True

    def attention_shapes(self) -> Shapes:
        s = self.setting
        return super().attention_shapes() | {"q_norm": (s.queries,), "k_norm": (s.keys,)}

    def projected(
        self, w: Weights, x: Tensor, masked: bool, turns: bool = True
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Rows are seen as heads when all three are there."""
        f, s = self.f, self.setting
        q = call(self.norm, linear(f, x, w, "q"), w["q_norm"])
        k = call(self.norm, linear(f, x, w, "k"), w["k_norm"])
        v = linear(f, x, w, "v")
        q = self.apart(q, "q", s.N)
        k = self.apart(k, "k", s.K)
        v = self.apart(v, "v", s.K, masked=masked)
        return q, k, v
