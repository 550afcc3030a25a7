"""The moments that the repository keeps for the page are those that the code makes now."""

import operator
import random
import subprocess
import sys
from itertools import product
from pathlib import Path

import code_key
import layer_peaks
import peaks
import peaks_seal
import pytest

from memlab.families import tabled
from memlab.page.layer_forms import TURNS
from memlab.page.peak import KINDS as KINDS_OF_LAYERS
from memlab.page.peak import LAYERS, OUTSIDE, place_of, places, tally
from memlab.page.peak_files import moments, unfolded

ROOT = Path(__file__).resolve().parent.parent


# Another draw for other code, the same one for the same code.
DRAW = random.Random(peaks.key())
SMALL = list(product(("gpt2", "opt", "gpt_neox"), peaks.PRECISIONS))
PAIR = DRAW.choice(SMALL)
KINDS = [
    (family, kind)
    for family in tabled()
    for precision in peaks.PRECISIONS
    for kind in DRAW.sample(list(peaks.kinds_of(family, precision)), 1)
]
MODULE = '''"""What it says."""

from memlab.units import text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def double(value):
    """Twice."""
    # A comment.
    return 2 * value
'''


def test_they_were_made_by_the_code_as_it_is():
    assert peaks.stands(), "run python tools/peaks.py"


def test_no_table_is_another_than_the_one_that_was_made():
    assert peaks_seal.whole(), "what changed? if it was made so: python tools/peaks_seal.py"


def test_a_figure_that_changed_by_itself_breaks_the_seal(tmp_path):
    """The keys are of the code, and of each file one kind of step alone is made again."""
    (table,) = list(peaks.TARGET.glob("opt.fp32.json"))
    text = table.read_text(encoding="utf-8")
    copy = tmp_path / table.name
    copy.write_text(text, encoding="utf-8")
    assert not peaks_seal.whole(tmp_path)  # nothing was sealed
    peaks_seal.seal(tmp_path)
    assert peaks_seal.whole(tmp_path)
    at = text.rindex("1")
    copy.write_text(f"{text[:at]}2{text[at + 1 :]}", encoding="utf-8")
    assert not peaks_seal.whole(tmp_path)
    copy.write_text(text, encoding="utf-8")
    (tmp_path / "more.json").write_text("{}")
    assert not peaks_seal.whole(tmp_path)


def test_what_other_code_made_is_refused_and_stays_as_it_is(tmp_path, monkeypatch):
    (tmp_path / "key").write_text("of other code\n")
    monkeypatch.setattr(peaks_seal, "TARGET", tmp_path)
    with pytest.raises(SystemExit, match="run python tools/peaks.py"):
        peaks.kept()
    assert (tmp_path / "key").read_text() == "of other code\n" and not peaks.stands()


@pytest.mark.deep
@pytest.mark.parametrize("pair", [PAIR], ids=".".join)
def test_one_file_is_made_again_byte_for_byte(pair):
    kept = (peaks.TARGET / "{}.{}.json".format(*pair)).read_text(encoding="utf-8")
    assert peaks.text_of(*pair) == kept, "run python tools/peaks.py"


@pytest.mark.sample(32)
@pytest.mark.parametrize(("family", "kind"), KINDS, ids=".".join)
def test_a_kind_of_step_of_each_file_is_made_again(family, kind):
    kept = unfolded((peaks.TARGET / f"{family}.{kind[0]}.json").read_text(encoding="utf-8"))
    told = [tuple(each) for each in moments(kept, ".".join(kind))]
    assert told == peaks.moments_of(family, kind)


TWO_KINDS = [(family, kind) for family, kind in KINDS if kind[-2] != "alike"]


@pytest.mark.parametrize(("family", "kind"), DRAW.sample(TWO_KINDS, 4), ids=".".join)
def test_any_layer_of_a_place_tells_the_same(family, kind, monkeypatch):
    """The sums of a place come from one layer; here from each that tells of all others."""
    order = [int(each) for each in peaks.ORDERS[kind[-2]]]
    usual = layer_peaks.shown(order)
    told = {layer_peaks.Part(order, layer).place: layer for layer in usual}
    made = peaks.moments_of(family, kind)
    for layer in range(len(order)):
        part = layer_peaks.Part(order, layer)
        known = layer_peaks.Part(order, told[part.place]).known
        if layer not in usual and part.known == known:
            others = (usual - {told[part.place]}) | {layer}
            monkeypatch.setattr(layer_peaks, "shown", lambda _, others=others: others)
            assert in_any_order(peaks.moments_of(family, kind)) == in_any_order(made)


