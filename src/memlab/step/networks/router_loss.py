"""The router's own loss: how unevenly the tokens of all layers are spread over the experts.

Formula     X · Σ_experts (share of the choices) · (mean probability), over the layers that have a
            router; times router_aux_loss_coef it is added to the loss of the next token
Source      transformers 5.23: load_balancing_loss_func in models/{mixtral,qwen2_moe,qwen3_moe,
            olmoe,gpt_oss}/modeling_*.py; Fedus et al. 2021, arXiv:2101.03961, equations 4 to 6
Leaves out  padded tokens, which it does not count
"""

from __future__ import annotations

from ..core.graph import Tensor
from ..core.setting import Setting
from ..ops import Ops

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Mapping


def load_balancing_loss(f: Ops, s: Setting, gates: Mapping[int, Tensor]) -> Tensor:
    """A scalar of all layers' logits; autograd keeps each layer's probabilities.

    Shapes      gates: layer -> [B·T, X], for the layers that have experts
    """
    chosen_sum, mean_sum = f.new("zeros", (s.X,), "fp32"), f.new("zeros", (s.X,), "fp32")
    for layer in f.each_layer(s.L):
        f.current = None  # what is kept here is the loss's, not the layer's
        if layer not in gates:
            continue
        logits = gates[layer]
        wide = f.autocast is not None and f.backend == "cuda"  # autocast's softmax there
        probabilities = f.softmax(f.to(logits, "fp32") if wide else logits)
        best, chosen = f.topk(probabilities, s.k)
        chosen_sum = f.add(chosen_sum, counted(f, s, chosen))
        mean_sum = f.add(mean_sum, f.column_sums(f.to(probabilities, "fp32")))
        mean_sum = f.boundary(mean_sum, layer, s.L)
    share = f.scale(chosen_sum, "div")
    mean = f.scale(mean_sum, "div")
    product = f.total_of(f.mul(share, f.seen_as(mean, 1, s.X)))
    made = f.scale(product)
    if gates:
        del logits, probabilities, best, chosen
    return made


def counted(f: Ops, s: Setting, chosen: Tensor) -> Tensor:
    """How often each expert was chosen: torch.histc, which takes numbers of one kind alone."""
    kind = "fp32" if f.backend == "cpu" else "int32"
    numbers = f.new("to", (s.rows * s.k,), kind)
    made = f.new("histc", (s.X,), kind)
    del numbers
    return made
