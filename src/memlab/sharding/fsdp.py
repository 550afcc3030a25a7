"""FSDP2's policy: what `fully_shard` is told beside its ranks, and what it cannot be told."""

from __future__ import annotations

from ..base.frozen import dataclass, not_default
from ..units import at_least_one

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .sharding import Sharding

# The words that its fields take.
DTYPES = ("fp32", "bf16", "fp16")
SYNCS = ("every", "last", "shards")
HOSTS = ("pinned", "pageable")


@dataclass(frozen=True, kw_only=True)
class FsdpPolicy:
    """How FSDP2 divides, beside its ranks.

    param_dtype     MixedPrecisionPolicy's: the format in which weights are gathered and computed
                with; None: as they are stored
    reduce_dtype    of the same: the format in which gradients are reduced; None: as they come
    reshard_after_forward   whether FSDP2 lets a layer go after its forward pass, to gather it again
                for backward; the root's group (embedding, last norm, head) always stays
    gradient_sync   every: gradients are reduced after each micro-batch; last: after the last one
                alone, until which they are kept whole (set_requires_gradient_sync(False)); shards:
                scattered after each, and added up over the replicas after the last one alone
                (set_requires_all_reduce(False))
    replicas    HSDP, a mesh of two dimensions: so many groups of data / replicas ranks, each of
                which divides the whole model and has the same parts as the others
    cpu_offload     CPUOffloadPolicy: parts of weights, their gradients and states stay on the host,
                "pinned" (its default) or "pageable" (pin_memory=False), and the optimizer steps
                there; None: on the device
    Raises      ValueError or TypeError that names the field, its value and what would be right
    """

    param_dtype: str | None = None
    reduce_dtype: str | None = None
    reshard_after_forward: bool = True
    gradient_sync: str = "every"
    replicas: int = 1
    cpu_offload: str | None = None

    def __post_init__(self) -> None:
        for field, known in (
            ("param_dtype", DTYPES),
            ("reduce_dtype", DTYPES),
            ("cpu_offload", HOSTS),
        ):
            value = getattr(self, field)
            if value is not None and value not in known:
                raise ValueError(f"{field}={value!r} is not described; known: {', '.join(known)}")
        if self.gradient_sync not in SYNCS:
            told = f"gradient_sync={self.gradient_sync!r}"
            raise ValueError(f"{told} is not described; known: {', '.join(SYNCS)}")
        if not isinstance(self.reshard_after_forward, bool):
            value = self.reshard_after_forward
            raise TypeError(f"reshard_after_forward={value!r}; True or False is needed")
        at_least_one("replicas", self.replicas)
        if self.replicas == 1 and self.gradient_sync == "shards":
            raise ValueError("gradient_sync='shards' is between replicas, which are 2 or more")

    def check(self, devices: Sharding) -> None:
        """Refuse devices that no call of `fully_shard` divides so.

        Raises      ValueError that names the field, its value and what would be right
        """
        for field, value in not_default(self).items():
            if devices.zero != 3:
                raise ValueError(f"{field}={value!r} is FSDP2's, which is zero=3")
        data, replicas = devices.data, self.replicas
        if replicas == 1:
            return
        if data % replicas or data == replicas:
            raise ValueError(
                f"replicas={replicas} of data={data} ranks: groups of the same size, of 2 ranks or "
                "more, are needed"
            )
        if devices.ranks != data:
            raise ValueError(
                f"replicas={replicas} beside other divisions of the model: describe one"
            )
