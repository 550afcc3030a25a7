"""The process as Linux sees it: pages, counted when they are touched."""

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from memlab.measure import rss

SKIPPED = 77  # the status with which a program says that it cannot be run here
linux = pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="no /proc")


def in_a_new_process(program: str) -> None:
    """Run it where nothing lies about: a worker of these tests has a heap with holes of pages that
    were touched long ago, and a tensor that lies in one of them touches none."""
    words = [sys.executable, "-c", dedent(program)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=240)
    if done.returncode == SKIPPED:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stderr


@linux
def test_a_page_counts_from_its_first_touch():
    in_a_new_process("""
        import torch
        from memlab import MiB
        from memlab.measure import rss

        torch.ones(MiB).fill_(2)  # what torch itself sets up at its first tensor
        before = rss.process_memory()
        x = torch.empty(64 * MiB, dtype=torch.int8)
        asked = rss.process_memory()
        x.fill_(1)
        touched = rss.process_memory()
        assert asked.anonymous - before.anonymous < 8 * MiB, (before, asked)
        assert 56 * MiB < touched.anonymous - asked.anonymous < 72 * MiB, (asked, touched)
        assert touched.resident == touched.anonymous + touched.file_backed <= touched.peak, touched
        """)


@linux
def test_the_peak_can_be_forgotten():
    in_a_new_process(f"""
        import torch
        from memlab import MiB
        from memlab.measure import rss

        x = torch.ones(16 * MiB)
        del x
        high = rss.process_memory().peak
        try:
            rss.reset_peak()
        except RuntimeError as error:
            print(error)
            raise SystemExit({SKIPPED})
        assert rss.process_memory().peak < high - 32 * MiB, (high, rss.process_memory())
        """)


@linux
def test_trim_gives_the_heap_back():
    in_a_new_process(f"""
        import torch
        from memlab import MiB
        from memlab.measure import rss

        pieces = [torch.ones(16 * 1024) for _ in range(1024)]
        full = rss.process_memory().anonymous
        last = pieces[-1]
        del pieces
        if not rss.trim():
            print("no malloc_trim, or nothing that it could give back")
            raise SystemExit({SKIPPED})
        assert rss.process_memory().anonymous < full - 48 * MiB, (full, rss.process_memory())
        assert last.numel() == 16 * 1024
        """)


def test_without_proc(monkeypatch, tmp_path):
    monkeypatch.setattr(rss, "FOLDER", tmp_path / "none")
    with pytest.raises(RuntimeError, match="does not say what a process holds"):
        rss.process_memory()
    with pytest.raises(RuntimeError, match="does not let a process reset its peak"):
        rss.reset_peak()
