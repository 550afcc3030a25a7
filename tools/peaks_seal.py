"""The page's tables as the repository keeps them: whether they are those that the code makes.

    python tools/peaks_seal.py    seal the tables as they stand

A key binds the tables to the code that makes them. It says nothing of the tables: a figure that a
merge or a hand changed keeps its key, and a test makes only some of them again. So a seal stands
beside it, a hash over their bytes. Reading them needs nothing of what makes them (tools/peaks.py:
NumPy), so that `make book` works where the book's own packages are all there is.
"""

import hashlib
from pathlib import Path

import code_key

MAKER = Path(__file__).resolve().parent / "peaks.py"
TARGET = MAKER.parent.parent / "book" / "calculator" / "peaks"
KEY, SEAL = "key", "seal"


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
