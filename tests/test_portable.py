"""Chapters on other processors: what differs is found, and which chapters a change asks about."""

import subprocess
from functools import partial

import nbformat
import portable
import pytest


def chapter(path, *cells):
    """A notebook whose cells say that they print a 1."""
    nb = nbformat.v4.new_notebook()
    out = nbformat.v4.new_output("stream", name="stdout", text="1\n")
    nb.cells = [
        nbformat.v4.new_code_cell(source, outputs=[out], execution_count=1) for source in cells
    ]
    nb.metadata["kernelspec"] = {"display_name": "", "language": "python", "name": "python3"}
    path.write_text(nbformat.writes(nb), encoding="utf-8")
    return path


def test_the_cell_that_depends_on_a_way_is_named_and_no_other(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(portable, "WAYS", {"three": {"OMP_NUM_THREADS": "3"}})
    asks = "import os\nprint(os.environ['OMP_NUM_THREADS'])"
    path = chapter(tmp_path / "01_a.ipynb", "print(1)", asks)
    assert portable.main([str(path)]) == 1
    assert "three: chapters run: 1, cells that differ: 1\n" in (said := capsys.readouterr().out)
    assert "01_a.ipynb Cell 1\n" in said and "01_a.ipynb Cell 0\n" not in said


def test_what_pytest_itself_refuses_is_no_success(tmp_path, monkeypatch):
    monkeypatch.setattr(portable, "WAYS", {"plain": {}})
    assert portable.main([str(tmp_path / "missing.ipynb")]) == 1


def git(folder, *words):
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path):
    """One commit with two chapters."""
    folder = tmp_path / "first"
    (folder / "notebooks").mkdir(parents=True)
    for name in ("01_a", "02_b"):
        chapter(folder / "notebooks" / f"{name}.ipynb", "print(1)")
    git(folder, "init")
    git(folder, "add", ".")
    git(folder, "commit", "-m", "one")
    return folder


def commit(folder, name):
    chapter(folder / "notebooks" / f"{name}.ipynb", "print(1)", "print(1)")
    git(folder, "add", ".")
    git(folder, "commit", "-m", name)


def names(folder):
    return [path.stem for path in portable.changed(folder)]


def test_a_chapter_is_changed_since_the_commit_before_or_since_the_branch_left(repository):
    commit(repository, "01_a")
    commit(repository, "02_b")
    assert names(repository) == ["02_b"]
    chapter(repository / "notebooks" / "01_a.ipynb", "print(1)")  # not committed yet
    assert names(repository) == ["01_a", "02_b"]
    branch = repository.parent / "branch"
    git(repository, "clone", ".", str(branch))
    commit(branch, "03_c")
    commit(branch, "04_d")
    assert names(branch) == ["03_c", "04_d"]
    git(branch, "rm", "notebooks/03_c.ipynb")
    assert names(branch) == ["04_d"]


def test_without_history_nothing_is_run_and_that_is_said(repository, monkeypatch, capsys):
    alone = repository.parent / "alone"
    git(repository, "clone", "--depth", "1", f"file://{repository}", str(alone))
    for folder in (repository, alone, repository.parent):  # the last is no repository
        with pytest.raises(LookupError):
            portable.changed(folder)
    monkeypatch.setattr(portable, "changed", partial(portable.changed, alone))
    assert portable.main(["--changed"]) == 0
    assert "not run, no commit before this one is here" in capsys.readouterr().out


def test_every_way_keeps_onednn_as_low_as_torch():
    """Or torch packs for AMX what it multiplies without: see the comment beside the ways."""
    for way in portable.X86.values():
        assert way["ONEDNN_MAX_CPU_ISA"] in ("SSE41", "AVX", "AVX2") and len(way) >= 4
