"""A run that the machine cannot hold is refused before it starts, by figures that bound it."""

import subprocess
import sys

import pytest

from memlab import GiB, Model, Recipe
from memlab.base import machine
from memlab.cli import main, measure
from memlab.lab.train import train
from memlab.units import KiB, MiB


@pytest.mark.sample(4)
@pytest.mark.parametrize("recipe", ["fp32", "bf16", "autocast", "adamw8bit"])
@pytest.mark.parametrize("name", ["tiny-gpt", "tiny-llama"])
def test_the_bound_is_above_a_real_run_and_not_far(name, recipe):
    model, how = Model.preset(name), Recipe.named(recipe)
    bound = measure.most_needed(model, how) - measure.LIBRARIES
    peak = train(model, how, steps=2).tracker.peak
    assert peak <= bound < 3 * peak


def test_python_and_torch_stay_below_what_is_left_for_them():
    code = (
        "from memlab import Model; from memlab.lab.train import train; "
        "train(Model.preset('tiny-llama'), steps=2); "
        "from memlab.measure.rss import process_memory; print(process_memory().peak)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert MiB < int(done.stdout) < measure.LIBRARIES


def test_too_large_a_run_is_refused_in_one_line(capsys, monkeypatch):
    monkeypatch.setattr(measure, "free_bytes", lambda: 24 * GiB)
    assert main(["measure", "llama-3-8b", "--steps", "1"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    assert "training llama-3-8b here takes up to 68" in err and "24 GiB are free" in err
    monkeypatch.setattr(measure, "free_bytes", lambda: None)  # nobody knows: nothing is refused
    assert main(["measure", "tiny-gpt", "--steps", "1"]) == 0


def machine_with(tmp_path, files):
    for name, words in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(words)
    return machine.free_bytes(tmp_path)


MEMINFO = {"proc/meminfo": "MemTotal:  4096 kB\nMemFree:  100 kB\nMemAvailable:  2048 kB\n"}


@pytest.mark.parametrize(
    ("files", "free"),
    [
        ({}, 2 * MiB),
        (  # a container of 1 MiB that holds 768 KiB, 256 KiB of them files that can go
            {
                "proc/self/cgroup": "0::/box\n",
                "sys/fs/cgroup/box/memory.max": str(MiB),
                "sys/fs/cgroup/box/memory.current": str(768 * KiB),
                "sys/fs/cgroup/box/memory.stat": f"anon 3\ninactive_file {256 * KiB}\n",
            },
            512 * KiB,
        ),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, 2 * MiB),
        (  # version 1, and the limit of a parent
            {
                "proc/self/cgroup": "4:memory:/a/b\n1:cpu:/\n",
                "sys/fs/cgroup/memory/a/memory.limit_in_bytes": str(MiB),
                "sys/fs/cgroup/memory/a/memory.usage_in_bytes": str(2 * MiB),
            },
            0,
        ),
    ],
)
def test_free_memory_is_what_the_machine_or_the_container_has_left(tmp_path, files, free):
    assert machine_with(tmp_path, MEMINFO | files) == free


def test_without_proc_psutil_says_it_or_nobody(tmp_path, monkeypatch):
    assert machine.free_bytes(tmp_path) > MiB
    monkeypatch.setitem(sys.modules, "psutil", None)
    assert machine.free_bytes(tmp_path) is None
