"""Prompt tuning in a simulated step: trained embeddings stand before those of each sequence.

Source      Lester et al. 2021, arXiv:2104.08691; peft, peft_model.py: get_prompt and
            PeftModelForCausalLM.forward
"""

from __future__ import annotations

from ...adapters import Prompt
from ...run import Run
from ..core.graph import Grads, Tensor, call
from ..core.setting import Setting
from ..core.storage_log import Dim
from ..ops import Ops

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any


def prompted_tokens(run: Run) -> int:
    """How many tokens a prompt puts before each sequence."""
    return run.adapter.tokens if isinstance(run.adapter, Prompt) else 0


class Prompted:
    """The model that peft wraps: embeddings and labels are made here and live through the call.

    tokens      of each sequence without its prompt
    numbers     of the virtual tokens, 8 bytes each, which peft looks up
    """

    def __init__(self, f: Ops, s: Setting, model: Any) -> None:
        assert isinstance(s.adapter, Prompt)
        self.f, self.setting, self.model = f, s, model
        self.virtual = Dim("n", s.adapter.tokens)
        self.tokens = Dim("(T-n)", s.T - self.virtual)
        self.weight = f.parameter("prompt", (self.virtual, s.D), "fp32")
        # In no parameter and no buffer: it stays where the model was made, which is a host.
        where = 0 if f.backend == "cuda" else self.virtual
        self.numbers = f.new("prompt_tokens", (where,), "int64")

    def forward(self, ids: Tensor) -> Tensor:
        f, s = self.f, self.setting
        inputs_embeds = call(self.model.embed, ids)
        if s.checkpoint:
            f.require_grad(inputs_embeds)  # a hook on the embedding asks for it
        prefix_labels = f.new("full", (s.B, self.virtual), "int64")
        labels = f.new("cat", (s.B, s.T), "int64")
        prompts = call(self.prompts)
        prompts = f.to(prompts, inputs_embeds.dtype)
        inputs_embeds = joined(f, prompts, inputs_embeds)
        made = call(self.model.forward, inputs_embeds)
        del prefix_labels, labels, prompts
        return made

    def prompts(self) -> Tensor:
        """Looked up once, and repeated for each sequence, even for one."""
        f, s = self.f, self.setting
        numbers = self.numbers
        if f.backend == "cuda":  # from the host, for each sequence
            numbers = f.new("prompt_tokens", (s.B, self.virtual), "int64")
        prompts = f.embedding(self.weight, Tensor((1, self.virtual), "int64", numbers.storage))
        return _repeated(f, prompts, s.B)


def _repeated(f: Ops, x: Tensor, times: int) -> Tensor:
    """x.repeat(times, 1, 1): a copy, whose gradient is a sum."""
    out = f.new("repeat", (times, *x.shape[1:]), x.dtype)
    shape = x.shape

    def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
        return [f.new("sum", shape, grads[0].dtype)]

    f.apply("repeat", [x], [out], run)
    return out


def joined(f: Ops, first: Tensor, second: Tensor) -> Tensor:
    """torch.cat of two along the tokens: each gradient is a part of one tensor."""
    B, n, D = first.shape
    out = f.new("cat", (B, n + second.shape[1], D), second.dtype)
    shapes = (first.shape, second.shape)

    def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
        return [f.view(grads[0], *shape) for shape in shapes]

    f.apply("cat", [first, second], [out], run)
    return out
