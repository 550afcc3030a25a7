"""What was asked on a command line: that all of it was used, and how another command is asked it.

An option that nothing read while a command was answered is refused by name: whoever adds an option
and forgets it in one of the answers finds it here.
"""

from __future__ import annotations

import argparse

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# How an answer is shown, which is no part of the question.
SHOWN = ("json", "plot")


class Asked(argparse.Namespace):
    """The options of a command, which know which of them were read.

    read        the names of those
    of_command  the parser that they are from, under a name that no option has; None: no command's
    files       memlab.cli.trainer_file.FromFiles, where they are from a trainer's files
    told        lines to print below the answer, or beside its document
    """

    __slots__ = ("of_command", "read", "files", "told")

    def __init__(self, **options: Any) -> None:
        self.read: set[str] = set()
        self.of_command: Any = None
        self.files: Any = None
        self.told: list[str] = []
        super().__init__(**options)

    @classmethod
    def of(cls, options: dict[str, Any], other: Asked) -> Asked:
        """Other options of the same command."""
        made = cls(**options)
        made.of_command = other.of_command
        return made

    def __getattribute__(self, name: str) -> Any:
        if name[:1] != "_" and name not in Asked.__slots__:
            self.read.add(name)
        return super().__getattribute__(name)


def answered(options: Any) -> Any:
    """What the command makes of its options.

    Raises      ValueError for an option that was given and that nothing read; what the command
                raises
    """
    files = getattr(options, "files", None)
    try:
        answer = options.run(options)
        if not isinstance(answer, int):  # the status of a command that has said all it had to
            _check_read(options)
    except ValueError as error:
        if files is None:
            raise
        raise ValueError(files.blamed(str(error))) from error
    lines = [*getattr(options, "told", ()), *(files.lines() if files else ())]
    return _with(options, lines, answer) if lines else answer


def _with(options: Any, lines: list[str], answer: Any) -> Any:
    """An answer, and what was read of files: below it, or on stderr beside a document."""
    if isinstance(answer, int) or options.json:
        from .refusal import say

        say("\n".join(lines))
        return answer
    told = "\n".join([answer if isinstance(answer, str) else answer[0], *lines])
    return told if isinstance(answer, str) else (told, *answer[1:])


def given(options: Any) -> Iterator[Any]:
    """Each option that was given, and its value."""
    said = vars(options)
    for action in options.of_command._actions if options.of_command else ():
        value = said.get(action.dest)
        if value is not None and value is not False and value != action.default:
            yield action, value
        elif value is False and isinstance(action, argparse.BooleanOptionalAction):
            yield action, value


def _check_read(options: Any) -> None:
    for action, value in given(options):
        if action.dest not in options.read:
            flag = " ".join(words(action, value))
            raise ValueError(f"{flag}: nothing in this answer depends on it; leave it out")


def words(action: Any, value: Any) -> list[str]:
    """An option and its value, as they are typed."""
    if not action.option_strings:
        return [str(value)]
    if isinstance(action, argparse.BooleanOptionalAction):
        return [action.option_strings[0 if value else -1]]
    return [action.option_strings[0]] + ([] if action.nargs == 0 else [str(value)])


def command(name: str, options: Any, **more: Any) -> str:
    """`memlab NAME` with every option that was given, as a shell takes it.

    more        options that were not given, and what they shall be
    Raises      ValueError for an option that this command does not take
    """
    import shlex

    theirs = options.of_command.others[name]().of
    assert theirs is not None
    known = {action.dest: action for action in theirs._actions}
    said = ["memlab", name]
    for action, value in given(options):
        if action.dest in SHOWN:
            continue
        if action.dest not in known:
            flag = " ".join(words(action, value))
            raise ValueError(f"{flag}: memlab {name} does not take it")
        said += words(known[action.dest], value)
    for dest, value in more.items():
        if vars(options).get(dest) is None:
            said += words(known[dest], value)
    return shlex.join(said)
