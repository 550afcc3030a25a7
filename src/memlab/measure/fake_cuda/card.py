"""One card of memlab's list in the place of torch.cuda and torch.accelerator.

Source      the names that PyTorch 2.13 has in torch/cuda, torch/accelerator and torch._C; another
            version has what it has of them
"""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily

from ...devices import Device
from ...terms.context import CONTEXT
from ...units import MiB
from .streams import Current, Event, Marks, Stream
from .undo import Changes

# Minor numbers of compute capability, where a card's is not the most frequent one of its major.
# Source      https://developer.nvidia.com/cuda-gpus and /cuda-legacy-gpus
USUAL = {6: 1, 7: 5, 8: 6, 9: 0, 10: 0, 12: 0}
MINOR = {"P100": 0, "V100": 0, "A100": 0, "A30": 0, "B300": 3, "GB10": 1}
MINOR |= {"RTX 40": 9, "L4": 9, "RTX 6000 Ada": 9}
UNKNOWN = (8, 6)  # of a size without a name
NOTHING = (
    "synchronize empty_cache reset_peak_memory_stats reset_max_memory_allocated "
    "reset_max_memory_cached reset_accumulated_memory_stats manual_seed manual_seed_all seed "
    "seed_all init _lazy_init ipc_collect set_rng_state set_rng_state_all set_stream "
    "set_per_process_memory_fraction _record_memory_history _dump_snapshot"
)


# Of torch._C. Meshes and FSDP2 ask for the accelerator there, past torch.accelerator: without an
# answer they are on the CPU.
BELOW = (
    *("_cuda_getDeviceCount", "_cuda_getDevice", "_cuda_setDevice", "_cuda_exchangeDevice"),
    *("_cuda_maybeExchangeDevice", "_cuda_isCurrentStreamCapturing"),
    *("_accelerator_getAccelerator", "_get_accelerator"),
)


def capability(card: Device) -> tuple[int, int]:
    """Compute capability of a card, major and minor."""
    if card.capability is None:
        return UNKNOWN
    minor = next((m for name, m in MINOR.items() if name in card.name), None)
    return card.capability, USUAL[card.capability] if minor is None else minor


