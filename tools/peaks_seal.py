"""The page's tables as the repository keeps them: whether they are those that the code makes.

    python tools/peaks_seal.py    seal the tables as they stand

A key binds the tables to the code that makes them. It says nothing of the tables: a figure that a
merge or a hand changed keeps its key, and a test makes only some of them again. So a seal stands
beside it, a hash over their bytes. Reading them needs nothing of what makes them (tools/peaks.py:
NumPy), so that `make book` works where the book's own packages are all there is.
"""

import hashlib
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import code_key

MAKER = Path(__file__).resolve().parent / "peaks.py"
TARGET = MAKER.parent.parent / "book" / "calculator" / "peaks"
KEY, SEAL = "key", "seal"


@dataclass(frozen=True)
class Tables:
    """The files that one tool makes, and the key to its code beside them.

    files       what there is a file of, its family or loop first
    path_of, text_of    of what `files` gives
    """

    maker: str
    name: str
    files: Callable[[], Iterable[tuple[Any, ...]]]
    path_of: Callable[..., Path]
    text_of: Callable[..., str]

    def key(self):
        """A hash over what the moments are made from."""
        return code_key.key(Path(self.maker).resolve())

    def stands(self):
        """Whether the files were made by the code as it is."""
        stamp = TARGET / self.name
        return stamp.exists() and stamp.read_text().strip() == self.key()

    def main(self):
        """Write those of the families or loops that the command names, or all and the key."""
        named = sys.argv[1:]
        if named or not self.stands():
            made_by = self.key()
            for each in self.files():
                if not named or each[0] in named:
                    self.path_of(*each).write_text(self.text_of(*each), encoding="utf-8")
            if not named:
                (TARGET / self.name).write_text(made_by + "\n")
            seal()
        print(os.path.relpath(TARGET))


def key():
    """A hash over what the moments are made from."""
    return code_key.key(MAKER)


def stands():
    """Whether the files were made by the code as it is."""
    stamp = TARGET / KEY
    return stamp.exists() and stamp.read_text().strip() == key()


def kept():
    """The folder, as the repository keeps it.

    A build of the book or a test does not make it anew: what is committed would stay unseen.
    """
    if not stands():
        raise SystemExit("other code made book/calculator/peaks: run python tools/peaks.py")
    return TARGET


def digest(folder=TARGET):
    """Of the name and the bytes of every table of the folder."""
    made = hashlib.sha256()
    for path in sorted(folder.glob("*.json")):
        body = path.read_bytes()
        made.update(f"{path.name} {len(body)}\n".encode() + body)
    return made.hexdigest()


def seal(folder=TARGET):
    """Say that the tables are as they were made."""
    (folder / SEAL).write_text(digest(folder) + "\n", encoding="utf-8")


def whole(folder=TARGET):
    """Whether no table came, went or changed since."""
    stamp = folder / SEAL
    return stamp.exists() and stamp.read_text(encoding="utf-8").strip() == digest(folder)


if __name__ == "__main__":
    seal()
