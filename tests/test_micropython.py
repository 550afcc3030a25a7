"""The arithmetic core gives the same answers under MicroPython, which runs it in the browser.

Node runs MicroPython's WebAssembly build (package.json). Without either the tests are skipped, or
fail where MEMLAB_REQUIRE names node (conftest.py).
"""

import importlib
import inspect
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from micropython_cases import FORMATS, RUNS, TERMS, UNITS

from memlab.page.files import bare, later
from memlab.page.files import files as page_files

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "memlab"
HERE = Path(__file__).parent / "micropython"
ENGINE = ROOT / "node_modules" / "@micropython" / "micropython-webassembly-pyscript"

CORE = ["memlab.units", "memlab.formats.format_table", "memlab.formats.formats", "memlab.formats"]
RUN_MODULES = ["memlab.run", "memlab.model", "memlab.run.recipe_choice", "memlab.explain.changes"]
RUN_MODULES += ["memlab.recipe"]
ADAPTERS = ["memlab.adapters.lora", "memlab.adapters.others", "memlab.adapters.expert_lora"]
TERM_MODULES = [
    f"memlab.terms.{path.stem}"
    for path in sorted((SOURCE / "terms").glob("*.py"))
    if path.stem != "__init__"
]


def missing():
    """Why MicroPython cannot run here, or None."""
    if shutil.which("node") is None:
        return "no node"
    if not (ENGINE / "micropython.mjs").exists():
        return "no node package with MicroPython: npm ci installs it"
    return None


# The page's stand-in hands a message to the page in its parts; here it is compared as English.
TOLD = "def Message(pattern, **values):\n    return pattern.format(**values)\n"
TOLD += "def Listed(mark, parts):\n    return mark.join([str(part) for part in parts])\n"


def mounted(**extra):
    """The files that MicroPython sees, as the page's engine gets them, and every term.

    But with what only a print asks for: both engines print their answers to be compared.
    """
    found = {**later(), **page_files(prints=True), "memlab/base/message.py": TOLD}
    for room in ("terms", "adapters"):
        for path in sorted((SOURCE / room).glob("*.py")):
            found[f"memlab/{room}/{path.name}"] = bare(path.read_text(encoding="utf8"), prints=True)
    return {**found, **extra}


def micropython(modules, cases, files):
    if missing():
        pytest.skip(missing())
    asked = {
        "files": files,
        "driver": (HERE / "driver.py").read_text(encoding="utf8"),
        "modules": modules,
        "cases": cases,
    }
    done = subprocess.run(
        ["node", str(HERE / "run.mjs")],
        input=json.dumps(asked),
        capture_output=True,
        encoding="utf8",
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def cpython(modules, cases):
    scope = {}
    exec((HERE / "driver.py").read_text(encoding="utf8"), scope)
    return scope["answers"](modules, cases)


@pytest.fixture(scope="module")
def both():
    """What each engine answers, asked once."""
    modules = [*CORE, *TERM_MODULES, *ADAPTERS, *RUN_MODULES]
    cases = [*UNITS, *FORMATS, *TERMS, *RUNS]
    return micropython(modules, cases, mounted()), cpython(modules, cases)


@pytest.mark.parametrize("module", [*CORE, *TERM_MODULES, *ADAPTERS, *RUN_MODULES])
def test_the_core_imports(both, module):
    assert both[0][module] == both[1][module] == "imported"


@pytest.mark.parametrize(
    "cases", [UNITS, FORMATS, TERMS, RUNS], ids=["units", "formats", "terms", "runs"]
)
def test_the_engines_agree(both, cases):
    there, here = both
    apart = {case: (there[case], here[case]) for case in cases if there[case] != here[case]}
    assert not apart, f"{len(apart)} of {len(cases)}, as (MicroPython, CPython): {apart}"


def test_the_cases_say_something(both):
    """No typo hides behind two engines that fail alike: only ValueError and TypeError may."""
    slips = ("NameError", "AttributeError", "SyntaxError", "KeyError", "ImportError", "IndexError")
    assert not [case for case, answer in both[1].items() if answer.startswith(slips)]
    assert len(UNITS) + len(FORMATS) + len(TERMS) > 300


@pytest.mark.parametrize("module", TERM_MODULES)
def test_every_public_function_of_terms_is_called(module):
    last = module.split(".")[-1]
    functions = inspect.getmembers(importlib.import_module(module), inspect.isfunction)
    called = {case.split("(")[0] for case in TERMS}
    for name, function in functions:
        if function.__module__ == module and not name.startswith("_"):
            assert f"{last}.{name}" in called, f"add a call of {last}.{name} to micropython_cases"


def test_what_micropython_lacks_is_found():
    """The check can fail: a dataclass does not import there, and a difference shows."""
    wrong = "from dataclasses import dataclass\n"
    right = "import sys\ndef engine():\n    return sys.implementation.name\n"
    files = mounted(**{"memlab/terms/wrong.py": wrong, "memlab/terms/right.py": right})
    asked = (["memlab.terms.wrong", "memlab.terms.right"], ["right.engine()", "wrong.x"])
    there = micropython(*asked, files)
    assert there["memlab.terms.wrong"].startswith("ImportError")
    assert there["memlab.terms.right"] == "imported"
    assert there["right.engine()"] == "'micropython'"
    assert there["wrong.x"].startswith("NameError")


def test_a_missing_node_skips(monkeypatch):
    """The reason says "no node", which conftest.py turns into a failure where node is required."""
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(pytest.skip.Exception, match="no node"):
        micropython([], [], {})