def show(changes: Changes, card: Device, tracker: Any, count: int = 1, number: int = 0) -> None:
    """Let torch find so many such cards; the memory of one is what the tracker counts.

    number      of that one: a device of this number is cuda:0, the only one that C++ takes for the
                current device here
    """
    name, (major, minor), total = f"NVIDIA {card.name}", capability(card), card.limit
    properties = SimpleNamespace(
        name=name,
        major=major,
        minor=minor,
        total_memory=total,
        multi_processor_count=132,
        warp_size=32,
        gcnArchName="",
        uuid="GPU-rehearsed",
        max_threads_per_multi_processor=2048,
        max_threads_per_block=1024,
        regs_per_multiprocessor=65536,
        shared_memory_per_block=48 * 1024,
        shared_memory_per_block_optin=227 * 1024,
        shared_memory_per_multiprocessor=228 * 1024,
        L2_cache_size=50 * MiB,
        is_integrated=0,
        is_multi_gpu_board=0,
    )
    current = Current(number)
    context = current.context()

    def state(*_: Any, **__: Any) -> Any:
        with unset_fake_temporarily():
            return torch.zeros(16, dtype=torch.uint8)

    def held(*_: Any, **__: Any) -> int:
        return tracker.current

    def most(*_: Any, **__: Any) -> int:
        return tracker.peak

    def free(*_: Any, **__: Any) -> tuple[int, int]:
        return max(0, total - CONTEXT - tracker.current), total

    def stats(*_: Any, **__: Any) -> dict[str, int]:
        kinds = ("allocated_bytes", "active_bytes", "reserved_bytes", "requested_bytes")
        found = {f"{kind}.all.current": tracker.current for kind in kinds}
        found |= {f"{kind}.all.peak": tracker.peak for kind in kinds}
        return found | {"num_alloc_retries": 0, "num_ooms": 0}

    own = {
        "is_available": _always(True),
        "is_initialized": _always(True),
        "device_count": _always(count),
        "get_device_name": _always(name),
        "get_device_capability": _always((major, minor)),
        "get_device_properties": _always(properties),
        "is_bf16_supported": _always(major >= 8),
        "is_tf32_supported": _always(major >= 8),
        "get_arch_list": _always([f"sm_{major}{minor}"]),
        "can_device_access_peer": _always(True),
        "utilization": _always(0),
        "initial_seed": _always(0),
        "get_rng_state": state,
        "get_rng_state_all": lambda: [state()],
        "mem_get_info": free,
        "memory_stats": stats,
        "memory_allocated": held,
        "max_memory_allocated": most,
        "memory_reserved": held,
        "max_memory_reserved": most,
        "memory_summary": _always("no summary: a rehearsal has no allocator yet"),
        "current_device": lambda: current.index,
        "set_device": current.set,
        "device": context,
        "device_of": context,
        "_DeviceGuard": context,
        "_lazy_call": _always(None),
        "is_current_stream_capturing": _always(False),
        **_streams(),
        **dict.fromkeys(NOTHING.split(), _always(None)),
    }
    for home in (torch.cuda, torch.cuda.memory, torch.cuda.random):
        changes.replace_all(home, own)
    there = torch.device("cuda")
    accelerator = {
        "is_available": _always(True),
        "device_count": _always(count),
        "current_accelerator": _always(there),
        "current_device_index": lambda: current.index,
        "current_device_idx": lambda: current.index,
        "set_device_index": current.set,
        "set_device_idx": current.set,
        "get_device_capability": _always({}),
        "device_index": context,
        "get_memory_info": free,
        **{name: own[name] for name in ("memory_stats", "memory_allocated", "memory_reserved")},
        **{name: own[name] for name in ("max_memory_allocated", "max_memory_reserved")},
        **_streams(),
        **dict.fromkeys(NOTHING.split(), _always(None)),
    }
    for home in (torch.accelerator, torch.accelerator.memory):
        changes.replace_all(home, accelerator)
    changes.replace(torch, "Event", Event)
    changes.replace(torch, "Stream", Stream)
    changes.replace(torch.backends.cuda, "is_built", _always(True))
    changes.replace(torch.cuda.nvtx, "_nvtx", Marks())
    below = {
        "_cuda_getDeviceCount": _always(count),
        "_cuda_getDevice": lambda: current.index,
        "_cuda_setDevice": current.set,
        "_cuda_exchangeDevice": lambda _: current.index,
        "_cuda_maybeExchangeDevice": lambda _: current.index,
        "_cuda_isCurrentStreamCapturing": _always(False),
        "_accelerator_getAccelerator": _always(there),
        "_get_accelerator": _always(there),
    }
    for name in BELOW:
        changes.replace(torch._C, name, below[name])
    # A fake tensor need not start CUDA, though torch.cuda says that there is one.
    changes.replace(FakeTensorMode, "avoid_device_init", property(lambda _: True))


def hide(changes: Changes) -> None:
    """Let torch find no card, on a machine that has one too."""
    none = {"is_available": _always(False), "device_count": _always(0)}
    changes.replace_all(torch.cuda, none)
    changes.replace_all(torch.accelerator, none | {"current_accelerator": _always(None)})


def _streams() -> dict[str, Any]:
    return {
        "Stream": Stream,
        "ExternalStream": Stream,
        "Event": Event,
        "StreamContext": lambda *_: nullcontext(),
        "stream": lambda *_: nullcontext(),
        "current_stream": lambda *_: Stream(),
        "default_stream": lambda *_: Stream(),
    }


def _always(value: Any) -> Any:
    return lambda *_, **__: value