def in_any_order(found):
    """The same moments, of which the page looks for the largest: no order says anything."""
    return sorted(
        (moment, cut, sorted((term, sorted(sums.items())) for term, sums in terms.items()))
        for moment, cut, terms in found
    )


LOADED = """
import sys, types
memlab = types.ModuleType("memlab")  # not its doors, which load everything
memlab.__path__ = [sys.argv[1]]
sys.modules["memlab"] = memlab
import peaks
for family in peaks.tabled():
    kinds = [k for k in peaks.kinds_of(family, "autocast") if k[2] == "block" and k[7] == "again"]
    peaks.moments_of(family, kinds[-1])
print("\\n".join(m.__file__ for n, m in sys.modules.items() if n.startswith("memlab.")))
"""


def test_every_module_that_a_step_loads_is_in_the_key():
    command = [sys.executable, "-c", LOADED, str(ROOT / "src" / "memlab")]
    done = subprocess.run(command, cwd=ROOT / "tools", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loaded = {Path(line) for line in done.stdout.splitlines()}
    assert len(loaded) > 20
    assert loaded - set(code_key.reached(Path(peaks.__file__))) == set()


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("# A comment.", "# Another one,\n    # and a line more.", True),
        ('"""Twice."""', '"""Two times that."""', True),
        ('    """Twice."""\n', "", True),
        ("def double(value):", "def double(\n    value: int,\n) -> int:", True),
        ("    from typing import Any", "    from typing import Any, Self", True),
        (
            '"""What it says."""\n',
            '"""What it says."""\nfrom __future__ import annotations\n',
            True,
        ),
        ("2 * value", "3 * value", False),
        ("2 * value", "value * 2", False),
        ("2 * value", '"2" * value', False),
        ("def double(value)", "def double(value=1)", False),
        ("import text", "import parse", False),
    ],
)
def test_only_what_code_does_moves_its_key(tmp_path, old, new, same):
    before, after = tmp_path / "module.py", tmp_path / "changed" / "module.py"
    after.parent.mkdir()
    before.write_text(MODULE)
    assert MODULE.count(old) == 1
    after.write_text(MODULE.replace(old, new))
    assert (code_key.key(before) == code_key.key(after)) is same


def test_a_key_covers_what_is_imported_from_afar(tmp_path, monkeypatch):
    for name, words in {
        "__init__": "from .doors import everything",
        "doors": "",
        "room/__init__": "",
        "room/near": "from ..far import size",
        "room/late": "def late():\n    from . import near",
        "far": "size = 1",
        "plain": "import memlab.room.late",
        "by_name/__init__": "import importlib\nimportlib.import_module(f'.{1}', __name__)",
        "by_name/some": "",
        "other": "from memlab.by_name import found",
    }.items():
        path = tmp_path / "memlab" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(words)
    monkeypatch.setattr(code_key, "SOURCE", tmp_path)
    monkeypatch.setattr(code_key, "DOORS", tmp_path / "memlab" / "__init__.py")

    def names(root):
        found = code_key.reached(tmp_path / "memlab" / f"{root}.py")
        return [path.relative_to(tmp_path / "memlab").with_suffix("").as_posix() for path in found]

    assert names("plain") == ["far", "plain", "room/__init__", "room/late", "room/near"]
    assert names("other") == ["by_name/__init__", "by_name/some", "other"]
    before = code_key.key(tmp_path / "memlab" / "plain.py")
    (tmp_path / "memlab" / "far.py").write_text("size = 2")
    assert code_key.key(tmp_path / "memlab" / "plain.py") != before


def test_the_corners_of_places_are_as_high_as_all_of_them():
    chance = random.Random(1)
    for _ in range(300):
        many = chance.choice((2, 3))
        kinds = [chance.randrange(many) for _ in range(chance.randrange(4, 40))]
        if many == 3 and chance.random() < 0.5:  # as some models have them
            kinds = [int(kind) for kind in chance.randrange(1, 12) * TURNS]
        worth = [chance.randrange(-9, 10) for _ in LAYERS]
        every: dict = {}
        for layer in range(len(kinds)):
            below, above = kinds[:layer], kinds[layer + 1 :]
            counts = [
                part.count(kind) for part in (below, above) for kind in range(KINDS_OF_LAYERS)
            ]
            place = place_of(kinds, layer, counts[:KINDS_OF_LAYERS], tally(kinds))
            every.setdefault(place, []).append(counts)
        told = places(kinds)
        if kinds == [int(kind) for kind in len(kinds) // 4 * TURNS]:
            assert sum(map(len, told.values())) < 20
        assert set(told) == {*every, OUTSIDE}
        for place, found in every.items():
            highest = max(sum(map(operator.mul, worth, one)) for one in found)
            assert highest == max(sum(map(operator.mul, worth, one)) for one in told[place])
