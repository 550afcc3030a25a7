"""Every memlab command that a message, a help text, a chapter or a page advises is one that parses.

A command is advised in full ("memlab fit gpt2 --on T4") or mentioned ("--level of memlab explain"):
what a mention leaves out may be missing, but what it says has to be right. Where a value is a
placeholder, another one stands in for it: CONFIG, <card>, {tokens}, ...
"""

import ast
import json
import re
import shlex
from functools import cache
from pathlib import Path

import pytest

from memlab.cli import COMMANDS, parser

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "book").glob("*.md"))]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SOURCES = sorted((ROOT / "src" / "memlab").rglob("*.py"))
# A command, up to where its line, its quotation or its bracket ends.
ADVISED = re.compile(rf"\bmemlab ((?:{'|'.join(COMMANDS)})\b(?:\\\n|[^`\n\x00])*)(`?)")
PLACEHOLDER = re.compile(r"\{.*\}|<.*>|[A-Z]+(\.[a-z]+)?")
PROSE = re.compile(r"( [a-z']+){3}")  # so many words in a row are no command's
BARE = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*[a-z0-9]\b(?!-)")


class Wrong(Exception):
    """What argparse has to say."""


@cache
def of(command):
    """The parser of a command, which raises instead of leaving."""
    whole = parser(command)

    def error(message):
        raise Wrong(message)

    for each in (whole, whole.of):
        each.error = error
    return whole


def filled(words, command):
    """The words with a stand-in for each placeholder: of the right type, among the choices."""
    known, before, made = of(command).of._option_string_actions, None, []
    for word in words:
        flag, sign, value = word.partition("=")
        if word.startswith("--") and sign and PLACEHOLDER.fullmatch(value):
            made.append(f"{flag}={stand_in(known.get(flag))}")
        elif PLACEHOLDER.fullmatch(word) or re.search(r"\{\w*\}", word):
            made.append(stand_in(known.get(before)))
        else:
            made.append(word)
        before = word if word.startswith("--") else None
    return [word for word in made if word]


def stand_in(action):
    """A value for an option, or for the model."""
    if action is None:
        return "gpt2"
    return str(action.choices[0]) if action.choices else "8"


def wrong(line, whole):
    """Why a line does not parse, or "".

    whole       it is a quotation or a line of its own; else the sentence goes on after it, and of a
                sentence only the flags are looked at
    """
    line = re.sub(r"[\[\]…]|\.\.\.|\\\n|\{\w*\}(?=--)", " ", line)
    try:
        words = shlex.split(line, comments=True)
    except ValueError:  # an apostrophe, not a quotation
        words = line.split()
    words = [word.strip("(),;:.?!“”") if not whole else word for word in words]
    for end in ("|", ">", ">>", "&&", ";", "--"):
        words = words[: words.index(end) + (end == "--")] if end in words else words
    command, *rest = [words[0].strip("(),;:.?!“”"), *words[1:]]
    known = of(command).of._option_string_actions
    missing = [w for w in BARE.findall(" ".join(rest)) if w not in known]
    if missing or not whole:
        return f"memlab {command} has no {', '.join(missing)}" if missing else ""
    program = ["true"] if rest[-1:] == ["--"] else []
    try:
        of(command).parse_args([command, *filled(rest, command), *program])
    except Wrong as error:
        if str(error).startswith("the following arguments are required"):
            return ""  # mentioned
        return "" if "expected one argument" in str(error) else str(error)
    except SystemExit:  # --help
        pass
    return ""


def commands(text):
    """(line, whether it is whole) of each command in a text."""
    for found in ADVISED.finditer(text):
        before = text[: found.start()].rpartition("\n")[2]
        quoted = before.count("`") % 2 == 1 and bool(found[2])
        alone = re.fullmatch(r"\s*(\$ |!|.*/bin/)?", before) and not found[2]
        yield found[1], bool(quoted or alone and not PROSE.search(found[1]))


def literals(path):
    """The texts of a module: of an f-string and of parts that are joined, a value is a placeholder.

    Docstrings too: `--help` prints some of them, and they are read like pages.
    """
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            yield "".join(p.value if isinstance(p, ast.Constant) else "{}" for p in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def texts(path):
    if "memlab " not in path.read_text(encoding="utf-8"):
        return []
    if path.suffix == ".py":
        return list(literals(path))
    if path.suffix == ".ipynb":
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        return ["".join(cell["source"]) for cell in cells]
    return [path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", [*PAGES, *NOTEBOOKS, *SOURCES], ids=lambda path: path.name)
def test_every_command_that_is_advised_parses(path):
    found = [each for text in texts(path) for each in commands(text)]
    slips = {line: why for line, whole in found if (why := wrong(line, whole))}
    assert not slips


def test_a_slip_is_found():
    """The net holds: a flag that is gone, a choice that is none, a word too many."""
    assert wrong("watch --interval), or read it in the program", False)
    assert wrong("watch --interval 1 -- true", True)
    assert wrong("estimate {config} --loop no-such-loop", True)
    assert wrong("estimate gpt2 --tokens many", True)
    assert wrong("devices gpt2", True)
    assert not wrong("estimate {config} {phase}--tokens {tokens}", True)
    assert not wrong("explain --on", True) and not wrong("fit", True)
    assert list(commands("use `memlab fit gpt2 --on T4`, or memlab watch")) == [
        ("fit gpt2 --on T4", True),
        ("watch", False),
    ]
