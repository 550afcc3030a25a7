""".ci/run is a newcomer: where it works, what it brings there, and that any failure is its own."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BROWSERS = ("google-chrome", "google-chrome-stable", "chromium", "chromium-browser")
MAKEFILE = """
book:
	@echo "book in $(CURDIR)"; git log --oneline 2>/dev/null || echo 'no history'
	@command -v npm >/dev/null || echo 'no npm: skipped'
	@env
	@! command -v npm >/dev/null || {built}

test:
	@echo "tested, $$MEMLAB_REQUIRE, in $(CURDIR)"; {tested}

portable:
	@echo "on other processors, in $(CURDIR)"
"""

pytestmark = [
    pytest.mark.skipif(shutil.which(name) is None, reason=f"no {name}")
    for name in ("make", "git", "node", "npm")
] + [pytest.mark.skipif(not any(map(shutil.which, BROWSERS)), reason="no browser")]


def ci(folder, built="true", tested="true"):
    """Run a copy of .ci/run over a repository of one Makefile, from a developer's shell."""
    project, home = folder / "project", folder / "old home"
    (project / ".ci").mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "run", project / ".ci")
    (project / "Makefile").write_text(MAKEFILE.format(built=built, tested=tested))
    (home / ".config" / "pip").mkdir(parents=True)
    for name in (".config/pip/pip.conf", ".npmrc"):
        (home / name).touch()
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", project]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
        subprocess.run([*git, *words], check=True)
    shell = {"PYTHONPATH": "leaks", "VIRTUAL_ENV": "leaks", "MEMLAB_LANG": "leaks", "CI": "kept"}
    of_this_machine = ("PIP_", "XDG_", "NPM_", "npm_")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(of_this_machine)}
    mine = clean | shell | {"HOME": str(home), "PYTHON": "python3.12", "TMPDIR": str(folder)}
    done = subprocess.run([project / ".ci/run"], env=mine, capture_output=True, encoding="utf-8")
    assert {path.name for path in folder.iterdir()} == {"project", "old home"}, "it cleans up"
    return done.returncode, done.stdout, home


def test_it_builds_twice_and_tests_the_clone(tmp_path):
    status, said, home = ci(tmp_path)
    assert status == 0, said
    builds = [line.rpartition(" ")[2] for line in said.splitlines() if line.startswith("book in ")]
    assert [Path(each).name for each in builds] == ["memlab", "archive"]
    assert said.count(" one\n") == 1 and said.count("no history\n") == 1
    assert said.count("no npm: skipped\n") == 1
    assert "tested, node,browser,book, in /" in said and "/meu espaço é 書/memlab\n" in said
    assert "on other processors, in /" in said
    assert "leaks" not in said and said.count("CI=kept\n") == 2
    assert said.count("PYTHON=python3.12\n") == 2 and f"HOME={home}\n" not in said
    assert f"PIP_CONFIG_FILE={home}/.config/pip/pip.conf\n" in said
    assert f"NPM_CONFIG_USERCONFIG={home}/.npmrc\n" in said


@pytest.mark.parametrize("wrong", ["built", "tested"])
def test_a_failure_is_its_own(tmp_path, wrong):
    status, said, _ = ci(tmp_path, **{wrong: "exit 3"})
    assert status != 0 and said.count("\nbook in ") == (1 if wrong == "built" else 2)
