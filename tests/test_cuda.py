"""The CUDA counters, replayed: every figure here is made up; no test needs a GPU."""

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from memlab.measure import cuda  # noqa: E402
from memlab.measure.stats import memory_summary  # noqa: E402


@pytest.fixture
def device(monkeypatch):
    """A pretended device whose statistics a test may change; it records what was called."""
    stats = {}
    for number, key in enumerate(cuda.KEYS.values()):
        for pool in ("all", "small_pool", "large_pool"):
            for offset, kind in enumerate(("current", "peak", "allocated", "freed")):
                stats[f"{key}.{pool}.{kind}"] = 1000 * number + 10 * offset + len(pool)
    stats["num_ooms"] = 0
    calls = []
    pretended = {
        "is_available": lambda: True,
        "init": lambda: calls.append("init"),
        "synchronize": lambda device=None: calls.append(("synchronize", device)),
        "memory_stats": lambda device=None: dict(stats),
        "reset_peak_memory_stats": lambda device=None: calls.append(("reset", device)),
    }
    for name, function in pretended.items():
        monkeypatch.setattr(torch.cuda, name, function)
    monkeypatch.delenv("MEMLAB_DEVICE", raising=False)
    return stats, calls


def test_counters_read_the_documented_keys(device):
    _, calls = device
    found = cuda.counters("cuda:1")
    # all = 3 letters; current and peak are offsets 0 and 1 above
    assert found.as_dict() == {
        "allocated": 3,
        "allocated_peak": 13,
        "requested": 1003,
        "requested_peak": 1013,
        "active": 2003,
        "active_peak": 2013,
        "reserved": 3003,
        "reserved_peak": 3013,
    }
    assert (found.current, found.peak) == (3, 13)
    assert calls == ["init", ("synchronize", "cuda:1")]


def test_the_block_has_the_names_of_the_tracker_and_stops_at_its_end(device):
    stats, calls = device
    with cuda.CudaTracker() as meter:
        assert ("reset", None) in calls
        stats["allocated_bytes.all.current"] = 512
        stats["allocated_bytes.all.peak"] = 2048
        assert (meter.current, meter.peak) == (512, 2048)
        with pytest.raises(RuntimeError, match="already recording"):
            meter.__enter__()
        calls.clear()
        meter.reset_peak()
        assert ("reset", None) in calls
    stats["allocated_bytes.all.current"] = 9999
    assert (meter.current, meter.peak, meter.snapshot()["reserved"]) == (512, 2048, 3003)


def test_a_run_is_counted_where_there_is_a_device(device, monkeypatch):
    stats, calls = device

    def run():
        calls.append("run")
        stats["requested_bytes.all.peak"] = 777

    found = cuda.counted(run)
    assert found is not None and found.requested_peak == 777
    assert calls.index(("reset", None)) < calls.index("run")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert cuda.counted(run) is None and calls.count("run") == 1


def test_an_allocator_that_does_not_count_is_named(device):
    stats, _ = device
    del stats["requested_bytes.all.current"]
    with pytest.raises(RuntimeError, match="no requested_bytes.all.current"):
        cuda.counters()


def test_reading_before_the_block(device):
    with pytest.raises(RuntimeError, match="has not begun"):
        _ = cuda.CudaTracker().current


@pytest.mark.parametrize("call", [cuda.counters, cuda.reset_peak, cuda.CudaTracker().__enter__])
def test_without_a_device_the_error_says_so(monkeypatch, call):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert not cuda.available()
    with pytest.raises(RuntimeError, match="this torch build sees no CUDA device"):
        call()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_real_allocation_is_rounded_to_512_bytes(monkeypatch):
    monkeypatch.delenv("MEMLAB_DEVICE", raising=False)
    before = cuda.counters()
    with cuda.CudaTracker() as meter:
        x = torch.ones(3, device="cuda")
        assert meter.current - before.allocated == 512
        assert meter.counters.requested - before.requested == x.nbytes
        assert meter.peak >= meter.current


@pytest.fixture
def answers(monkeypatch):
    """The C++ side of torch.cuda, answering from a file; torch's own Python reads the answers."""
    file = Path(__file__).parent / "device" / "memory_stats.json"
    stats = json.loads(file.read_text())["stats"]
    stats["reserved_bytes_by_private_pools"] = {(0, 1): stats["reserved_bytes"]}
    asked = []

    def said(device):
        asked.append(device)
        return stats

    monkeypatch.setattr(torch._C, "_cuda_memoryStats", said, raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "init", lambda: None)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device=None: None)
    monkeypatch.setattr(torch.cuda.memory, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda.memory, "_get_device_index", lambda device, optional: 0)
    monkeypatch.delenv("MEMLAB_DEVICE", raising=False)
    return stats, asked


def test_torch_itself_hands_the_answers_on_under_these_keys(answers):
    stats, asked = answers
    found = cuda.counters()
    for name, key in cuda.KEYS.items():
        assert getattr(found, name) == stats[key]["all"]["current"]
        assert getattr(found, f"{name}_peak") == stats[key]["all"]["peak"]
    assert asked == [0] and found.reserved_peak > found.allocated_peak > found.requested_peak > 0


def test_torch_prints_a_summary_of_the_same_answers(answers):
    assert "GPU reserved memory" in memory_summary(torch.cuda.memory_stats())


def test_a_pluggable_allocator_answers_nothing(answers):
    stats, _ = answers
    stats.clear()
    with pytest.raises(RuntimeError, match="backend:native"):
        cuda.counters()


def test_the_async_allocator_says_zero_where_it_does_not_count(answers):
    """CudaMallocAsyncAllocator.cpp fills in allocated and reserved bytes and leaves the rest."""
    stats, _ = answers
    stats["requested_bytes"]["all"] = dict.fromkeys(stats["requested_bytes"]["all"], 0)
    with pytest.raises(RuntimeError, match=r"counts no requested_bytes.*backend:native"):
        cuda.counters()
