"""The allocator's statistics, replayed: by hand, against the replay, and as PyTorch prints them."""

import pytest
import torch

from memlab import KiB, MiB
from memlab.measure import Tracker, replay_tracker
from memlab.measure.stats import memory_stats, memory_summary


def tensor(size):
    return torch.empty(size, dtype=torch.int8, device="meta")


@pytest.fixture(scope="module")
def few():
    """Two small tensors and a large one; the first goes again, the last is resized."""
    tracker = Tracker()
    with tracker:
        a, b = tensor(300 * KiB - 100), tensor(300 * KiB)
        c = tensor(5 * MiB)
        del a
        c.untyped_storage().resize_(16 * MiB)
    return tracker, b, c


def all_four(stats, key):
    return [stats[f"{key}.{kind}"] for kind in ("current", "peak", "allocated", "freed")]


def test_by_hand(few):
    stats = memory_stats(few[0])
    # 300 KiB is 600 blocks of 512 B; the small segment has 2 MiB, a 5 MiB tensor gets one of 20,
    # of which what is left is cut off, and 16 MiB needs a segment of its own.
    assert all_four(stats, "requested_bytes.all") == [
        300 * KiB + 16 * MiB,
        300 * KiB + 21 * MiB,  # the new block is there before the old one goes; a is gone
        600 * KiB - 100 + 21 * MiB,
        300 * KiB - 100 + 5 * MiB,
    ]
    assert all_four(stats, "allocated_bytes.small_pool") == [300 * KiB, *2 * [600 * KiB], 300 * KiB]
    assert all_four(stats, "allocation.all") == [2, 3, 4, 2]
    assert all_four(stats, "reserved_bytes.all") == [*3 * [38 * MiB], 0]
    assert all_four(stats, "segment.large_pool") == [2, 2, 2, 0]
    # Free in a segment that is in use: what a left and the rest of the 2 MiB, on both sides of b.
    assert all_four(stats, "inactive_split.small_pool") == [2, 2, 2, 0]
    rest = 2 * MiB - 600 * KiB
    assert all_four(stats, "inactive_split_bytes.small_pool") == [
        300 * KiB + rest,
        2 * MiB - 300 * KiB,
        2 * MiB - 300 * KiB + 300 * KiB,
        300 * KiB,
    ]
    # The segment of 20 MiB is free as a whole once its 5 MiB are: it can go back.
    assert all_four(stats, "inactive_split_bytes.large_pool") == [0, *3 * [15 * MiB]]
    assert stats["num_ooms"] == stats["oversize_segments.peak"] == 0


@pytest.fixture(scope="module")
def step():
    with torch.device("meta"):
        net = torch.nn.Sequential(torch.nn.Linear(1000, 700), torch.nn.Linear(700, 30))
        x = torch.empty(200, 1000)
    tracker = Tracker()
    tracker.label([net, torch.optim.AdamW(net.parameters())])
    tracker.label(x, "inputs")
    with tracker:
        for _ in range(2):
            net(x).sum().backward()
            net.zero_grad()
    return tracker, net


def test_it_says_what_the_replay_says(step):
    tracker, _ = step
    stats, done = memory_stats(tracker), replay_tracker(tracker)
    for name in ("requested", "allocated", "reserved"):
        steps = getattr(done, name)
        assert stats[f"{name}_bytes.all.current"] == steps[-1]
        assert stats[f"{name}_bytes.all.peak"] == max(steps)
    for key in {key.rpartition(".")[0] for key in stats if ".all." in key}:
        current, peak, came, went = all_four(stats, key)
        assert came - went == current <= peak <= came
        pools = [
            all_four(stats, key.replace(".all", f".{pool}"))
            for pool in ("large_pool", "small_pool")
        ]
        assert [current, came, went] == [sum(pool[i] for pool in pools) for i in (0, 2, 3)]
    # What empty_cache gives back is what is not in use and not part of a segment in use.
    free = stats["reserved_bytes.all.current"] - stats["allocated_bytes.all.current"]
    done.allocator.empty_cache()
    back = done.reserved[-1] - done.allocator.reserved
    assert back == free - stats["inactive_split_bytes.all.current"]


def test_pytorch_prints_it(few):
    stats = memory_stats(few[0])
    text = memory_summary(stats)
    lines = {
        row.split("|")[1].strip(): row.split("|")[2:] for row in text.splitlines() if "|" in row
    }
    assert [cell.split()[0] for cell in lines["GPU reserved memory"][:4]] == ["38912"] * 3 + ["0"]
    assert lines["Active allocs"][0].strip() == "2"
    assert "from large pool" not in text and "from large pool" in memory_summary(stats, False)
    assert torch.cuda.memory.memory_stats.__module__ == "torch.cuda.memory"
