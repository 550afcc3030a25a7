"""What a process uses on a GPU besides PyTorch's segments: readings that others have posted.

The CUDA context holds the driver's tables and the machine code of the kernels. Its size depends on
the card, the driver, the versions and the kernels that were loaded, so there is no formula for it.
`CUDA_MODULE_LOADING` says whether kernels are loaded when they are first needed (LAZY, PyTorch's
default since 1.13) or all at once (EAGER).
"""

from __future__ import annotations

from ..base.frozen import dataclass
from ..units import GiB, MiB
from .allocator import segment_for


@dataclass(frozen=True)
class Reading:
    """One process on one GPU, as its user posted it.

    versions    of PyTorch, and the card where it was named
    loading     LAZY or EAGER
    used        bytes that the driver counted as used: a number of MiB, hundredths of GiB, or exact
    tensor      bytes of the only tensor there was
    source      where it was posted
    """

    versions: str
    loading: str
    used: int
    tensor: int
    source: str

    @property
    def reserved(self) -> int:
        """Bytes of the segment that the tensor lies in."""
        return segment_for(self.tensor)

    @property
    def context(self) -> int:
        """Bytes used that no segment accounts for."""
        return self.used - self.reserved


def _gib(hundredths: int) -> int:
    return hundredths * GiB // 100


_PULL = "https://github.com/pytorch/pytorch/pull/86509"
_BOOK = "https://github.com/stas00/ml-engineering/blob/master/training/performance/README.md"
_ZOO = "https://github.com/unslothai/unsloth-zoo/pull/1053"
_FILLED = 20 * 16 * 50 * 100 * 4  # torch.randn(20, 16, 50, 100)

READINGS = (
    Reading("2.10.0, RTX 6000 Ada", "LAZY", 426 * MiB, 0, _ZOO),
    Reading("2.1.1, A100 80GB", "LAZY", _gib(47), 4, _BOOK),
    Reading("2.1.1, A100 80GB", "EAGER", _gib(92), 4, _BOOK),
    Reading("1.13.1, A100 80GB", "EAGER", _gib(90), 4, _BOOK),
    Reading("1.10.2, A100 80GB", "EAGER", _gib(178), 4, _BOOK),
    Reading("v1.13, card not named", "LAZY", 287047680, _FILLED, _PULL),
    Reading("v1.13, card not named", "EAGER", 666632192, _FILLED, _PULL),
)

# What is left free on a card for it unless somebody says otherwise: the largest of the readings
# with lazy loading, which is what PyTorch does by itself. Give what your own machine shows.
CONTEXT = max(reading.context for reading in READINGS if reading.loading == "LAZY")

# What NCCL takes on each GPU for the first communicator, once a collective has run. It grows with
# the channels that a machine's links are worth, and is next to nothing over PCIe; an all-to-all
# opens a connection to each peer: 3.28 GB more on 8 H100 (NVIDIA/nccl issue 1685).
# Source      https://github.com/NVIDIA/nccl/issues/ 964: 4 A100 with NVLink, 544 and 688 MB; 864:
#             "about 1.6GB" after an all-reduce, with the context of the process if that is in it
NCCL_READINGS = (544 * MiB, 688 * MiB, 1600 * 10**6)
NCCL = max(NCCL_READINGS)
