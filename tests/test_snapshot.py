"""A tracker's step as PyTorch's own readers of memory snapshots take it.

torch.cuda._memory_viz reads the dictionary here; its viewer in the browser (MemoryViz.js) is not in
the wheel, so what it needs is checked field by field: the opcodes it can unpickle, the "unknown"
category, and that undoing the trace from its end leaves nothing, which is how it draws history.
"""

import pickle
import pickletools

import pytest
import torch
from torch.cuda import _memory_viz as viz

from memlab import MiB
from memlab.measure import Tracker
from memlab.measure.snapshot import allocator_events, dump_snapshot, replay_tracker, snapshot

# torch/utils/viz/MemoryViz.js, unpickle
OPCODES = """APPEND APPENDS BINGET BINFLOAT BININT BININT1 BININT2 BINPUT BINUNICODE DICT EMPTY_DICT
EMPTY_LIST EMPTY_TUPLE FRAME LIST LONG1 LONG_BINGET LONG_BINPUT MARK MEMOIZE NEWFALSE NEWTRUE NONE
PROTO SETITEM SETITEMS SHORT_BINUNICODE STOP TUPLE TUPLE1 TUPLE2 TUPLE3""".split()
OPTIONS = [{}, {"expandable": True}, {"capacity": 20 * MiB}, {"device": "meta"}]


@pytest.fixture(scope="module")
def tracker():
    with torch.device("meta"):
        net = torch.nn.Sequential(torch.nn.Linear(1000, 700), torch.nn.Linear(700, 30))
        x = torch.empty(200, 1000)
    optimizer = torch.optim.AdamW(net.parameters())
    tracker = Tracker()
    tracker.label(net)
    tracker.label(optimizer)
    tracker.label(x, "inputs")
    with tracker:
        for _ in range(2):
            with tracker.phase("forward"):
                loss = net(x).sum()
            with tracker.phase("backward"):
                loss.backward()
            del loss
            with tracker.phase("step"):
                optimizer.step()
                optimizer.zero_grad()
        grown = torch.empty(100, device="meta")
        grown.untyped_storage().resize_(4 * MiB)
    return tracker


def undone(found):
    """The memory before the trace, worked out backwards from the segments at its end."""
    segments = {s["address"]: s["total_size"] for s in found["segments"]}
    blocks = {
        b["address"]: b["requested_size"]
        for s in found["segments"]
        for b in s["blocks"]
        if b["state"] == "active_allocated"
    }
    for entry in reversed(found["device_traces"][0]):
        address, size = entry.get("addr"), entry["size"]
        match entry["action"]:
            case "alloc":
                assert blocks.pop(address) == size
            case "free_completed":
                assert address not in blocks
                blocks[address] = size
            case "segment_alloc":
                assert segments.pop(address) == size
            case "segment_free":
                assert address not in segments
                segments[address] = size
            case "segment_map":
                start = max(a for a in segments if a <= address)
                length = segments.pop(start)
                assert address + size <= start + length
                if start < address:
                    segments[start] = address - start
                if address + size < start + length:
                    segments[address + size] = start + length - address - size
            case "segment_unmap":
                if address + size in segments:  # one stretch with its neighbours
                    size += segments.pop(address + size)
                for start, length in segments.items():
                    if start + length == address:
                        address, size = start, length + size
                segments[address] = size
            case action:
                assert action in ("free_requested", "oom")
    return segments, blocks


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_torch_reads_it(tracker, options):
    found = snapshot(tracker, **options)
    done = replay_tracker(tracker, **options)
    assert f"total_reserved: {viz.Bytes(done.reserved[-1])}" in viz.segsum(found)
    assert f"{len(found['device_traces'][0])} entries" in viz.trace(found)
    for flame in (viz.segments, viz.memory):
        lines = flame(found, format_flamegraph=lambda text: text).splitlines()
        assert sum(int(line.split(" ")[-1]) for line in lines) == done.reserved[-1]
    for page in (viz.trace_plot(found), viz.segment_plot(found), viz.trace_plot(found, None, True)):
        assert "add_local_files(local_files" in page
    assert viz.trace_plot(found, filter_freed=True)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_it_adds_up(tracker, options):
    found = snapshot(tracker, **options)
    done = replay_tracker(tracker, **options)
    assert sum(s["total_size"] for s in found["segments"]) == done.reserved[-1]
    assert sum(s["allocated_size"] for s in found["segments"]) == done.allocated[-1]
    assert sum(s["requested_size"] for s in found["segments"]) == done.requested[-1]
    for segment in found["segments"]:
        assert sum(block["size"] for block in segment["blocks"]) == segment["total_size"]
        assert segment["device"] == 0 and segment["segment_type"] in ("small", "large")
    total = peak = 0
    for entry in found["device_traces"][0]:
        total += {"alloc": 1, "free_completed": -1}.get(entry["action"], 0) * entry["size"]
        peak = max(peak, total)
    assert (total, peak) == (done.requested[-1], done.peak_requested)


