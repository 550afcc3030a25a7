"""transformers.Trainer's own FSDP2 in a simulated step: the groups that accelerate makes.

Groups          each layer's parameters; the embedding's; the last norm's and the head's, with the
                embedding's where the table is tied; the root's, which is what is left: learned
                positions, or nothing
Forward         the embedding's whole weights go after it, as a layer's do; those of norm and head
                stay until they have been used in backward. A tied table is gathered with them
                before the embedding and stays all the time
Backward        the first buffer is made when the gradient of the logits is there; the embedding is
                gathered for it although its backward does not read it, and is reduced after the
                layers, as is a tied table
Adapters        of peft, which stands around the model. accelerate looks for the last norm in what
                the model calls its base, and the word "model" of the llamas leads through peft's
                wrapper to the whole model, whose children are no norms: it stays with the root,
                whole all the time. What is frozen is not upcast, be bf16=True
Formats         bf16=True is param_dtype and reduce_dtype; the loss that the model gives is cast to
                it too, and so is the number of labels that it is given, which bf16 rounds to eight
                binary digits. There is no autocast, and weights that were loaded in bf16 are upcast
Replicas        ParallelismConfig(dp_replicate_size=..., dp_shard_size=...): as in HSDP of one's own
Micro-batches   `no_sync` keeps whole gradients until the last one
Offload         cpu_offload in fsdp_config is CPUOffloadPolicy(), which pins: as in a loop of one's
                own, with the norm of the gradients and the optimizer on the host
Norm            of the gradients: of each a number, in a stack that is squared, summed over the
                ranks, and brought back
CPU             accelerate shards nothing on a CPU: tests/real/trainer_ranks.py tells it that the
                ranks are GPUs. Not yet measured on a GPU
Source          accelerate, utils/fsdp_utils.py: fsdp2_prepare_model, _find_final_norm;
                utils/dataclasses.py: set_mixed_precision, set_cpu_offload; accelerator.py:
                _prepare_fsdp2, no_sync;
                torch, torch/distributed/fsdp/_fully_shard/_fsdp_state.py
"""

from __future__ import annotations

from collections.abc import Callable

from ...core.graph import Tensor, component
from .fsdp2 import FsdpOps
from .group import Group

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any


FIRST, LAST = -1, -2  # where groups stand that are no layer's


class AccelerateFsdpOps(FsdpOps):
    """All operators, on parameters that are grouped as accelerate groups them.

    tied        whether the head's table is the embedding's
    loses_norm  whether accelerate does not find the last norm, which stays in the root's group
    """

    def __init__(
        self, *arguments: Any, tied: bool, loses_norm: bool = False, **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self.tied, self.loses_norm = tied, loses_norm
        # The embedding's; the last norm's and the head's.
        self.first, self.last = Group(self.ranks), Group(self.ranks)
        self.counted: Tensor | None = None  # how many labels a step has, during a forward pass

    def group_of(self, name: str) -> Group:
        kind = component(name)
        if self.current is not None or kind not in ("embedding", "norm", "lm_head"):
            return super().group_of(name)
        if kind == "norm" and self.loses_norm:
            return super().group_of(name)
        if kind == "embedding" and not self.tied:
            return self.groups.setdefault(FIRST, self.first)
        return self.groups.setdefault(LAST, self.last)

    def root(self, forward: Callable[..., Any], ids: Any) -> Any:
        narrow = self.devices.policy.param_dtype
        if narrow is None:
            return super().root(forward, ids)
        self.counted = self.new("to", (), narrow)
        loss = super().root(forward, ids)
        out = Tensor(loss.shape, loss.dtype, loss.storage)
        saved = [("other", self.counted)]  # what the loss has been divided by
        self.apply("div", [loss], [out], lambda grads, *_: grads, saved)
        self.counted = None
        return self.to(out, narrow)

    def region(self, checkpoint: bool) -> Callable[..., Any]:
        """A checkpoint keeps the number of labels, with which each layer is called, as well."""
        inside = super().region(checkpoint)

        def layer(function: Callable[..., Any], x: Tensor, *arguments: Any) -> Any:
            def named(*given: Any, num_items_in_batch: Tensor | None = self.counted) -> Any:
                return function(*given)

            return inside(named, x, *arguments)

        return layer

    def embedding(self, table: Tensor, ids: Tensor) -> Tensor:
        if any(table is whole for whole in self.last.wholes):
            self._before_forward(self.last)
        if not any(table is whole for whole in self.first.wholes):
            return super().embedding(table, ids)
        self._before_forward(self.first)
        return self._after_forward(self.first, super().embedding(table, ids))

    def boundary(self, x: Tensor, layer: int, layers: int) -> Tensor:
        """After the last layer the norm comes, and with it its group."""
        out = super().boundary(x, layer, layers)
        if layer < min(layers, self.shown) - 1 or self.loses_norm:
            return out
        return self._tail(out)

    def _tail(self, x: Tensor) -> Tensor:
        """What the group of the head is given, the first time in a forward pass."""
        self._before_forward(self.last)
        if self.tied:  # the group began with the ids, which ask for no gradient
            return x
        return self._passed(x, lambda: self._after_backward(self.last))

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        if not any(weight is whole for whole in self.last.wholes):
            return super().linear(x, weight, bias)
        if self.loses_norm:
            x = self._tail(x)
        return self._after_forward(self.last, super().linear(x, weight, bias), stays=True)
