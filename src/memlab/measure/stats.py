"""What torch.cuda.memory_stats would say of a run, had it been on a GPU: replayed, not measured.

A tracker's storages go through the model of the caching allocator one by one, and after each the
statistics are brought up to date as PyTorch does it. `memory_summary` lets PyTorch's own function
print them, so that what one reads here is what one will read on a card.
"""

from unittest.mock import patch

import torch

from ..terms.allocator import CachingAllocator
from .recorded import Recorded
from .snapshot import allocator_events

POOLS = ("all", "large_pool", "small_pool")
KINDS = ("current", "peak", "allocated", "freed")
METRICS = (
    "allocated_bytes",
    "allocation",
    "active_bytes",
    "active",
    "requested_bytes",
    "reserved_bytes",
    "segment",
    "inactive_split_bytes",
    "inactive_split",
)
# Never more than zero unless max_split_size_mb is set, which the model leaves out.
OVERSIZE = ("oversize_allocations", "oversize_segments")


def memory_stats(tracker: Recorded, device: str | torch.device | None = None) -> dict[str, int]:
    """The statistics of the allocator after the tracker's last event.

    Shapes      "allocated_bytes.all.peak" and so on: a metric, all pools or one of the two, and
                current, peak, allocated (all that ever came) or freed (all that ever went)
    Unit        bytes where the metric says so; else blocks or segments
    Source      torch.cuda.memory_stats; c10/cuda/CUDACachingAllocator.cpp for what each counts
    Leaves out  what `memlab.terms.allocator` leaves out, and expandable segments
    """
    allocator, blocks = CachingAllocator(), dict[int, int]()
    stats = {f"{m}.{p}.{k}": 0 for m in METRICS for p in POOLS for k in KINDS}
    before = _state(allocator)
    for index, (kind, ident, size) in enumerate(allocator_events(tracker, device)):
        old = blocks.pop(ident, None)
        if kind != "free":  # a resize takes its new block before the old one goes
            blocks[ident] = index
            allocator.malloc(index, size)
            before = _update(stats, before, _state(allocator))
        if old is not None:
            allocator.free(old)
            before = _update(stats, before, _state(allocator))
    stats |= {f"{metric}.{kind}": 0 for metric in OVERSIZE for kind in KINDS}
    return stats | {"num_alloc_retries": allocator.retries, "num_ooms": allocator.ooms}


def memory_summary(stats: dict[str, int], abbreviated: bool = True) -> str:
    """The text of torch.cuda.memory_summary, printed by PyTorch itself from these statistics.

    stats           of `memory_stats`, here or of torch.cuda
    abbreviated     without the lines for the large and the small pool
    """
    with patch.object(torch.cuda.memory, "memory_stats", lambda device=None: stats):
        return torch.cuda.memory_summary(0, abbreviated).rstrip("\n")


def _update(stats: dict[str, int], before: dict[str, int], now: dict[str, int]) -> dict[str, int]:
    """Bring the statistics from one state of the allocator to the next, which is returned."""
    for key, value in now.items():
        change = value - before[key]
        stats[f"{key}.current"] = value
        stats[f"{key}.peak"] = max(stats[f"{key}.peak"], value)
        stats[f"{key}.{'allocated' if change > 0 else 'freed'}"] += abs(change)
    return now


def _state(allocator: CachingAllocator) -> dict[str, int]:
    """Every metric of every pool at this moment."""
    found = {f"{metric}.{pool}": 0 for metric in METRICS for pool in POOLS}

    def add(small: bool, metric: str, amount: int) -> None:
        found[f"{metric}.all"] += amount
        found[f"{metric}.{'small' if small else 'large'}_pool"] += amount

    for small, blocks in allocator.segments():
        add(small, "segment", 1)
        for block in blocks:
            add(small, "reserved_bytes", block.size)
            if block.ident is not None:
                for metric in ("allocation", "active"):
                    add(small, metric, 1)
                for metric in ("allocated_bytes", "active_bytes"):
                    add(small, metric, block.size)
                add(small, "requested_bytes", block.requested)
            elif len(blocks) > 1:  # a whole segment that is free can go back; a part cannot
                add(small, "inactive_split", 1)
                add(small, "inactive_split_bytes", block.size)
    return found
