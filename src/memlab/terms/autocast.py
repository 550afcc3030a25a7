"""Autocast: the narrow copies of fp32 values that torch.autocast makes and backward needs.

P parameters of the matrices that are cast · b bytes per value of the narrow format
"""

from __future__ import annotations

from ..formats import storage
from ..units import whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..formats import Format


def weight_copies(
    parameters: int, *, uses: int = 1, frozen: bool = False, format: str | Format = "bf16"
) -> int:
    """Bytes of the narrow copies of weights that stay from the forward to the backward pass.

    Formula     P · b for weights that are trained, uses · P · b for frozen ones
    Shapes      a copy of each linear layer's weight, in its own shape. Autocast keeps the copy of a
                trained weight in a cache, so all uses in one forward pass share it; a frozen weight
                is cast again for each use, and each copy is saved
    Unit        bytes, a whole number
    Source      torch, aten/src/ATen/autocast_mode.h and autocast_mode.cpp, `cached_cast`: the
                cache takes fp32 leaves that require a gradient
    Leaves out  the inputs (`input_copies`); embeddings and norms, which autocast leaves alone; what
                the cache alone holds until the outermost region ends: the copy of a weight whose
                input needs no gradient, which backward does not ask for
    Raises      ValueError for a negative count or an unknown format
    """
    copies = whole("uses", uses) if frozen else 1
    return copies * storage(whole("parameters", parameters), format)


def input_copies(values: int, *, readers: int = 1, format: str | Format = "bf16") -> int:
    """Bytes of the narrow copies of an fp32 input that linear layers keep for their weights.

    Formula     readers · n · b for an input of n values
    Shapes      one copy for each reader, such as q, k and v: the cache takes weights only
    Unit        bytes, a whole number
    Source      as `weight_copies`
    Leaves out  an input that is narrow already, which is saved once for all its readers
    Raises      as `weight_copies`
    """
    return whole("readers", readers) * storage(whole("values", values), format)
