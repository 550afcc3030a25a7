"""`import memlab` must stay light: no torch, no numpy, no matplotlib."""

import subprocess
import sys

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


def test_public_names_are_few_and_real():
    import memlab

    public = [name for name in vars(memlab) if not name.startswith("_")]
    modules = [name for name in public if type(getattr(memlab, name)).__name__ == "module"]
    assert 15 <= len(set(public) - set(modules)) <= 25, sorted(set(public) - set(modules))
