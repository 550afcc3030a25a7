"""What stderr says: one line, or with --json one document."""

from __future__ import annotations

import os
import sys

from ..base.safe_text import printable

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def say(words: str) -> None:
    """A line about the command itself."""
    print(f"memlab: {printable(words, keep=chr(10))}", file=sys.stderr)


def say_document(kind: str, **fields: Any) -> None:
    """A document in one line."""
    from .document import document

    said = document(kind, **fields)
    print(" ".join(map(str.strip, said.split("\n"))), file=sys.stderr, flush=True)


def failed(message: str, words: Sequence[str], status: int = 2) -> int:
    """Say what is wrong, with --json as a document of one line; the status."""
    own = words[: words.index("--")] if "--" in words else words  # not those of a program
    if "--json" in own:
        say_document("error", command=words[0], status=status, message=message)
    else:
        say(message)
    return status


def crashed(error: Exception, words: Sequence[str]) -> int:
    """Say that memlab itself broke, and where; the status, which no answer has (BSD: sysexits.h).

    Raises      the same error, as it came, where MEMLAB_DEBUG asks for its trace
    """
    if os.environ.get("MEMLAB_DEBUG"):
        raise error
    import traceback

    place = traceback.extract_tb(error.__traceback__)[-1]
    what = " ".join(f"{type(error).__name__}: {error}".split())[:200]
    where = f"{os.path.basename(place.filename)}:{place.lineno}"
    more = "MEMLAB_DEBUG=1 prints the trace; please report it with the command"
    return failed(f"this is an error of memlab itself: {what} ({where}); {more}", words, 70)
