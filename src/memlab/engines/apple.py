"""Apple's GPUs, which share the memory of the CPU: how much of it Metal recommends for them.

llama.cpp runs on them; steps of CUDA, vLLM and SGLang do not, so that only llama.cpp is counted.

Source      `recommendedMaxWorkingSetSize`, "how much memory this GPU device can allocate without
            affecting its runtime performance":
            https://developer.apple.com/documentation/metal/mtldevice/recommendedmaxworkingsetsize
            The readings are lines of ggml_metal_init in users' own logs, SOURCES below; it prints
            MiB there. Two thirds of small memories, three quarters of large ones
Leaves out  sizes of which no reading was found (18, 24, 36, 48, 128 and 192 GB), for which a size
            in GiB stands; newer versions of macOS, which recommend more of some; what a user sets
            by `sysctl iogpu.wired_limit_mb`
"""

from __future__ import annotations

from ..base.message import Message
from ..devices import Device
from ..terms.context import CONTEXT
from ..units import MiB

# GB on the box, hundredths of MiB that Metal recommends.
READINGS = ((8, 546134), (16, 1092267), (32, 2184534), (64, 4915200), (96, 7372800))
SOURCES = {
    8: "https://github.com/WisdomShell/codeshell-vscode/issues/42",
    16: "https://github.com/abetlen/llama-cpp-python/issues/687",
    32: "https://github.com/ggml-org/llama.cpp/pull/2011",
    64: "https://github.com/ggml-org/llama.cpp/issues/1870",
    96: "https://github.com/ggml-org/llama.cpp/issues/3213",
}
ALONE = "{card} runs no CUDA: only llama.cpp is counted on it"
_MACS = tuple([Device(f"Apple {box}GB", box, None, read * MiB // 100) for box, read in READINGS])


def macs() -> tuple[Device, ...]:
    """Apple's memories of which there is a reading."""
    return _MACS


def mac(name: object) -> Device | None:
    """The one of that name, "Apple 16GB"; None: it is no such name."""
    if isinstance(name, Device):
        name = name.name
    wanted = str(name).lower().replace(" ", "")
    found = [each for each in _MACS if each.name.lower().replace(" ", "") == wanted]
    return found[0] if found else None


def context_of(card: Device) -> int:
    """Bytes of a card that CUDA's context takes: none of Apple's."""
    return 0 if mac(card) else CONTEXT


def no_cuda(card: Device) -> str:
    """Why nothing but llama.cpp is counted on it."""
    return Message(ALONE, card=card.name)
