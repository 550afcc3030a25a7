"""What a watched program says of its tensors before it ends."""

import json
import os
import signal
import subprocess
import sys

import pytest
import torch

from memlab import MiB
from memlab.files.timelines import read_timeline
from memlab.measure import Tracker, announce
from memlab.measure.announce import alive
from memlab.watch.announced import as_lines, said

SIDE = 512  # a weight of 1 MiB


@pytest.fixture
def watcher(tmp_path, monkeypatch):
    """The folder of a watcher, and SIGTERM as it was when the test is over."""
    monkeypatch.setenv("MEMLAB_WATCH", str(tmp_path))
    before = signal.getsignal(signal.SIGTERM)
    yield tmp_path
    signal.signal(signal.SIGTERM, before)


def trained():
    model = torch.nn.Linear(SIDE, SIDE, bias=False)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(1, SIDE)).sum().backward()
    optimizer.step()
    return model, optimizer


def test_tensors_are_found_by_what_they_are():
    before = alive()["alive"]
    model, optimizer = trained()
    view = model.weight.detach()[0]  # its storage is the weight's, and counts once
    empty = torch.empty(2**30, device="meta")  # has no memory
    table = alive()
    now = table["alive"]
    grown = {name: now.get(name, 0) - before.get(name, 0) for name in now}
    assert grown["weights"] == grown["gradients"] == MiB
    assert grown["optimizer"] == 2 * MiB + 4
    assert abs(grown.get("other", 0)) < MiB  # what other tests let go of meanwhile
    assert table["pid"] == os.getpid() and table["allocator"] is None
    assert view.numel() == SIDE and empty.numel() == 2**30
    json.dumps(table)


def test_a_tracker_knows_what_autograd_keeps():
    model, _ = trained()
    tracker = Tracker()
    tracker.label(model)
    with tracker:
        out = model(torch.ones(2048, SIDE)).relu().sum()
        table = alive(tracker)
        assert table["alive"] == {k: v for k, v in tracker.contents().items() if v}
    assert table["alive"]["activations"] == 8 * MiB and table["found_by"] == "its Tracker"
    count, size, category, what = table["largest"][0]
    assert count * size == 4 * MiB and "float32 [2048, 512] on cpu" in what and category
    assert out.requires_grad


def test_nobody_watches(monkeypatch):
    monkeypatch.delenv("MEMLAB_WATCH", raising=False)
    before = signal.getsignal(signal.SIGTERM)
    assert announce() is False and signal.getsignal(signal.SIGTERM) is before


def test_it_tells_and_then_does_what_the_program_would(watcher):
    heard = []
    signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    assert announce() is True
    with Tracker() as tracker:
        announce(tracker)  # said again: only this one counts, and the handler above once
        kept = torch.ones(MiB, dtype=torch.int8)
        os.kill(os.getpid(), signal.SIGTERM)
    assert heard == [signal.SIGTERM] and kept.sum() == MiB
    (table,) = said(str(watcher))
    assert table["alive"] == {"other": MiB} and table["found_by"] == "its Tracker"
    lines = as_lines(table)
    assert lines[0] == f"alive in process {os.getpid()} (its Tracker): 1 MiB of tensors"
    assert lines[1].split() == ["other", "1", "MiB"] and "1 ×" in lines[2]


def test_a_fork_does_not_speak_for_its_parent(watcher):
    announce()
    child = os.fork()
    if child == 0:
        os.kill(os.getpid(), signal.SIGTERM)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGTERM
    assert said(str(watcher)) == []


def test_what_is_no_table_is_passed_over(tmp_path):
    good = {"pid": 1, "found_by": "x", "alive": {"other": 5}, "largest": [[1, 5, "other", "t"]]}
    for name, words in {
        "a.json": json.dumps(good),
        "b.json": "{",
        "c.json": "[]",
        "d.json": json.dumps({**good, "alive": {"other": "much"}}),
        "e.json": json.dumps({**good, "largest": [5]}),
        "f.json": json.dumps({**good, "alive": {"other": -5.5}}),
        "g.json": "[" * 99_999,
        "h.json": "\udcff",
        "i.new": json.dumps(good),
    }.items():
        (tmp_path / name).write_bytes(words.encode("utf-8", "surrogateescape"))
    (tmp_path / "j.json").mkdir()
    assert said(str(tmp_path)) == [good]


PROGRAM = """
import torch
from memlab.measure import announce
announce()
model = torch.nn.Linear(512, 512, bias=False)
optimizer = torch.optim.SGD(model.parameters(), momentum=0.9)
kept = []
while True:
    model(torch.ones(8, 512)).sum().backward()
    optimizer.step()
    kept.append(torch.ones(2**22))
"""


def test_a_torch_program_with_one_line_says_what_was_alive(tmp_path):
    out = tmp_path / "run.json"
    done = subprocess.run(
        [sys.executable, "-m", "memlab", "watch", "--hard-limit", "800MiB", "--grace", "60"]
        + ["--every", "0.02", "--out", str(out), "--", sys.executable, "-c", PROGRAM],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 121, done.stderr
    assert "of tensors" in done.stderr and "other: float32 [4194304] on cpu" in done.stderr
    hard, end = read_timeline(out)["events"]
    assert end["code"] == 143  # as without the line: SIGTERM ended it
    (table,) = hard["alive"]
    assert table["alive"]["weights"] == table["alive"]["optimizer"] == MiB
    assert table["alive"]["other"] > 64 * MiB
