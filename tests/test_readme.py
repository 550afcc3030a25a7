"""The README shows what its commands print, and its Python runs."""

import re
from pathlib import Path

import readme

ROOT = Path(__file__).parent.parent

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_table_is_what_the_command_prints():
    assert "$ .venv/bin/memlab measure tiny-llama" in README
    assert readme.readme() == README


def test_the_picture_is_what_a_run_draws():
    assert readme.PICTURE.read_text(encoding="utf-8") == readme.picture()


def test_six_lines_of_code_run(capsys):
    code = re.search(r"```python\n(.*?)```", README, re.S)[1]
    assert len(code.strip().splitlines()) == 6
    exec(code, {})
    assert "18 B per parameter" in capsys.readouterr().out
