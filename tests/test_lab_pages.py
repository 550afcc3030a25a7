"""The life of some memory: what the system counts is not what tensors hold."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from memlab import MiB
from memlab.lab import pages
from memlab.measure import rss


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="no /proc")
def test_a_page_counts_when_it_is_written():
    # In a process of its own: in the heap of one that has done much, 256 MiB may be free already.
    program = "from memlab.lab.pages import life; print([*map(tuple, life(2**28))])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True
    )
    found = [pages.Moment(*each) for each in ast.literal_eval(done.stdout)]
    if not found:
        pytest.skip("this system does not let a process reset its peak")
    by_name = {moment.what: moment for moment in found}
    asked, written = by_name["one tensor, asked for"], by_name["written"]
    assert (asked.tensors, asked.anonymous) == (1.0, 0.0)
    assert (written.tensors, written.anonymous) == (1.0, 1.0)
    assert (by_name["let go"].anonymous, by_name["let go"].high_water) == (0.0, 1.0)
    assert by_name["written in 4,096 pieces"].anonymous == 1.0
    if by_name["trimmed"].anonymous == 0.0:  # the GNU C library can
        assert by_name["all but the last let go"][1:3] == (0.0, 1.0)


def test_where_the_system_does_not_say(monkeypatch, tmp_path):
    monkeypatch.setattr(rss, "FOLDER", tmp_path / "none")
    assert pages.life(MiB) == []


def test_a_size_of_whole_pieces():
    with pytest.raises(ValueError, match="size=100000 is not a multiple of 65536 bytes"):
        pages.life(100_000)