@pytest.mark.parametrize("options", OPTIONS[:2], ids=str)
def test_undoing_the_trace_leaves_nothing(tracker, options):
    assert undone(snapshot(tracker, **options)) == ({}, {})


@pytest.mark.parametrize(("expandable", "capacity"), [(False, 70), (True, 60)])
def test_undoing_a_trace_with_a_retry(expandable, capacity):
    tracker = Tracker()
    with tracker:
        first = torch.empty(30 * MiB, dtype=torch.int8, device="meta")
        second = torch.empty(5 * MiB, dtype=torch.int8, device="meta")
        del first
        third = torch.empty(45 * MiB, dtype=torch.int8, device="meta")
    found = snapshot(tracker, capacity=capacity * MiB, expandable=expandable)
    actions = [entry["action"] for entry in found["device_traces"][0]]
    assert ("segment_unmap" if expandable else "segment_free") in actions
    assert undone(found) == ({}, {})
    assert second.nbytes + third.nbytes == sum(s["requested_size"] for s in found["segments"])


def test_out_of_memory_is_the_last_entry(tracker):
    found = snapshot(tracker, capacity=8 * MiB)
    error = replay_tracker(tracker, 8 * MiB).out_of_memory
    last = found["device_traces"][0][-1]
    assert last["action"] == "oom" and last["time_us"] == error.event
    assert (last["size"], last["device_free"]) == (2800128, error.free)
    assert "raise OutOfMemoryError # 2.7MiB requested, 8.0MiB free" in viz.trace(found)


def test_frames_say_what_it_was(tracker):
    found = snapshot(tracker)
    frames = [entry["frames"][0] for entry in found["device_traces"][0]]
    assert {"filename": "step", "line": 0, "name": "label float32[700, 1000] weights"} in frames
    assert any(f["filename"] == "forward" and "addmm" in f["name"] for f in frames)
    categories = {e.get("category") for e in found["device_traces"][0] if e["action"] == "alloc"}
    assert {"weights", "gradients", "optimizer", "activations", "unknown"} <= categories


def test_no_categories_without_an_unknown_one():
    """MemoryViz.js fails where there are categories and none is "unknown"."""
    tracker = Tracker()
    with tracker:
        kept = tracker.label(torch.empty(5), "weights")
    assert all("category" not in entry for entry in snapshot(tracker)["device_traces"][0])
    assert kept.numel() == 5


@pytest.mark.parametrize("options", OPTIONS[:3], ids=str)
def test_the_file_opens(tracker, tmp_path, options):
    path = dump_snapshot(tracker, tmp_path / "step.pickle", **options)
    assert pickle.loads(path.read_bytes()) == snapshot(tracker, **options)
    used = {opcode.name for opcode, *_ in pickletools.genops(path.read_bytes())}
    assert used <= set(OPCODES)
    numbers = [value for _, value, _ in pickletools.genops(path.read_bytes())]
    assert max(n for n in numbers if isinstance(n, int)) < 2**53  # exact in JavaScript


def test_events_of_one_device(tracker):
    """AdamW keeps its step counters on the CPU: on a GPU they take nothing."""
    everything, meta = allocator_events(tracker), allocator_events(tracker, "meta")
    counters = [event for event in allocator_events(tracker, "cpu") if event[0] != "free"]
    assert len(everything) == len(meta) + len(allocator_events(tracker, "cpu"))
    assert counters and all(size == 4 for _, _, size in counters)
    assert ("resize", meta[-1][1], 4 * MiB) in meta
    assert replay_tracker(tracker).peak_requested == tracker.peak
    with pytest.raises(ValueError, match="'gpu' is not a device torch knows"):
        allocator_events(tracker, "gpu")
