"""A model's layers alone, once forward and once backward: what they hold, their peak, their FLOPs.

Embedding, head and loss would hide what a way to call layers changes, so the stack ends in a sum
of products with fixed numbers, which keeps nothing but itself.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

from ..measure.step_tracker import StepTracker
from .models import TinyLlama
from .train import one_thread

aten = torch.ops.aten


@dataclass(frozen=True)
class Stack:
    """One pass through the layers.

    held        bytes after the forward pass that were not there before it
    peak        the most bytes in backward, beside what was there before the forward pass
    flops       of both passes, in matrix products
    gradients   of all weights of the layers, and of the embedding
    """

    held: int
    peak: int
    flops: int
    gradients: list[Tensor]

    def same(self, other: "Stack") -> bool:
        """Whether all gradients agree to the bit."""
        pairs = zip(self.gradients, other.gradients, strict=True)
        return all(torch.equal(a, b) for a, b in pairs)


def run_stack(net: TinyLlama, ids_BT: Tensor) -> Stack:
    """Send a batch through the layers of a model and back.

    Leaves out  the scalar at the end; scratch memory inside one kernel; in the FLOPs whatever is no
                matrix product
    """
    net.zero_grad()
    B, T = ids_BT.shape
    shape = (B, T, net.embedding.embedding_dim)
    dtype = net.embedding.weight.dtype
    weights_BTD = torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(dtype)

    def forward() -> Tensor:
        x_BTD = net.embedding(ids_BT)
        for layer in net.layers:
            x_BTD = layer(x_BTD, net.cos_TH[:T], net.sin_TH[:T])
        return (x_BTD * weights_BTD).sum()

    with one_thread(), StepTracker() as tracker:
        tracker.label([net])
        tracker.label([ids_BT, weights_BTD], "inputs")
        before = tracker.current
        end = forward()
        held = tracker.current - before - end.nbytes
        seed = tracker.label(torch.ones_like(end), "inputs")
        start = len(tracker.timeline)
        end.backward(seed)
    scalars = end.nbytes + seed.nbytes
    peak = max(event.total for event in tracker.timeline[start:]) - before - scalars
    gradients = [p.grad for p in net.parameters() if p.grad is not None]
    net.zero_grad()
    flops = count_flops(lambda: forward().backward())
    net.zero_grad()
    return Stack(held, peak, flops, gradients)


def count_flops(call: Callable[[], object]) -> int:
    """Floating-point operations of a call, in matrix products, as torch counts them.

    Source      torch.utils.flop_counter, told of the CPU's attention, which it does not know
    Leaves out  whatever is no matrix product
    """
    attention = {
        aten._scaled_dot_product_flash_attention_for_cpu: _attention,
        aten._scaled_dot_product_flash_attention_for_cpu_backward: _attention_backward,
    }
    with one_thread(), FlopCounterMode(display=False, custom_mapping=attention) as counter:
        call()
    return counter.get_total_flops()


def _attention(q: tuple, k: tuple, v: tuple, *_: object, **__: object) -> int:
    heads = q[1]  # of k and v each head serves several queries
    return sdpa_flop_count(q, (k[0], heads, *k[2:]), (v[0], heads, *v[2:]))


def _attention_backward(out: tuple, q: tuple, k: tuple, v: tuple, *_: object, **__: object) -> int:
    heads = q[1]
    return sdpa_backward_flop_count(out, q, (k[0], heads, *k[2:]), (v[0], heads, *v[2:]))
