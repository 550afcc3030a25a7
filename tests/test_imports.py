"""`import memlab` must stay light: no torch, no numpy, no matplotlib."""

import subprocess
import sys
from importlib.util import find_spec

import pytest

HEAVY = ("torch", "numpy", "matplotlib", "transformers", "ipywidgets")
PROBE = (
    "import sys; {first}; import memlab; sys.exit(1 if set({heavy!r}) & set(sys.modules) else 0)"
)


def leaves_clean(first: str = "pass") -> bool:
    """Whether a fresh interpreter that imports memlab ends without a heavy module."""
    probe = PROBE.format(first=first, heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True)
    assert done.returncode in (0, 1) and "Traceback" not in done.stderr, done.stderr
    return done.returncode == 0


def test_memlab_imports_nothing_heavy():
    assert leaves_clean()


@pytest.mark.parametrize("module", ["numpy", "torch"])
def test_the_test_above_can_fail(module):
    assert not leaves_clean(first=f"import {module}")


@pytest.mark.parametrize(
    "words",
    [
        ["estimate", "Llama-3-8B"],
        ["estimate", "qwen3-0.6b", "--tokens", "64", "--json"],
        ["estimate", "tiny-llama", "--phase", "decode", "--tokens", "64", "--precision", "bf16"],
        ["fit", "qwen3-0.6b", "--on", "RTX 4090", "--tokens", "64", "--precision", "bf16"],
        ["devices"],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_the_shell_answers_without_anything_heavy(words):
    code = (
        "import sys; from memlab.cli import main; status = main(sys.argv[1:]); "
        f"sys.exit(status or 3 * bool(set({HEAVY!r}) & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_public_names_are_few_and_real():
    import memlab

    assert 15 <= len(memlab.__all__) <= 25
    modules = [n for n in memlab.__all__ if type(getattr(memlab, n)).__name__ == "module"]
    assert not modules and set(memlab.__all__) <= set(dir(memlab))


@pytest.mark.parametrize("first", ["estimate", "explain", "rehearse"])
def test_a_name_is_the_function_though_a_module_is_called_so(first):
    code = f"import memlab.{first} as m, memlab; sys = __import__('sys'); "
    code += f"assert callable(memlab.{first}) and 'memlab.{first}' in sys.modules; "
    code += f"from memlab import {first}; assert callable({first})"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize(
    ("words", "most"), [(["--version"], 12), (["--help"], 12), (["estimate", "gpt2"], 110)]
)
def test_a_command_imports_what_it_needs(words, most):
    """Each module is a fifth of a millisecond before an answer begins."""
    code = "import sys, memlab.cli as c\ntry: c.main(sys.argv[1:])\nexcept SystemExit: pass\n"
    code += "print(sum(name.startswith('memlab') for name in sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True)
    assert int(done.stderr) <= most


SETTERS = """
import contextlib, logging, pkgutil, sys, warnings
from importlib import import_module

said = []

def told(owner, name):
    real = getattr(owner, name)
    def wrapper(*given, **more):
        caller = sys._getframe(1).f_globals.get("__name__", "")
        if caller.startswith("memlab"):
            said.append(f"{caller} calls {name}{given[1:]}")
        return real(*given, **more)
    setattr(owner, name, wrapper)

for name in ("setLevel", "addHandler", "removeHandler", "addFilter", "removeFilter"):
    told(logging.Logger, name)
for name in ("disable", "basicConfig", "captureWarnings"):
    told(logging, name)
for name in ("filterwarnings", "simplefilter", "resetwarnings"):
    told(warnings, name)
import memlab.lab.quiet
WORK
print("\\n".join(said))
sys.exit(bool(said))
"""

ALL = """
for module in pkgutil.walk_packages(memlab.__path__, "memlab."):
    if module.name != "memlab.__main__":  # it runs the command line
        import_module(module.name)
"""


def changes_a_logger(work: str) -> str:
    """What memlab changes of other libraries' logging and warnings in this work."""
    probe = SETTERS.replace("WORK", work)
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True)
    assert done.returncode in (0, 1) and "Traceback" not in done.stderr, done.stderr
    return done.stdout.strip()


@pytest.mark.skipif(not find_spec("torch"), reason="no torch")
def test_importing_any_module_changes_no_other_librarys_logger():
    assert changes_a_logger(ALL) == ""


@pytest.mark.skipif(not find_spec("torch"), reason="no torch")
def test_the_logger_test_above_can_fail():
    found = changes_a_logger("memlab.lab.quiet.quiet().__enter__()")
    assert "memlab.lab.quiet calls disable" in found and "calls simplefilter" in found
