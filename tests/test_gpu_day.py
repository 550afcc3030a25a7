"""The day a GPU is at hand, rehearsed on a CPU: every part, on a model of three layers."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from gpu_day.runs import ALL, RUNS

ROOT = Path(__file__).resolve().parent.parent
CARD = ("allocated", "reserved", "retries", "context", "workspace", "card", "free")  # CUDA's alone


@pytest.fixture(scope="module")
def day(tmp_path_factory):
    """The folder of one rehearsal: nothing of it is asked of a GPU."""
    out = tmp_path_factory.mktemp("day")
    about = {**os.environ, "PYTHON": sys.executable, "OUT": str(out)}
    command = [ROOT / "tools" / "gpu_day.sh", "--device", "cpu", "--small", "--commit", "abc"]
    done = subprocess.run(command, env=about, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + (out / "log.txt").read_text(encoding="utf-8")
    return out


def part(day, name):
    return json.loads((day / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("one", RUNS, ids=lambda one: one.name)
def test_a_part_says_what_it_ran_on_and_what_it_found(day, one):
    whole = part(day, one.part)
    about = {"kind", "device", "driver", "cuda", "torch", "python", "date", "command", "libraries"}
    assert about <= set(whole) and whole["kind"] == "cpu" and whole["commit"] == "abc"
    found = whole["runs"][one.name]
    absent = [name for name in one.needs if find_spec(name) is None]
    assert found["state"] == ("skipped" if absent else "measured"), found["message"]
    assert all(name in found["message"] for name in absent)
    assert absent or found["figures"]
    for name, row in found["figures"].items():
        assert set(row) == {"measured", "predicted", "by", "difference"}
        if any(word in name for word in CARD):
            assert row["measured"] is None, f"{name}: a CPU has no such counter"
        if None not in (row["measured"], row["predicted"]):
            assert row["difference"] == row["measured"] - row["predicted"]


@pytest.mark.parametrize("name", ("fits", "expandable", "larger", "trainer", "lora", "qlora"))
def test_what_is_run_is_what_is_predicted(day, name):
    """To the byte: a step that is not the predicted one would spend the card's minutes in vain."""
    found = part(day, next(one.part for one in RUNS if one.name == name))["runs"][name]
    if found["state"] == "skipped":
        pytest.skip(found["message"])
    rows = found["figures"]
    for at in ("step 1, requested at its peak", "step 2, requested at its peak"):
        assert rows[at]["difference"] == 0, (at, rows[at])
    assert rows["step 2, requested after it"]["difference"] == 0
    assert rows["step 2, reserved at its peak"]["predicted"] > 0


def test_a_failure_is_kept_word_by_word_with_its_layer(day):
    """The rehearsal fails by hand in the last layer of the second step; the rest is the card's."""
    found = part(day, "book")["runs"]["fails"]
    assert found["texts"]["message"] == "torch.OutOfMemoryError: rehearsed: no memory was asked for"
    assert "modeling_llama.py" in found["texts"]["lines"] and "/" not in found["texts"]["lines"]
    assert found["figures"]["at the failure, layers begun"]["measured"] == 3
    assert found["figures"]["step 1, requested at its peak"]["difference"] == 0
    assert found["figures"]["step 2, requested at its peak"]["measured"] is None


def test_the_summary_has_each_figure_beside_the_predicted_one(day):
    text = (day / "summary.txt").read_text(encoding="utf-8")
    for name in ("book", "driver", "train"):
        for run, found in part(day, name)["runs"].items():
            assert f"{run}: {found['state']}" in text
            assert all(f"  {figure}" in text for figure in found["figures"])
    assert len(list(day.iterdir())) <= 8, "what comes back from a lent machine"


def test_the_record_is_one_that_memlab_reads(day):
    from memlab.files.records import read

    assert [row.state for row in read(day / "card.json").rows] == ["measured", "skipped"]


def test_the_certain_runs_leave_time_for_each_other():
    certain = [one.limit for one in RUNS[:4]]
    assert [one.name for one in RUNS[:4]] == ["driver", "fails", "fits", "record"]
    assert sum(certain) <= ALL == 9 * 60


BROKEN = """
import sys, time, os
sys.path[:0] = {paths!r}
from pathlib import Path
from gpu_day.apart import apart
from gpu_day.note import Note
from gpu_day.runs import One

class Hangs(One):
    def call(self, note, device, small):
        os.system("sleep 600")
class Dies(One):
    def call(self, note, device, small):
        os.abort()
class Raises(One):
    def call(self, note, device, small):
        raise ValueError("no such thing")
class Works(One):
    def call(self, note, device, small):
        pass
for kind in (Hangs, Dies, Raises, Works):
    one = kind(kind.__name__, "part", 1, "", needs=())
    apart(one, Note(Path({out!r}) / "part.json", one.name, "cuda"), False, 60)
last = One("late", "part", 1, "", needs=())
apart(last, Note(Path({out!r}) / "part.json", "late", "cuda"), False, 9)
other = One("other", "part", 1, "", needs=("no_such_library",))
apart(other, Note(Path({out!r}) / "part.json", "other", "cuda"), False, 60)
"""


def test_a_run_that_hangs_or_dies_ends_alone(tmp_path):
    paths = [str(ROOT / "tools"), str(ROOT / "src")]
    program = BROKEN.format(paths=paths, out=str(tmp_path))
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)
    runs = json.loads((tmp_path / "part.json").read_text(encoding="utf-8"))["runs"]
    assert {name: (run["state"], run["message"]) for name, run in runs.items()} == {
        "Hangs": ("stopped", "not over after 1 s"),
        "Dies": ("failed", "its process ended with -6"),
        "Raises": ("failed", "ValueError: no such thing"),
        "Works": ("measured", ""),
        "late": ("skipped", "9 s were left, 10 are needed"),
        "other": ("skipped", "not installed: no_such_library"),
    }
