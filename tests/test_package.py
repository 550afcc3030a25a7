"""The package stands alone: built, installed where nothing else is, and asked from elsewhere."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import memlab
from memlab.cli import COMMANDS

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("pyproject.toml", "README.md", "LICENSE", "MANIFEST.in")
BUILD = "import sys; from setuptools import build_meta as b; b.build_{}(sys.argv[1])"
# What each command is asked where Python is all there is; what it prints, or what it lacks.
ANSWERS = {
    "estimate": ("tiny-llama --tokens 32 --precision bf16", "weights"),
    "fit": ("tiny-llama --on 8GiB --tokens 32", "batch"),
    "serve": ("tiny-llama --on 8GiB", "kv_cache"),
    "explain": ("tiny-llama --tokens 32 --seen 80MiB", "80 MiB"),
    "devices": ("", "RTX 4090"),
    "models": ("", "tiny-llama"),
    "formats": ("", "nvfp4"),
    "recipes": ("", "hides"),
    "claims": ("004", "S4-01"),
    "audit": ("--form", "- ask: estimate"),
    "check": ("--help", "likely slip"),
    "schema": ("serve", "concurrency"),
    "completion": ("bash", "complete -o default"),
}
LACKS = {
    "rehearse": ("-- train.py", "rehearsing needs torch: pip install torch numpy"),
    "trace": ("tiny-llama --tokens 32", "tracing needs torch"),
    "measure": ("tiny-llama", "measuring needs torch: pip install torch numpy"),
    "record": ("--list", "measuring needs torch: pip install torch numpy"),
    "watch": ("-- python", "watching needs psutil: pip install psutil nvidia-ml-py"),
}


def call(*words, cwd, **more):
    """Run a program in a folder, without what this process knows of the repository."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    more = {"capture_output": True, "text": True, "env": clean | {"MEMLAB_LANG": ""}} | more
    return subprocess.run([str(word) for word in words], cwd=cwd, **more)


def built(kind, folder, target):
    """The wheel or sdist of the project in a folder, made by setuptools as pip would have it."""
    done = call(sys.executable, "-c", BUILD.format(kind), target, cwd=folder)
    assert done.returncode == 0, done.stderr
    (found,) = target.iterdir()
    return found


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """A wheel from the tree, and one from the sdist of the tree."""
    place = tmp_path_factory.mktemp("built")
    tree = place / "tree"
    away = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*_cache")
    shutil.copytree(ROOT / "src", tree / "src", ignore=away)
    for name in PARTS:
        shutil.copy(ROOT / name, tree)
    (tree / "tests").mkdir()
    shutil.copy(__file__, tree / "tests")
    with tarfile.open(built("sdist", tree, place / "sdist")) as archive:
        archive.extractall(place / "unpacked", filter="data")
    (unpacked,) = (place / "unpacked").iterdir()
    assert not (unpacked / "tests").exists(), "half of the tests, without what they import"
    folders = {"wheel": tree, "sdist": unpacked}
    return {name: built("wheel", each, place / f"from-{name}") for name, each in folders.items()}


@pytest.fixture(scope="module", params=["wheel", "sdist"])
def installed(request, wheels, tmp_path_factory):
    """The programs of an environment that has Python and this wheel, and nothing else."""
    place = tmp_path_factory.mktemp(request.param)
    venv.create(place / "venv", with_pip=False)
    programs = place / "venv" / "bin"
    pip = [sys.executable, "-m", "pip", "--python", programs / "python", "--isolated", "install"]
    quick = ["-q", "--no-index", "--no-deps", "--no-compile", "--disable-pip-version-check"]
    done = call(*pip, *quick, wheels[request.param], cwd=place)
    assert done.returncode == 0, done.stderr
    return programs


