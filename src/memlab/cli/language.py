"""`--lang`: one answer in another language than that of the environment."""

from __future__ import annotations

from contextlib import contextmanager

from ..base import messages

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator


def add_language(parser: argparse.ArgumentParser) -> None:
    """For a command that a room reads, on machines where setting a variable is another lesson."""
    words = "of the answer (default: that of MEMLAB_LANG or LANG): " + ", ".join(
        messages.languages()
    )
    parser.add_argument("--lang", metavar="LANG", choices=messages.languages(), help=words)


@contextmanager
def spoken(language: str | None) -> Iterator[None]:
    """Say what the block says in this language; None: in the one that is in use."""
    before = list(messages._chosen)
    if language is not None:
        messages.use_language(language)
    try:
        yield
    finally:
        messages._chosen[:] = before
