"""gpt2 under DeepSpeed's stage 3: memlab.step.networks.llama_zero3 says what its modules do there.

Conv1D is none of the linear layers that DeepSpeed puts its own function in: torch.addmm keeps the
weight itself, which may go and come again.

Source      deepspeed, runtime/zero/parameter_offload.py; transformers,
            models/gpt2/modeling_gpt2.py and pytorch_utils.py: Conv1D
"""

from __future__ import annotations

from ..core.graph import Tensor
from ..parallel.deepspeed.zero3 import Zero3
from .gpt2 import GPT2
from .gpt_parts import Weights

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any


class GPT2Zero3(GPT2):
    """GPT2 whose modules say when they begin and end."""

    f: Zero3

    def forward(self, ids: Tensor) -> Tensor:
        self.f.coordinator.begin()
        self.f.enter("model")
        return self.f.leave("model", super().forward(ids))

    def body(self, ids: Tensor) -> Tensor:
        self.f.enter("body")
        return self.f.leave("body", super().body(ids))

    def block(self, x: Tensor, *rest: Any) -> Tensor:
        return self.f.leave("layer", super().block(self.f.enter("layer", x), *rest))

    def attention(self, w: Weights, x: Tensor, mask: Tensor | None) -> Any:
        """Given x without a name, unlike a llama's: its end in backward is heard of."""
        y, kept = super().attention(w, self.f.enter("attention", x), mask)
        return self.f.leave("attention", y), kept

    def mlp(self, w: Weights, x: Tensor) -> Tensor:
        return self.f.leave("mlp", super().mlp(w, self.f.enter("mlp", x)))

    def conv1d(self, x: Tensor, w: Weights, name: str) -> Tensor:
        module = f"linear {self.f.numbers[id(w[name])].number}"
        entered = self.f.enter(module, x, w[name], w[f"{name}.bias"])
        return self.f.leave(module, super().conv1d(entered, w, name))

    def dropped(self, x: Tensor, p: float) -> Tensor:
        return self.f.leave("dropout", super().dropped(self.f.enter("dropout", x), p))

    def activation(self, x: Tensor) -> Tensor:
        if self.act != "gelu_new":  # an operator, in which the module is looked after
            return super().activation(x)
        return self.f.leave("activation", super().activation(self.f.enter("activation", x)))
