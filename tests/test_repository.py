"""Small promises about the repository itself: pins, versions, paths, and the book's build."""

import ast
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import moved
import pytest
import yaml

import memlab
from memlab.base import versions

ROOT = Path(__file__).resolve().parent.parent
PINS = [
    line
    for line in (ROOT / "constraints.txt").read_text().splitlines()
    if line and not line.startswith("#")
]


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_every_pin_names_one_version_and_no_place():
    assert [pin for pin in PINS if not re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9.]+", pin)] == []
    assert len({pin.split("==")[0].lower() for pin in PINS}) == len(PINS)


def test_every_dependency_is_pinned():
    pinned = {re.sub(r"[-_.]+", "-", pin.split("==")[0]).lower() for pin in PINS}
    extras = project()["optional-dependencies"].values()
    names = {re.match(r"[A-Za-z0-9_.-]+", need)[0].lower() for extra in extras for need in extra}
    assert names - {"memlab"} <= pinned


def test_the_node_package_is_locked_without_a_host():
    wanted = json.loads((ROOT / "package.json").read_text())["devDependencies"]
    packages = json.loads((ROOT / "package-lock.json").read_text())["packages"]
    for name, version in wanted.items():
        assert packages[f"node_modules/{name}"]["version"] == version
    assert not any("resolved" in package for package in packages.values())


def test_a_long_file_says_why():
    for folder in ("src", "tools", "book/_ext"):
        for path in (ROOT / folder).rglob("*.py"):
            words = path.read_text("utf-8")
            if len(words.splitlines()) > 250:
                said = ast.get_docstring(ast.parse(words)) or ""
                assert re.search(r"\blong\b", said, re.I), path


def test_one_version_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= set(citation)
    assert citation["version"] == project()["version"] == memlab.__version__


def test_answers_are_proven_with_what_is_pinned():
    pinned = {name: version for name, version in (line.split("==") for line in PINS)}
    pinned = {name: version for name, version in pinned.items() if name in versions.PROVEN}
    assert versions.PROVEN == {**pinned, "deepspeed": versions.PROVEN["deepspeed"]}


def tracked():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("no git checkout: nothing is tracked here")
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_no_file_names_a_place_on_one_machine():
    machine = re.compile(rb"(?<![\w.])/(home|root|Users|work|tmp|opt)/\w")
    # Tests may hold an example of what is wrong.
    files = [path for path in tracked() if ROOT / "tests" not in path.parents]
    assert [str(path) for path in files if machine.search(path.read_bytes())] == []


def test_help_lists_every_target():
    if not shutil.which("make"):
        pytest.skip("no make")
    text = (ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.*)$", text, re.M)[1].split()
    told = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True).stdout
    assert re.findall(r"^  make (\w+)", told, re.M) == phony


