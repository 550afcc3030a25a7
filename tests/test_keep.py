"""Checkpoints on disk: the last N, each whole, one more only while it is written."""

import pytest
import torch

from memlab.lab.checkpoint_rotation import KeepLast
from memlab.measure import storage_bytes


@pytest.fixture
def net():
    torch.manual_seed(0)
    return torch.nn.Linear(64, 32)


def test_the_last_three_are_kept_and_load_as_they_were(tmp_path, net):
    disk = KeepLast(tmp_path / "run", 3)
    seen = []
    for step in (10, 20, 30, 40, 50):
        with torch.no_grad():
            net.weight.add_(1)
        seen.append(net.weight.clone())
        disk.save(step, {"model": net.state_dict(), "step": step})
    assert disk.steps() == [30, 40, 50]
    assert disk.load()["step"] == 50
    assert torch.equal(disk.load(30)["model"]["weight"], seen[2])


def test_while_one_is_written_all_the_others_are_there(tmp_path, net, monkeypatch):
    disk = KeepLast(tmp_path, 2)
    held = []
    save = torch.save

    def watched(state, file):
        save(state, file)
        file.flush()
        held.append((disk.steps(), disk.bytes))

    monkeypatch.setattr(torch, "save", watched)
    for step in range(4):
        disk.save(step, net.state_dict())
    assert [steps for steps, _ in held] == [[], [0], [0, 1], [1, 2]]
    assert held[-1][1] == 3 * held[0][1]
    assert disk.bytes == 2 * held[0][1]


def test_a_write_that_fails_leaves_what_was_there(tmp_path, net, monkeypatch):
    disk = KeepLast(tmp_path, 1)
    disk.save(1, net.state_dict())

    def broken(state, file):
        file.write(b"half")
        raise OSError("No space left on device")

    monkeypatch.setattr(torch, "save", broken)
    with pytest.raises(OSError, match="No space"):
        disk.save(2, net.state_dict())
    assert disk.steps() == [1]
    assert torch.equal(disk.load()["weight"], net.weight)


def test_a_file_is_its_storages_and_little_more(tmp_path):
    big = torch.nn.Linear(512, 512)
    tied = {"a": big.weight.data, "b": big.weight.data}
    (path,) = [KeepLast(tmp_path, 1).save(1, tied)]
    # Both names, one storage; the rest is names and places, under 2 KiB for two tensors.
    assert 0 < path.stat().st_size - storage_bytes(tied) < 2048
    loaded = KeepLast(tmp_path, 1).load()
    assert loaded["a"].data_ptr() == loaded["b"].data_ptr()


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda folder: KeepLast(folder, 0), "keep=0; at least 1"),
        (lambda folder: KeepLast(folder, 1).load(), "has no checkpoint in the folder"),
        (lambda folder: [KeepLast(folder, 1).save(5, {}) for _ in "ab"], "step=5 is not after"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, act, message):
    with pytest.raises(ValueError, match=message):
        act(tmp_path)


def test_other_files_are_left_alone(tmp_path, net):
    (tmp_path / "notes.txt").write_text("mine")
    disk = KeepLast(tmp_path, 1)
    disk.save(1, net.state_dict())
    disk.save(2, net.state_dict())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.txt", "step-00000002.pt"]
