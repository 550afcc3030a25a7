"""What a short run takes of many cases."""

import itertools
import random
import subprocess
import sys
from pathlib import Path

import pytest
from depth import DEPTH, chosen, few

ROOT = Path(__file__).resolve().parent.parent
FAMILIES = ("gpt2", "llama", "qwen3", "opt", "gemma", "mixtral", "olmo")
PARTS = (FAMILIES, ("fp32", "bf16"), ("none", "block"))
CASES = ["-".join(each) for each in itertools.product(*PARTS)]


def test_the_few_have_every_word_of_all_and_both_ends():
    """An even spread over families and two formats would have one format."""
    for count in range(len(FAMILIES), len(CASES)):
        taken = [CASES[place] for place in chosen(CASES, count)]
        assert len(taken) == len(set(taken)) == count
        assert taken[0] == CASES[0] and taken[-1] == CASES[-1]
        assert {word for name in taken for word in name.split("-")} == {
            word for name in CASES for word in name.split("-")
        }


def test_numbers_are_spread():
    assert chosen([*"abcdefghi"], 3) == [0, 4, 8]
    assert chosen([*"abcdefghi"], 5) == [0, 2, 4, 6, 8]
    assert chosen([*"ab"], 1) == [0] and chosen([*"ab"], 2) == chosen([*"ab"], 9) == [0, 1]
    assert chosen([], 4) == []


def test_the_same_are_taken_in_every_process():
    """Workers agree on what they have: sets of words have another order in each."""
    names = random.Random(7).choices(CASES, k=20)
    code = f"from depth import chosen; print(chosen({names!r}, 9))"
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONPATH": str(ROOT / "tests"), "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert said == {f"{chosen(names, 9)}\n"}


@pytest.mark.skipif(DEPTH > 1, reason="all run")
def test_of_a_list_a_fixture_runs_as_many():
    assert few(2, CASES) == (CASES[0], CASES[-1])


SAMPLED = """
import pytest

@pytest.mark.sample(3)
@pytest.mark.parametrize("number", range(9))
def test_one(number):
    pass

@pytest.mark.sample(9)
@pytest.mark.parametrize("number", range(4))
def test_two(number):
    pass
"""


@pytest.mark.parametrize(
    ("deep", "chosen", "said"),
    [
        ("1", [], "7 passed, 6 skipped"),
        ("2", [], "13 passed"),
        ("1", ["-k", "test_one and 7"], "1 passed"),  # who asks for a case gets it
    ],
    ids=["a few", "all", "by name"],
)
def test_the_marker_skips_the_others(tmp_path, monkeypatch, deep, chosen, said):
    monkeypatch.setenv("MEMLAB_DEPTH", deep)
    Path(tmp_path, "conftest.py").write_text(Path(ROOT, "conftest.py").read_text())
    Path(tmp_path, "test_sampled.py").write_text(SAMPLED)
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "--strict-markers", *chosen]
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests"))  # the option splits paths at blanks
    command += ["--rootdir", str(tmp_path), "test_sampled.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and said in done.stdout, done.stdout + done.stderr
    assert ("one of 9: MEMLAB_DEPTH=2 runs it" in done.stdout) == ("skipped" in said)
