"""The reference shows what the code says of itself, all of it, and stays English."""

import re
from html import unescape
from pathlib import Path

import api
import pytest
import status
from blocks import blocks

import memlab
from memlab.cli import COMMANDS
from memlab.run.fields import TABLE

ROOT = Path(__file__).resolve().parent.parent
PAGE = status.fill((ROOT / "book" / "api.md").read_text(encoding="utf-8"), ROOT)


def test_every_public_name_and_command_has_its_place():
    names = re.findall(r"^### `(?!memlab\.)(.*)`$", PAGE, re.M)  # modules head the formulas
    offered = {name for name, one in api.offered() if callable(one)}
    assert sorted(names) == sorted([*offered, *(f"memlab {name}" for name in COMMANDS)])
    assert len(offered) > 15 and "<code>GiB = 1_073_741_824</code>" in PAGE


@pytest.mark.parametrize("one", [memlab.Run, memlab.Sharding, memlab.Recipe])
def test_every_field_says_what_it_is(one):
    told = dict(api.apart(one)[1])
    assert [name for name in one.__fields__ if name not in told] == (
        ["name"] if one is memlab.Recipe else []
    )
    page = unescape(api.of_class(one))
    assert all(
        re.search(rf"<dt><code>{name}: [\w.| \[\],]+ = ", page)
        for name in told
        if name[0].islower()
    )


def test_a_field_of_a_run_says_what_its_table_says():
    page = api.of_class(memlab.Run)
    for word in ("zbvzerobubble", "interleaved1f1b"):
        assert word not in page  # of Sharding
    for field in TABLE:
        assert all(f"<code>{word}</code>" in page for word in field.known), field.name


def test_a_docstring_is_read_in_its_form():
    def made(run: "memlab.Run" = memlab.Run(), /, *, count=3):  # noqa: B008
        """Say `this`, over
        two lines.

        And that.

        Leaves out  a < b,
                    the rest
        Raises      nothing
        """

    words, entries = api.apart(made)
    assert words == ["Say `this`, over two lines.", "And that."]
    assert entries == [("Leaves out", "a < b, the rest"), ("Raises", "nothing")]
    assert "<code>this</code>" in api.described(made) and "a &lt; b" in api.described(made)
    assert api.call("made", made) == "made(run: memlab.Run = Run(), *, count = 3)"


def test_no_docstring_is_to_be_translated():
    prose = blocks((ROOT / "book" / "api.md").read_text(encoding="utf-8"))
    assert blocks(PAGE) == prose and len(prose) < 10
