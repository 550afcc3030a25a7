"""torch.profiler's memory events: calls to the allocator, beside what a tracker sees."""

import pytest
import torch
import torch.nn.functional as F

from memlab.measure import Tracker
from memlab.measure.profiled import profiled


def test_what_comes_and_goes():
    before = torch.ones(5000)
    with profiled() as seen:
        x = torch.ones(1000)
        y = x * x
        del x, before
    assert (seen.current, seen.peak, seen.asked) == (4000, 8000, 8000)
    assert y.nbytes == 4000 and seen.changes[:2] == [4000, 4000]


def test_nothing_yet():
    with profiled() as seen:
        assert (seen.current, seen.peak, seen.asked) == (0, 0, 0)


def test_scratch_inside_a_kernel_is_seen_by_nobody_else():
    q = torch.randn(1, 4, 256, 64)
    tracker = Tracker()
    with profiled() as seen, tracker, torch.no_grad():
        y = F.scaled_dot_product_attention(q, q, q)
    made = sum(event.bytes for event in tracker.timeline if event.kind == "alloc")
    assert seen.asked > made >= y.nbytes  # what the kernel needs for itself
    assert seen.peak > tracker.peak - q.nbytes  # q was there before
    assert seen.current == y.nbytes  # and nothing of it stays


def test_stderr_stays_quiet(capfd):
    with profiled():
        torch.ones(3)
    assert capfd.readouterr().err == ""


def test_an_unknown_device():
    said = "device='meta' has no memory events; known: cpu, cuda"
    with pytest.raises(ValueError, match=said), profiled("meta"):
        pass
