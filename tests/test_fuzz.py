"""The fuzzer asks what nobody would ask, finds nothing, and would notice."""

import re
import subprocess
import sys
from pathlib import Path

import fuzz_shell
import pytest

from memlab.cli import main

TOOLS = Path(__file__).parent.parent / "tools"


def fuzz(*arguments, broken=""):
    """`tools/fuzz.py` in a process without torch's threads, with something broken on purpose."""
    code = f"import sys; sys.path.insert(0, {str(TOOLS)!r}); import fuzz, fuzz_shell\n{broken}\n"
    code += "sys.exit(fuzz.main(sys.argv[1:]))"
    words = [sys.executable, "-c", code, *arguments]
    return subprocess.run(words, capture_output=True, text=True, timeout=240)


def test_a_few_seconds_find_nothing():
    done = fuzz("20", "0", "files")
    assert done.returncode == 0 and " files in 20 s, 0 kinds of findings" in done.stdout


@pytest.mark.parametrize(
    ("broken", "finding"),
    [
        ("fuzz_shell.main = lambda words: {}[1]", "KeyError: 1 at"),
        ("fuzz_shell.main = lambda words: print('\\x1b[2J') or 0", "unprintable: ['\\x1b']"),
        ("fuzz_shell.main = lambda words: 0", "silence: no answer"),
        ("fuzz_shell.main = lambda words: 3", "status 3"),
        ("fuzz_shell.main = lambda words: print('x', file=sys.stderr) or 2", "refusal: not one"),
        ("fuzz_shell.main = lambda words: [0] * 2**28", "memory: more than 1 GiB"),
        (
            "import itertools; fuzz_shell.SECONDS = 1\n"
            "fuzz_shell.main = lambda words: any(n < 0 for n in itertools.count())",
            "hang: more than 1 s",
        ),
        ("import os; fuzz_shell.main = lambda words: os.abort()", "ended by signal"),
    ],
)
def test_it_would_notice(broken, finding):
    done = fuzz("0", "7", "shell", broken=broken)
    assert done.returncode == 1 and finding in done.stdout, done.stdout + done.stderr
    assert done.stdout.startswith("shell, seed 7: ") and "1 shell in 0 s, 1 kinds" in done.stdout


def test_one_seed_asks_one_question(tmp_path):
    code = f"import sys; sys.path.insert(0, {str(TOOLS)!r}); import fuzz_shell\n"
    code += "print([fuzz_shell.question(seed, sys.argv[1]) for seed in range(200)])"
    words = [sys.executable, "-c", code, str(tmp_path)]
    asked = [subprocess.run(words, capture_output=True, check=True).stdout for _ in range(2)]
    assert asked[0] == asked[1] and b"'--json'" in asked[0] and b"'claims'" in asked[0]


@pytest.mark.parametrize("command", ["estimate", "fit", "explain"])
def test_every_flag_is_asked(command, capsys):
    """But where a program would write a file."""
    with pytest.raises(SystemExit):
        main([command, "--help"])
    flags = set(re.findall(r"--[a-z0-9-]+", capsys.readouterr().out))
    assert flags - {"--help", "--json", "--plot"} == set(
        fuzz_shell.CHOICES | fuzz_shell.MORE[command]
    )


def test_an_unknown_kind_is_named():
    done = fuzz("1", "1", "magic")
    assert done.returncode == 2 and "unknown magic; known: shell, files, steps" in done.stderr
