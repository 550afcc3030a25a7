"""A stage of a pipeline: some layers of a model, with what stands before or behind them at an end.

Families        that are written as a llama, mixtures of experts among them: their routers and all
                experts of a layer are on the layer's stage

The module      the model with its other layers deleted. Where it is not the first stage it has no
                embedding and is called with `inputs_embeds`; where it is not the last, its final
                norm is nn.Identity and it has no output head: memlab.lab.pipelined.Stage
"""

from __future__ import annotations

from ..core.graph import Tensor, call
from ..core.setting import Setting
from ..ops import Ops
from .hf_llama import HFLlama, Weights


def of_family(own: type[HFLlama]) -> type[LlamaStage]:
    """The stage of a family that is written as a llama.

    own         its network elsewhere, whose parts stand behind those of LlamaStage
    """
    return LlamaStage if own is HFLlama else type(f"{own.__name__}Stage", (LlamaStage, own), {})


class LlamaStage(HFLlama):
    """What a stage computes from ids or from the stream: the stream, or at the end logits.

    setting     of the model with as many layers as the stage has
    """

    def __init__(self, f: Ops, setting: Setting, *, first: bool, last: bool) -> None:
        self.f, self.setting = f, setting
        self.first, self.last = first, last
        s, dtype, before = setting, setting.dtype, len(f.parameters)
        self.cache = None
        if first:
            self.embedding = f.parameter("embedding", (s.V, s.D), dtype)
        self.layers = [self.layer_weights(i) for i in f.each_layer(s.model.layers)]
        self.final = self.final_weights() if last else {}
        self.rotary_width = self.turned()
        self.rotary_buffers()
        if last:
            self.lm_head = f.parameter("lm_head", (s.V, s.D), dtype)
        self.parameters = f.parameters[before:]

    def forward(self, x: Tensor) -> Tensor:
        hidden = call(self.body, x)
        return self.logits(hidden) if self.last else hidden

    def embed(self, ids: Tensor) -> Tensor:
        return super().embed(ids) if self.first else ids

    def normed(self, x: Tensor, w: Weights, name: str) -> Tensor:
        return super().normed(x, w, name) if w else x
