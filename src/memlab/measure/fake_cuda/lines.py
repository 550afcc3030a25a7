"""The two lines behind a tensor: the one that its reader can change, and the library's."""

import linecache
import os
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from ..line_tracker import DEEPEST, LIBRARIES, OUTSIDE, OWN, STDLIB, TORCH, Line

INSTALLED = "site-packages"
HIDDEN = (OWN, TORCH, STDLIB)


class Where(NamedTuple):
    """Both; a program that calls PyTorch itself has the same line twice."""

    reader: Line
    library: Line


class Lines:
    """Finds them. The reader's is in the folder of the program, else in no installed package.

    Leaves out  lines inside PyTorch, memlab and Python's own library
    """

    def __init__(self, folder: str) -> None:
        self.folder = os.path.join(os.path.abspath(folder), "")
        self._kinds: dict[str, int] = {}
        self._made: dict[tuple[str, int], Line] = {}

    def of(self, frame: FrameType | None) -> Where:
        """The lines of a frame and those that called it."""
        reader = library = other = None
        for _ in range(DEEPEST):
            if frame is None:
                break
            file = frame.f_code.co_filename
            kind = self._kinds.get(file)
            if kind is None:
                kind = self._kinds[file] = self._kind(file)
            if kind and library is None:
                library = self._line(file, frame.f_lineno)
            if kind == 3:
                reader = self._line(file, frame.f_lineno)
                break
            if kind == 2 and other is None:
                other = self._line(file, frame.f_lineno)
            frame = frame.f_back
        found = reader or other or OUTSIDE
        return Where(found, library or found)

    def packages(self) -> set[str]:
        """Installed packages whose lines have been met."""
        found = set()
        for file, kind in self._kinds.items():
            if kind == 1 and INSTALLED in file:
                found.add(Path(file.rpartition(INSTALLED)[2]).parts[1].removesuffix(".py"))
        return found

    def _kind(self, file: str) -> int:
        """3 the program's, 2 somebody's, 1 an installed package's, 0 of no interest."""
        if file.startswith(("<", *HIDDEN)) and INSTALLED not in file[len(STDLIB) :]:
            return 0
        if file.startswith(TORCH):
            return 0
        if INSTALLED in file or file.startswith(LIBRARIES):
            return 1
        return 3 if os.path.abspath(file).startswith(self.folder) else 2

    def _line(self, file: str, number: int) -> Line:
        found = self._made.get((file, number))
        if found is None:
            code = linecache.getline(file, number).strip()
            found = self._made[file, number] = Line(f"{_short(file)}:{number}", code)
        return found


def _short(file: str) -> str:
    """A file's name, behind that of the package that it was installed with."""
    name = Path(file).name
    if INSTALLED not in file:
        return "notebook" if "ipykernel" in file else name  # a cell's file has a number for a name
    inside = Path(file.rpartition(INSTALLED)[2]).parts[1:]
    return "/".join((inside[0], *["…"] * (len(inside) > 2), name)) if inside[1:] else name
