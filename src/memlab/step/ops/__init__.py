"""Torch's operators, as far as memory goes: what they allocate, keep and free.

Each method is one operator: it makes its output, says what autograd keeps of it, and describes its
backward in the same words. Temporaries are Python variables of the function that makes them.

Source      torch: tools/autograd/derivatives.yaml, aten/src/ATen
"""

from __future__ import annotations

from ..core.graph import Grads as Grads
from .attention import Attention
from .cross_entropy import CrossEntropy
from .layers import Layers
from .routing import Routing
from .shapes import Shapes


class Ops(Layers, Attention, CrossEntropy, Routing, Shapes):
    """All operators, in the precision of the inputs or under autocast.

    autocast    see memlab.step.ops.autocast.Autocast
    backend     cpu or cuda: their kernels for attention and norms differ in what they keep
    in_place    see memlab.step.core.engine.Engine
    """

    def __init__(
        self, autocast: str | None = None, *, backend: str = "cpu", in_place: bool = True
    ) -> None:
        super().__init__(autocast, in_place=in_place)
        self.backend = backend
