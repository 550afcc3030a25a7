"""What to install for the work that the standard library cannot do alone.

The advice names the packages of an extra and never memlab with it: memlab is on no index, so pip
would find nothing under that name, or what a stranger put there. It holds in a checkout and beside
an installed wheel alike; in a checkout, `pip install '.[torch]'` brings the same packages.
"""

# As in pyproject.toml.
PACKAGES = {"torch": "torch numpy", "watch": "psutil nvidia-ml-py", "yaml": "pyyaml"}


def missing(work: str, error: ModuleNotFoundError, extra: str) -> str:
    """The message for work that lacks a module: its name, and the command that brings it."""
    return f"{work} needs {error.name}: pip install {PACKAGES[extra]}"
