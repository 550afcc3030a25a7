"""What a shell completes: what the parsers take, asked in the shells themselves."""

import shutil
import subprocess
import sys

import pytest

from memlab.cli import COMMANDS, main
from memlab.model import presets

# The words of a line, the last one unfinished; and what may stand there.
CASES = [
    (["est"], ["estimate"]),
    ([""], [*COMMANDS, "help"]),
    (["help", "se"], ["serve"]),
    (["estimate", "qwen3-0"], ["qwen3-0.6b"]),
    (["estimate", "gpt2", "--prec"], ["--precision"]),
    (["estimate", "gpt2", "--precision", "f"], ["fp16", "fp32"]),
    (["estimate", "gpt2", "--recipe", "megat"], ["megatron"]),
    (["fit", "gpt2", "--on", "RTX 409"], ["RTX 4090"]),
    (["estimate", "gpt2", "--tokens", ""], []),
    (["completion", ""], ["bash", "zsh", "fish", "--help"]),
    (["rehearse", "--", "tr"], []),
    (["no-command", ""], []),
]
BASH = """
memlab() { "$PYTHON" -m memlab "$@"; }
eval "$(memlab completion bash)"
COMP_WORDS=(memlab "$@")
COMP_CWORD=$#
_memlab
(( ${#COMPREPLY[@]} )) && printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(("words", "known"), CASES, ids=lambda words: " ".join(words)[:30])
def test_what_may_stand_there(capsys, words, known):
    assert main(["completion", "zsh", "--", *words]) == 0
    assert capsys.readouterr().out.split("\n")[:-1] == (known or [""])


def test_a_model_or_the_help_comes_first(capsys):
    assert main(["completion", "fish", "--", "estimate", ""]) == 0
    assert set(capsys.readouterr().out.split()) == {*presets(), "--help"}


@pytest.mark.skipif(not shutil.which("bash"), reason="no bash")
@pytest.mark.parametrize(("words", "known"), CASES[::3], ids=lambda words: " ".join(words)[:30])
def test_bash_asks_for_it(words, known):
    command = ["bash", "--norc", "-c", BASH, "bash", *words]
    environment = {"PYTHON": sys.executable, "PYTHONPATH": ":".join(filter(None, sys.path))}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.stderr == "" and done.stdout.split("\n")[:-1] == known


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_reads_its_script(shell, capsys):
    if not shutil.which(shell):
        pytest.skip(f"no {shell}")
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    done = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""
