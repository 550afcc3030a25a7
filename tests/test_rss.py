"""The process as Linux sees it: pages, counted when they are touched."""

from pathlib import Path

import pytest
import torch

from memlab import MiB
from memlab.measure import rss

linux = pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="no /proc")


@linux
def test_a_page_counts_from_its_first_touch():
    before = rss.process_memory()
    x = torch.empty(64 * MiB, dtype=torch.int8)
    asked = rss.process_memory()
    x.fill_(1)
    touched = rss.process_memory()
    assert asked.anonymous - before.anonymous < 8 * MiB
    assert 56 * MiB < touched.anonymous - asked.anonymous < 72 * MiB
    assert touched.resident == touched.anonymous + touched.file_backed <= touched.peak


@linux
def test_the_peak_can_be_forgotten():
    x = torch.ones(16 * MiB)
    del x
    high = rss.process_memory().peak
    try:
        rss.reset_peak()
    except RuntimeError as error:
        pytest.skip(str(error))
    assert rss.process_memory().peak < high - 32 * MiB


@linux
def test_trim_gives_the_heap_back():
    pieces = [torch.ones(16 * 1024) for _ in range(1024)]
    full = rss.process_memory().anonymous
    last = pieces[-1]
    del pieces
    if not rss.trim():
        pytest.skip("no malloc_trim, or nothing that it could give back")
    assert rss.process_memory().anonymous < full - 48 * MiB
    assert last.numel() == 16 * 1024


def test_without_proc(monkeypatch, tmp_path):
    monkeypatch.setattr(rss, "FOLDER", tmp_path / "none")
    with pytest.raises(RuntimeError, match="does not say what a process holds"):
        rss.process_memory()
    with pytest.raises(RuntimeError, match="does not let a process reset its peak"):
        rss.reset_peak()
