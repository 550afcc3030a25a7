"""What argparse is asked to say otherwise: a slip is one line that names it and what is near it.

And help in two lengths: `-h` has the options that most questions need, `--help` has all.
"""

from __future__ import annotations

import argparse
import os
import sys

from .asked import Asked
from .refusal import failed

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, NoReturn

# What README, the chapters and the examples of --help ask most.
BASIC = """
    --json --recipe --precision --optimizer --batch --tokens --micro-batches --attention
    --checkpoint --loop --lora-rank --lora-base --phase --fsdp --ranks --zero --on --fits --seen
    --help
""".split()
FEW = 25  # options of a command that -h lists whole


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Words of several lines as they stand, and those of one line as wide as a terminal."""

    def __init__(self, prog: str, **given: Any) -> None:
        # argparse asks shutil, whose import takes longer than all that argparse does besides.
        if "width" not in given:
            given["width"] = _columns() - 2
        super().__init__(prog, **given)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" in text.strip():
            return super()._fill_text(text, width, indent)
        return argparse.HelpFormatter._fill_text(self, text, width, indent)


def _columns() -> int:
    """The width of the terminal, as shutil.get_terminal_size has it."""
    said = os.environ.get("COLUMNS", "")
    if said.isdigit() and int(said):
        return int(said)
    try:
        return os.get_terminal_size(1).columns or 80
    except OSError:
        return 80


class Short(argparse.Action):
    """`-h`: the options that most need, and where the others are."""

    def __call__(self, parser: Any, *_: Any) -> None:
        parser.print_short_help()
        parser.exit()


class Parser(argparse.ArgumentParser):
    """A parser whose errors do not begin with all flags of a command, a screen of them."""

    of: Parser | None = None  # of the command that was asked for, if it is known
    others: Mapping[str, Callable[[], Parser]] = {}  # command: what makes a parser that has it
    words: tuple[str, ...] = ()  # what is parsed
    late = ""  # an argument that may be left out, and may stand after options too

    def __init__(self, **given: Any) -> None:
        # `--card` would quietly be --cards, which is another question: nothing is abbreviated.
        usual: dict[str, Any] = {"allow_abbrev": False, "formatter_class": Formatter}
        super().__init__(**usual | given, add_help=False)
        words = "the options that most need"
        self.add_argument(
            "-h", nargs=0, dest="help", action=Short, default=argparse.SUPPRESS, help=words
        )
        self.add_argument("--help", action="help", help="all options, and examples")

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse has it, and words that nobody takes are looked up among those that are near.

        Raises      SystemExit for a slip, after one line about it
        """
        words = list(sys.argv[1:] if args is None else args)
        for each in filter(None, (self, self.of)):
            each.words = tuple(words)
        found, left = self._parsed(words, namespace or Asked())
        if left and (late := getattr(self.of, "late", "")) and vars(found)[late] is None:
            # argparse of Python 3.11 takes it for left out where options stand before it.
            place = next((i for i, word in enumerate(left) if word[:1] != "-" or word == "-"), None)
            if place is not None:
                setattr(found, late, left.pop(place))
        if left:
            near = self._all_near(left) or self._near(left[0])
            self.error(f"unrecognized arguments: {' '.join(left)}; {near}")
        if files := _from_files(found):
            found, _ = self._parsed(files[0], Asked())
            found.files = files[1]
        found.read.clear()  # what argparse itself looked at
        return found

    def _parsed(self, words: list[str], namespace: Any) -> tuple[Any, list[str]]:
        """The options of a command line, other spellings taken, and the words that nobody takes."""
        told: list[str] = []
        if self.of is not None and "--help" not in words:
            from .spelled import as_known

            words = as_known(self.of, words, told)
        found, left = self.parse_known_args(words, namespace)
        found.of_command, found.told = self.of, told
        return found, left

    def print_short_help(self) -> None:
        """The options of BASIC, under their headings; all where a command has few."""
        options = [each for each in self._actions if each.option_strings]
        if len(options) <= FEW:
            return self.print_help()
        made = self._get_formatter()
        made.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        made.add_text(self.description)
        for group in self._action_groups:
            shown = [
                action
                for action in group._group_actions
                if not action.option_strings or set(action.option_strings) & set(BASIC)
            ]
            if shown:
                made.start_section(group.title)
                made.add_arguments(shown)
                made.end_section()
        made.add_text(f"{self.prog} --help has all {len(options)} options, and examples.")
        self._print_message(made.format_help(), sys.stdout)
        return None

    def error(self, message: str) -> NoReturn:
        """One line, and where the flags stand."""
        from ..base.safe_text import printable

        which = self.of or self
        end = "" if message.endswith(("; ", "? ")) else "; "
        said = f"{printable(message)}{end}see `{which.prog} --help`"
        self.exit(failed(said, self.words))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """A value that another program has is told what it is here; a slip what is near it."""
        known = None if action.choices is None else list(map(str, action.choices))
        if not isinstance(value, str) or not action.option_strings or value in (known or ()):
            return super()._check_value(action, value)
        from ..base.suggestion import did_you_mean
        from .brought import nearest, value_meant

        meant = value_meant(action.option_strings[0], action.dest, value)
        if meant and (meant[0] == "`" or meant.split()[0] in self._option_string_actions):
            card = action.dest in ("on", "fits") and "--cards" not in meant
            what = "has no reading of its bytes" if card else "is not known here"
            raise argparse.ArgumentError(action, f"{value!r} {what}; say {meant}")
        if near := nearest(action.dest, value):
            raise argparse.ArgumentError(
                action, f"{value!r} is not described; --optimizer {near} keeps as many values"
            )
        if known is not None:
            same = [each for each in known if each.lower() == value.lower()]
            near = did_you_mean(value.lower(), same or known)
            near = f"; {near}" if near else " "
            choices = ", ".join(map(repr, known))
            raise argparse.ArgumentError(
                action, f"invalid choice: {value!r}{near}(choose from {choices})"
            )
        return None

    def _all_near(self, left: list[str]) -> str:
        """What is meant by each of several flags that other programs have, if that is known."""
        from .brought import flag_meant

        known = self.of._option_string_actions if self.of else {}
        flags = [word.partition("=")[0] for word in left if word.startswith("--")]
        meant = [
            next((each for each in flag_meant(flag) or () if each.split()[0] in known), None)
            for flag in flags
        ]
        if len(flags) < 2 or None in meant:
            return ""
        return f"did you mean {', '.join(dict.fromkeys(filter(None, meant)))}? "

    def _near(self, word: str) -> str:
        """What is meant by a flag that the command does not have, if anything is near it."""
        flag = word.partition("=")[0]
        if self.of is None or not flag.startswith("-"):
            return ""
        known = self.of._option_string_actions
        from ..base.suggestion import did_you_mean
        from .brought import flag_meant

        if meant := flag_meant(flag):
            here = [each for each in meant if each.split()[0] in known]
            return f"did you mean {here[0]}? " if here else self._elsewhere(meant[0].split()[0])
        return self._elsewhere(flag) or did_you_mean(flag, known)

    def _elsewhere(self, flag: str) -> str:
        """The command that has the flag: as it would be typed, where it takes all that was said."""
        import shlex

        this = self.of
        assert this is not None
        flags = [word.partition("=")[0] for word in self.words if word.startswith("--")]
        others = [make().of for make in self.others.values()]
        having = [each for each in others if each and flag in each._option_string_actions]
        having.sort(key=lambda other: _asks(other) != _asks(this))
        for other in having:
            known = other._option_string_actions
            needed = {getattr(known.get(each), "needs", flags[0]) for each in flags}
            if needed <= {*flags} <= {*known} and _asks(other) == _asks(this):
                return f"ask `{shlex.join([*other.prog.split(), *self.words[1:]])}`; "
        return f"{having[0].prog} has {flag}, {this.prog} does not; " if having else ""


def _from_files(options: Any) -> Any:
    """What a trainer's files say, where they are given: memlab.cli.trainer_file.from_files."""
    if "trainer_config" not in vars(options):  # of a command that takes none
        return None
    from .trainer_file import from_files

    return from_files(options)


def _asks(parser: argparse.ArgumentParser) -> list[str]:
    """What a command is asked about: CONFIG, a file, a program."""
    return [action.dest for action in parser._actions if not action.option_strings]
