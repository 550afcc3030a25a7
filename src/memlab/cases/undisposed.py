"""Results that nobody has let go of: what a program keeps whose language frees at collection.

Python lets go of a tensor when its last name goes. In C# and F# a tensor that is not disposed of
waits for the garbage collector, which sees a small object of the host and no memory of a device.
"""

from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from ..measure.storages import tensors


class Undisposed(TorchDispatchMode):
    """Inside `with undisposed:` the result of every operator stays alive until `collect`.

    Source      TorchSharp, docfx/articles/memory.md: disposed of explicitly, with a scope, or by
                finalizers, and then the collector does not know of the memory behind
    Leaves out  what backward makes: leave the block before it, as its C++ frees at once
    """

    def __init__(self) -> None:
        super().__init__()
        self.held: list[Tensor] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        self.held.extend(tensors(result))
        return result

    def collect(self) -> None:
        """What GC.Collect and GC.WaitForPendingFinalizers do: let go of everything at once."""
        self.held.clear()


__all__ = ["Undisposed"]
