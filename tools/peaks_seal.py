"""The seal of the page's tables: a hash over their bytes, so that none changes by itself.

    python tools/peaks_seal.py    seal the tables as they stand

The keys beside it bind the tables to the code that makes them. They say nothing of the tables: a
figure that a merge or a hand changed keeps its key, and a test makes only some of them again.
"""

import hashlib
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "book" / "calculator" / "peaks"
SEAL = "seal"


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
