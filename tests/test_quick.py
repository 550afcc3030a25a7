"""`make quick` skips what takes long by what it does, and nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TESTS = """
import subprocess
import sys

from memlab import Model, Run, estimate


def test_plain():
    import json


def test_package():
    import numpy


def test_program():
    subprocess.run([sys.executable, "-c", ""], check=True)


def test_book():
    open("{ROOT}/_build/html/index.html")


def test_a_step():
    estimate(Model.preset("tiny-llama"), "bf16", Run(tokens=8))


def test_steps():
    for tokens in range(8, 80, 8):
        estimate(Model.preset("tiny-llama"), "bf16", Run(tokens=tokens))
"""


@pytest.mark.parametrize(
    ("options", "passed", "said"),
    [
        ([], 5, ["No such file"]),
        (["--quick"], 2, ["imports numpy", "starts a program", "the built book", "than 3 steps"]),
    ],
    ids=["all", "quick"],
)
def test_each_kind_is_skipped_when_it_shows(tmp_path, monkeypatch, options, passed, said):
    Path(tmp_path, "conftest.py").write_text(Path(ROOT, "conftest.py").read_text())
    book = ROOT if options else tmp_path
    Path(tmp_path, "test_it.py").write_text(TESTS.replace("{ROOT}", str(book)))
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'tests'}:{ROOT / 'src'}")
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:nbval", *options]
    command += ["--rootdir", str(tmp_path), "test_it.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert f"{passed} passed" in done.stdout and done.stderr == "", done.stdout + done.stderr
    assert all(words in done.stdout for words in said), done.stdout