@pytest.fixture
def make(tmp_path):
    """`make book` in a folder of our Makefile, up to where it would install anything."""
    if not shutil.which("make"):
        pytest.skip("no make")
    folder = tmp_path / "um espaço 書"
    folder.mkdir()
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, folder)

    def said(*words):
        done = subprocess.run(["make", "book", *words], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 2 and "Traceback" not in done.stderr
        return done.stderr

    said.folder = folder
    return said


def test_make_says_why_it_takes_no_python(make):
    broken = make.folder / "broken"
    broken.write_text("#!/bin/sh\necho libpython3.12.so.1.0: cannot open >&2\nexit 127\n")
    broken.chmod(0o755)
    said = make("PYTHON=./broken")
    assert "./broken: libpython3.12.so.1.0: cannot open\n" in said
    assert "make book PYTHON=/path/to/python" in said
    broken.write_text(
        f'#!/bin/sh\nexec "{sys.executable}" -c "import sys; sys.exit(\'too old\')"\n'
    )
    assert "./broken: too old\n" in make("PYTHON=./broken")


def test_make_says_where_nothing_may_be_written(make):
    assert "make book VENV=/path/to/a/folder\n" in make("VENV=/dev/null/none")
    if os.geteuid():  # root may write anywhere
        make.folder.chmod(0o500)
        assert "copy it to a place that is yours" in make()


def test_every_chapter_is_in_the_book():
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    entries = [entry for part in toc["parts"] for entry in part["chapters"]]
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        name = f"notebooks/{path.stem}"
        assert any(Path(name).match(e.get("glob") or e["file"]) for e in entries), name


@pytest.fixture
def book(tmp_path, monkeypatch):
    """tools/book.py in an empty project, where building writes one page per source."""
    spec = importlib.util.spec_from_file_location("book_under_test", ROOT / "tools" / "book.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for folder in ("book", "notebooks", "tools"):
        (tmp_path / folder).mkdir()
    files = ["_config.yml", "_toc.yml", "CITATION.cff", "constraints.txt"]
    for name in [*files, "book/status.md", "book/intro.md"]:
        (tmp_path / name).write_text(f"# {name}\n")

    def build(source, work):
        module.builds += 1
        if "broken" in (source / "intro.md").read_text():
            sys.exit("broken")
        pages = work / "_build" / "html"
        pages.mkdir(parents=True)
        for page in source.glob("*.md"):
            shutil.copy(page, pages / f"{page.stem}.html")
        return pages

    module.builds = 0
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "BUILD", tmp_path / "_build")
    monkeypatch.setattr(module, "SITE", tmp_path / "_build" / "html")
    monkeypatch.setattr(module, "jupyter_book", build)
    # The calculator has tests of its own, and its key is made of all code of this repository.
    monkeypatch.setattr(module.calculator, "stage", lambda *given: None)
    monkeypatch.setattr(module.calculator, "key", lambda *given: "")
    monkeypatch.setattr(module, "settings", lambda language, path: None)
    return module


@pytest.mark.parametrize("name", ["_config.yml", "book/intro.md", "tools/x.py", "notebooks/a.svg"])
def test_a_changed_input_builds_again(book, name):
    book.build("en")
    book.build("en")
    assert book.builds == 1
    (book.ROOT / name).write_text("changed")
    book.build("en")
    assert book.builds == 2


def test_a_lost_page_builds_again_and_a_removed_one_is_gone(book):
    (book.ROOT / "book" / "old.md").write_text("old")
    book.build("en")
    (book.SITE / "en" / "intro.html").unlink()
    book.build("en")
    assert (book.SITE / "en" / "intro.html").exists() and (book.SITE / "en" / "old.html").exists()
    (book.ROOT / "book" / "old.md").unlink()
    book.build("en")
    assert not (book.SITE / "en" / "old.html").exists()


def test_a_failed_build_leaves_no_pages_and_fails_again(book):
    book.build("en")
    (book.ROOT / "book" / "intro.md").write_text("broken")
    for _ in range(2):
        with pytest.raises(SystemExit, match="broken"):
            book.build("en")
        assert not (book.SITE / "en").exists()


def test_pages_show_the_static_side_of_a_widget(book):
    data = {book.WIDGET: {"model_id": "x"}, "text/html": "<p>default</p>"}
    notebook = {"metadata": {"widgets": {}}, "cells": [{"id": "ask", "outputs": [{"data": data}]}]}
    assert book.without_widgets(notebook, "x")["metadata"] == {}
    assert data == {"text/html": "<p>default</p>"}
    bare = {
        "metadata": {},
        "cells": [{"id": "ask", "outputs": [{"data": {book.WIDGET: {"a": 1}}}]}],
    }
    with pytest.raises(SystemExit, match="x, cell ask: a widget without static text/html"):
        book.without_widgets(bare, "x")


def test_no_two_scripts_answer_to_one_import():
    """All their folders are on pytest's path: which one is found would hang on the tests' order."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    folders = [ROOT / each for each in settings["tool"]["pytest"]["ini_options"]["pythonpath"]]
    names = [path.stem for folder in folders for path in folder.glob("*.py")]
    assert len(names) > 50
    assert sorted(set(names)) == sorted(names)


def workflows():
    """Each workflow by its name; YAML reads the word `on` as true."""
    found = [yaml.safe_load(p.read_text()) for p in (ROOT / ".github" / "workflows").iterdir()]
    return {each["name"]: each for each in found}


def test_a_workflow_runs_no_code_that_others_can_exchange():
    for workflow in workflows().values():
        for job in workflow["jobs"].values():
            assert job.get("uses", "./").startswith("./")
            for step in job.get("steps", ()):
                assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", step.get("uses", "a@" + "0" * 40))
                if step.get("uses", "").startswith("actions/checkout@"):
                    assert step["with"]["persist-credentials"] is False


def test_the_pages_wait_for_the_tests_and_what_builds_them_may_not_publish():
    pages = workflows()["pages"]
    assert pages[True] == {
        "workflow_run": {"workflows": ["test"], "types": ["completed"], "branches": ["main"]}
    }
    build, deploy = pages["jobs"]["build"], pages["jobs"]["deploy"]
    assert "conclusion == 'success'" in build["if"] and "event == 'push'" in build["if"]
    assert pages["permissions"] == {"contents": "read"} and "permissions" not in build
    assert "make book" in [step.get("run") for step in build["steps"]]
    assert deploy["needs"] == "build" and not any("run" in step for step in deploy["steps"])


def test_a_release_waits_for_the_tests_and_what_builds_it_may_not_publish():
    release = workflows()["release"]
    test, build, publish = (release["jobs"][name] for name in ("test", "build", "publish"))
    assert (
        test["uses"] == "./.github/workflows/ci.yml"
        and "workflow_call" in workflows()["test"][True]
    )
    assert release["permissions"] == {"contents": "read"} and "permissions" not in build
    assert publish["needs"] == ["test", "build"] and publish["permissions"] == {"id-token": "write"}
    assert not any("run" in step for step in publish["steps"]) and publish["environment"]
    ran = [step["run"] for step in build["steps"] if "run" in step]
    (check,) = (words for words in ran if "GITHUB_REF_NAME" in words and "assert" in words)
    for tag, status in ((f"v{project()['version']}", 0), ("v0.0.1", 1)):
        command = [sys.executable, *shlex.split(check)[1:]]
        done = subprocess.run(command, cwd=ROOT, env={"GITHUB_REF_NAME": tag}, capture_output=True)
        assert done.returncode == status, done.stderr
    assert f"## {project()['version']}, " in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_the_weekly_run_takes_the_newest_and_says_what_moved():
    newest = workflows()["test"]["jobs"]["newest"]
    ran = [step["run"] for step in newest["steps"] if "run" in step]
    assert newest["if"] == "github.event_name == 'schedule'"
    assert not any("constraints" in words for words in ran)
    assert any(words.startswith("python tools/moved.py ") for words in ran)
    pins = "# of these\nA_b==1.0\ntorch==2.13.0\ngone==3\n"
    found = moved.moved(pins, [("a-B", "1.1"), ("torch", "2.13.0+cpu"), ("new", "1")])
    assert found == [("A_b", "1.0", "1.1")]
    assert moved.table(found).endswith("\n| A_b | 1.0 | 1.1 |")


def test_every_version_of_python_that_is_promised_is_tested():
    least, most = re.search(r"Python 3\.(\d+)-3\.(\d+)", (ROOT / "Makefile").read_text()).groups()
    promised = [f"3.{minor}" for minor in range(int(least), int(most) + 1)]
    assert workflows()["test"]["jobs"]["test"]["strategy"]["matrix"]["python"] == promised
    named = [x.rpartition(" ")[2] for x in project()["classifiers"] if "Python :: 3." in x]
    assert named == promised
