"""A llama under DeepSpeed's stage 3, which does something where each module begins and ends.

The program     hooks of every module that is called: its forward pre-hook is given what stands
                before a name in the call alone, so self_attn, called by names, has no end in
                backward. Modules without weights count too: each that begins gathers ahead
Source          deepspeed, runtime/zero/parameter_offload.py: _register_deepspeed_module
"""

from __future__ import annotations

from ..core.graph import Tensor
from ..core.storage_log import Dim
from ..parallel.deepspeed.zero3 import Zero3
from .gpt2 import GPT2
from .gpt2_zero3 import GPT2Zero3
from .hf_llama import HFLlama, Weights
from .scaled_rotary import Scaled

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any


def of_family(own: Any) -> Any:
    """The network of a family that is written as a llama, with modules that say so too; or gpt2's.

    own         its network elsewhere, whose parts stand behind those of LlamaZero3
    """
    if own is HFLlama:
        return LlamaZero3
    if own is GPT2:
        return GPT2Zero3
    return type(f"{own.__name__}Zero3", (LlamaZero3, own), {})


class LlamaZero3(HFLlama):
    """HFLlama whose modules say when they begin and end."""

    f: Zero3

    def rotary_buffers(self) -> None:
        """zero.Init makes them in the format of the weights, and a pass casts them.

        Trainer's models are made by transformers, which keeps torch.arange as it is: fp32.

        Source      transformers, integrations/deepspeed.py: prevent_arange_dtype_change
        """
        if self.f.trainers:
            return super().rotary_buffers()
        f, width = self.f, self.rotary_width
        half = (Dim(f"{width.letters}/2", width // 2),)
        self.rates = [f.new("inv_freq", half, self.setting.dtype, "buffers") for _ in range(2)]
        self.scaled = Scaled(f, self.setting, self.rates)

    def forward(self, ids: Tensor) -> Tensor:
        self.f.coordinator.begin()
        self.f.enter("model")
        return self.f.leave("model", super().forward(ids))

    def body(self, ids: Tensor) -> Tensor:
        self.f.enter("body")
        return self.f.leave("body", super().body(ids))

    def rotary(self, dtype: str) -> Any:
        self.f.enter("rotary")
        made = super().rotary(dtype)
        self.f.coordinator.release("rotary")
        return made

    def layer(self, x: Tensor, *rest: Any) -> Tensor:
        return self.f.leave("layer", super().layer(self.f.enter("layer", x), *rest))

    def normed(self, x: Tensor, w: Weights, name: str) -> Tensor:
        """A norm without weights is a module too."""
        if name in w:
            return super().normed(x, w, name)
        return self.f.leave("norm", super().normed(self.f.enter("norm", x), w, name))

    def stream_dropout(self, x: Tensor) -> Tensor:
        """phi3's, a module."""
        own: Any = super()
        return self.f.leave("dropout", own.stream_dropout(self.f.enter("dropout", x)))

    def norm(self, x: Tensor, weight: Tensor) -> Tensor:
        module = f"norm {self.f.numbers[id(weight)].number}"
        return self.f.leave(module, super().norm(self.f.enter(module, x, weight), weight))

    def attention(
        self, w: Weights, x: Tensor, angles: Any, mask: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        self.f.enter("attention")
        y, kept = super().attention(w, x, angles, mask)
        return self.f.leave("attention", y), kept

    def feed_forward(self, w: Weights, x: Tensor, part: str = "") -> Tensor:
        return self.f.leave("mlp", super().feed_forward(w, self.f.enter("mlp", x), part))