def contents(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_a_wheel_holds_every_file_of_the_package(wheels):
    found = contents(wheels["wheel"])
    assert found == contents(wheels["sdist"])
    folder = ROOT / "src"
    files = [path for path in (folder / "memlab").rglob("*") if path.is_file()]
    wanted = {p.relative_to(folder).as_posix() for p in files if "__pycache__" not in p.parts}
    info = f"memlab-{memlab.__version__}.dist-info/"
    assert {name for name in found if not name.startswith(info)} == wanted
    brought = {"memlab/py.typed", "memlab/data/claims/004.json", "memlab/data/quizzes/step.toml"}
    assert brought <= wanted
    assert b"](" not in found[f"{info}METADATA"], "a link of the checkout is dead there"


def test_every_command_has_its_help(installed, tmp_path):
    assert {*ANSWERS, *LACKS, "doctor"} == set(COMMANDS)
    for name in COMMANDS:
        done = call(installed / "memlab", name, "--help", cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, ""), name
        assert done.stdout.startswith(f"usage: memlab {name} ")
    done = call(installed / "memlab", "--version", cwd=tmp_path)
    assert done.stdout.startswith(f"memlab {memlab.__version__}\nproven with torch ")


def test_the_commands_beside_a_wheel_answer(installed, wheels, tmp_path):
    info = f"memlab-{memlab.__version__}.dist-info/METADATA"
    shown = re.findall(r"^    (memlab .*)$", contents(wheels["wheel"])[info].decode(), re.M)
    assert len(shown) > 2
    for line in shown:
        done = call(installed / "memlab", *shlex.split(line, comments=True)[1:], cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, ""), line


def test_every_command_answers_or_says_what_it_lacks(installed, tmp_path):
    for name, (words, said) in ANSWERS.items():
        done = call(installed / "memlab", name, *words.split(), cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, ""), name
        assert said in done.stdout, name
    for name, (words, said) in LACKS.items():
        done = call(installed / "memlab", name, *words.split(), cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, ""), name
        assert done.stderr.startswith(f"memlab: {said}") and done.stderr.count("\n") == 1, name


def test_a_machine_with_python_alone_is_told_what_to_install(installed, tmp_path):
    done = call(installed / "memlab", "doctor", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    for line in ("✗ PyTorch  +not installed", "✗ Jupyter kernel +not installed", "✓ Python  "):
        assert re.search(f"^{line}", done.stdout, re.M), line
    assert "→ pip install torch numpy" in done.stdout
    assert done.stdout.endswith("\nNot ready: PyTorch, Jupyter kernel.\n")


def test_a_learner_s_notebooks_are_read_without_torch(installed, tmp_path):
    notebook = ROOT / "notebooks" / "02_weights.ipynb"
    done = call(installed / "memlab", "check", notebook, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "") and "0/4" in done.stdout
    done = call(installed / "memlab", "check", notebook, "--run", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("memlab: running notebooks needs nbformat: pip install nbclient")


def test_a_list_of_claims_is_audited_without_torch(installed, tmp_path):
    form = call(installed / "memlab", "audit", "--form", cwd=tmp_path).stdout
    (tmp_path / "card.md").write_text(form, encoding="utf-8")
    done = call(installed / "memlab", "audit", "card.md", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("4 claims: holds 3, cannot be checked here 1\n")
    (tmp_path / "card.md").write_text(form.replace("16 GB", "8 GB"), encoding="utf-8")
    assert call(installed / "memlab", "audit", "card.md", cwd=tmp_path).returncode == 1


def test_all_claims_are_listed(installed, tmp_path):
    done = call(installed / "memlab", "claims", cwd=tmp_path)
    assert [line.split()[0] for line in done.stdout.splitlines()] == [
        path.stem for path in sorted((ROOT / "src" / "memlab" / "data" / "claims").iterdir())
    ]


ASKED = """
import memlab
from memlab.base.messages import languages
from memlab.files.records import records
assert records(), "no record"
assert len(languages()) == 3, languages()
assert "site-packages" in memlab.__file__
try:
    memlab.trace(None, {})
except ModuleNotFoundError as error:
    print(error.name)
"""


def test_the_package_has_its_records_and_languages(installed, tmp_path):
    done = call(installed / "python", "-c", ASKED, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "torch\n", "")
