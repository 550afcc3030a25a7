"""What Inductor compiles, linked wherever the environment lies."""

import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch.utils.cpp_extension


@contextmanager
def linked():
    """Torch's libraries, named to the linker by a path without a blank.

    Inductor (torch 2.13, `_inductor/cpp_builder.py`) writes `-L` and the path into one string that
    a blank divides, so nothing links in an environment whose path has one.
    """
    libraries = Path(torch.utils.cpp_extension.TORCH_LIB_PATH)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        link = Path(folder, "lib")
        link.symlink_to(libraries)
        patched.setattr("torch.utils.cpp_extension.TORCH_LIB_PATH", str(link))
        yield
