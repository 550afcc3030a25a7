"""What argparse is asked to say otherwise: a slip is one line that names it and what is near it."""

from __future__ import annotations

import argparse

from ..base.near import did_you_mean as did_you_mean
from .asked import Asked

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any, NoReturn


# What people call the card that a step shall fit, and what the commands call it.
CARD = ("--card", "--device", "--gpu")
HOLDS_CARD = ("--on", "--fits")


class Parser(argparse.ArgumentParser):
    """A parser whose errors do not begin with all flags of a command, a screen of them."""

    of: argparse.ArgumentParser | None = None  # of the command that was asked for, if it is known

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse has it, and words that nobody takes are looked up among those that are near.

        Raises      SystemExit for a slip, after one line about it
        """
        found, left = self.parse_known_args(args, namespace or Asked())
        found.of_command = self.of
        found.read.clear()  # what argparse itself looked at
        if left:
            self.error(f"unrecognized arguments: {' '.join(left)}; {self._near(left[0])}")
        return found

    def error(self, message: str) -> NoReturn:
        """One line, and where the flags stand."""
        from ..base.safe_text import printable

        which = self.of or self
        end = "" if message.endswith(("; ", "? ")) else "; "
        self.exit(2, f"memlab: {printable(message)}{end}see `{which.prog} --help`\n")

    def _near(self, word: str) -> str:
        """What is meant by a flag that the command does not have, if anything is near it."""
        flag = word.partition("=")[0]
        if self.of is None or not flag.startswith("--"):
            return ""
        known = self.of._option_string_actions
        if flag in CARD and (held := [name for name in HOLDS_CARD if name in known]):
            return f"did you mean {held[0]}? "
        return _elsewhere(flag, self.of.prog) or did_you_mean(flag, known)


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Words of several lines as they stand, and those of one line as wide as a terminal."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" in text.strip():
            return super()._fill_text(text, width, indent)
        return argparse.HelpFormatter._fill_text(self, text, width, indent)


def _elsewhere(flag: str, program: str) -> str:
    """That `memlab estimate` has the flag, which describes more runs than the other commands do."""
    from . import parser

    whole = parser("estimate").of
    if whole is None or whole.prog == program or flag not in whole._option_string_actions:
        return ""
    return f"{whole.prog} has {flag}, {program} does not; "
