"""What a tracker has seen, through the model of the CUDA allocator, into PyTorch's memory viewer.

No GPU is needed: a step traced on the meta device opens at https://docs.pytorch.org/memory_viz as
if it had run on one. `dump_snapshot(tracker, "step.pickle")`, then drop the file there.
"""

import pickle
from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from ..terms.replay import Replay, replay
from .log import Event
from .recorded import Recorded

Frame = dict[str, Any]

# The viewer reads protocols 2 to 4 (torch/utils/viz/MemoryViz.js, unpickle).
PROTOCOL = 4
# It colours by category only where one of them is "unknown", and fails where none is.
UNKNOWN = "unknown"


def allocator_events(
    tracker: Recorded, device: str | torch.device | None = None
) -> list[tuple[str, int, int]]:
    """The tracker's timeline as `terms.replay` takes it: (kind, storage, bytes from then on).

    device      count the storages of this one only; None counts all, as if they shared one GPU
    Raises      ValueError for a device torch does not know
    """
    return [(event.kind, event.ident, size) for event, size in _chosen(tracker, device)]


def replay_tracker(
    tracker: Recorded,
    capacity: int | None = None,
    *,
    expandable: bool = False,
    device: str | torch.device | None = None,
) -> Replay:
    """The tracker's storages in the allocator: bytes reserved over time, and where it ran out.

    Unit        bytes; one number for each event of `allocator_events(tracker, device)`
    Leaves out  what the tracker leaves out (workspaces inside kernels), and what
                `memlab.terms.allocator` lists
    """
    return replay(allocator_events(tracker, device), capacity=capacity, expandable=expandable)


def snapshot(
    tracker: Recorded,
    capacity: int | None = None,
    *,
    expandable: bool = False,
    device: str | torch.device | None = None,
) -> dict[str, Any]:
    """The same as torch.cuda.memory._snapshot() would have recorded it.

    Source      the format: torch.cuda.memory._snapshot, torch.cuda._memory_viz
    Frames      in the place of a stack trace, one line: phase : event : operator, tensor, category;
                before it the line of the program, where the tracker knows it (memlab.measure.live)
    Time        the index of the event in the tracker's timeline, as microseconds
    Leaves out  stack traces, streams, compile contexts
    """
    trace: list[dict[str, Any]] = []
    frames: dict[Hashable, list[Frame]] = {}
    current: Event | None = None
    coloured = any(record.category == "other" for record in tracker.records.values())

    def tell(action: str, address: int, size: int) -> None:
        assert current is not None
        entry: dict[str, Any] = {
            "action": action,
            "addr": address,
            "size": size,
            "stream": 0,
            "time_us": current.index,
            "frames": frames[current.ident],
            "pool_id": (0, 0),
        }
        if action == "oom":
            entry["device_free"] = entry.pop("addr")
        if action == "alloc" and coloured:
            category = tracker.records[current.ident].category
            entry["category"] = UNKNOWN if category == "other" else category
        if action == "free":
            trace.append({**entry, "action": "free_requested"})
            entry["action"] = "free_completed"
        trace.append(entry)

    def events() -> Iterator[tuple[str, int, int]]:
        nonlocal current
        for event, size in _chosen(tracker, device):
            current = event
            if event.kind != "free":
                frames[event.ident] = _frames(tracker, event)
            yield event.kind, event.ident, size

    done = replay(events(), capacity=capacity, expandable=expandable, tell=tell)
    return {
        "segments": _segments(done, frames),
        "device_traces": [trace],
        "allocator_settings": {
            "PYTORCH_ALLOC_CONF": f"expandable_segments:{expandable}",
            "expandable_segments": expandable,
        },
        "external_annotations": [],
    }


def dump_snapshot(tracker: Recorded, path: str | Path, **options: Any) -> Path:
    """Write `snapshot(tracker, **options)` to a file that PyTorch's memory viewer opens.

    Raises      OSError if the file cannot be written
    """
    path = Path(path)
    path.write_bytes(pickle.dumps(snapshot(tracker, **options), protocol=PROTOCOL))
    return path


def _chosen(tracker: Recorded, device: str | torch.device | None) -> Iterator[tuple[Event, int]]:
    """Each event on `device` and the bytes its storage has from then on."""
    try:
        wanted = None if device is None else torch.device(device)
    except RuntimeError as error:
        raise ValueError(f"device={device!r} is not a device torch knows") from error
    sizes: dict[int, int] = {}
    for event in tracker.timeline:
        if wanted is not None:
            here = torch.device(tracker.records[event.ident].device)
            if here.type != wanted.type or wanted.index not in (None, here.index):
                continue
        size = sizes.pop(event.ident, 0) + event.bytes
        if event.kind != "free":
            sizes[event.ident] = size
        yield event, size


def _frames(tracker: Recorded, event: Event) -> list[Frame]:
    record = tracker.records[event.ident]
    what = f"{event.op} {record.dtype}{list(record.shape)} {record.category}"
    made = {"filename": event.phase or "step", "line": event.index, "name": what}
    line = getattr(tracker, "lines", {}).get(event.ident)
    if line is None:
        return [made]
    file, _, number = line.where.rpartition(":")
    return [{"filename": file, "line": int(number or 0), "name": line.code}, made]


def _segments(done: Replay, frames: Mapping[Hashable, list[Frame]]) -> list[dict[str, Any]]:
    found = []
    for small, blocks in done.allocator.segments():
        used = [block for block in blocks if block.ident is not None]
        found.append(
            {
                "device": 0,
                "address": blocks[0].address,
                "total_size": sum(block.size for block in blocks),
                "allocated_size": sum(block.size for block in used),
                "active_size": sum(block.size for block in used),
                "requested_size": sum(block.requested for block in used),
                "stream": 0,
                "segment_type": "small" if small else "large",
                "segment_pool_id": (0, 0),
                "is_expandable": done.allocator.expandable,
                "frames": [],
                "blocks": [
                    {
                        "address": block.address,
                        "size": block.size,
                        "requested_size": block.requested,
                        "state": "inactive" if block.ident is None else "active_allocated",
                        "frames": frames.get(block.ident, []),
                    }
                    for block in blocks
                ],
            }
        )
    return found
