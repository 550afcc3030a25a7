"""Of types that memlab does not describe the page says what `memlab estimate CONFIG` says.

The tables of their tensors (tools/type_tables.py) need neither torch nor transformers; here both
are asked, in the page's engine and in CPython, and every byte is compared.
"""

import gzip
import json
import shutil
import subprocess
from pathlib import Path

import causal_types
import peaks
import pytest
import type_samples
import type_tables
from calculator_states import TYPED

from memlab import Run
from memlab.base.message import parts
from memlab.cli import main
from memlab.families import config_types, has_config
from memlab.lab.causal import Causal
from memlab.lab.causal_cache import cache
from memlab.page.answer import outcome
from memlab.page.controls import checked
from memlab.page.files import files, later
from memlab.page.pasted import flat
from memlab.page.peak_files import TYPES, reader
from memlab.page.sums import LETTERS
from memlab.page.types import TypedModel

pytest.importorskip("transformers")
ROOT = Path(__file__).parent.parent
FILE = ROOT / "book" / "calculator" / "types.json"
TABLES = json.loads(FILE.read_text(encoding="utf-8"))
ENGINE = ROOT / "node_modules" / "@micropython" / "micropython-webassembly-pyscript"
COVERED = sorted(TABLES["types"])
LEAST = 60  # types of those that memlab does not describe; the accuracy page says how many
LARGEST = 100_000


def config_of(family):
    """A small config of a type, of what JSON has."""
    made = causal_types.small(family)
    made = {key: value for key, value in made.items() if "Infinity" not in json.dumps(value)}
    lists = [key for key, rule, _ in TABLES["types"][family]["lists"] if rule is None]
    if lists:
        text, told = Causal(made).text, type_samples.flat(made)
        told |= {key: getattr(text, key.split(".")[-1]) for key in lists}
        made = type_samples.whole(told)
    return json.loads(json.dumps(made))  # whose names of a dict's numbers are text, as in a file


def state_of(family, at):
    """What the page is asked about a type: formats and optimizers in turn."""
    precision = ("bf16", "fp32", "autocast", "zero")[at % 4]
    optimizer = ("adamw", "adamw8bit", "lion", "adafactor", "sgd", "momentum", "adamw_fp8")[at % 7]
    state = {"model": "config", "config": config_of(family), "tokens": 100, "batch": 2}
    return state | {"precision": precision, "optimizer": optimizer}


STATES = [state_of(family, at) for at, family in enumerate(COVERED)]


@pytest.fixture(scope="module")
def lookup():
    return reader(peaks.TARGET)


@pytest.fixture(scope="module")
def here(lookup):
    return [outcome(json.dumps(state), lookup) for state in [*STATES, *TYPED]]


def test_every_type_is_told_or_refused_by_name():
    described = set(config_types())
    assert set(TABLES["types"]) | set(TABLES["refused"]) == set(type_tables.names()) - described
    assert set(TABLES["unbuilt"]) <= set(TABLES["refused"])
    assert not set(TABLES["types"]) & set(TABLES["refused"])
    assert len(TABLES["types"]) >= LEAST and all(TABLES["refused"].values())


def test_the_tables_are_light():
    assert len(gzip.compress(FILE.read_bytes(), 9)) < LARGEST


def test_the_engines_agree(here):
    if shutil.which("node") is None:
        pytest.skip("no node")
    if not (ENGINE / "micropython.mjs").exists():
        pytest.skip("no node package with MicroPython: npm ci installs it")
    asked = {
        "states": [*STATES, *TYPED],
        "advised": list(range(len(here))),
        "files": files(),
        "later": later(),
        "moments": str(peaks.TARGET),
    }
    done = subprocess.run(
        ["node", str(ROOT / "tests" / "calculator" / "run.mjs")],
        input=json.dumps(asked),
        capture_output=True,
        encoding="utf8",
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    there = json.loads(done.stdout)["answers"]
    apart = [
        (s, a, b) for s, a, b in zip(asked["states"], here, there, strict=True) if parts(a) != b
    ]
    assert not apart, f"{len(apart)}, the first as (state, here, there): {apart[0]}"


def test_each_type_has_the_bytes_of_the_command_line(here, tmp_path, capsys):
    path = tmp_path / "config.json"
    for state, found in zip(STATES, here, strict=False):
        family = state["config"]["model_type"]
        assert "error" not in found, (family, found)
        of_text = has_config(state["config"].get("text_config", {}).get("model_type"))
        assert of_text or (not found["peak"] and "memlab trace CONFIG" in found["why"])
        path.write_text(json.dumps(state["config"]), encoding="utf-8")
        recipe = ["--recipe", state["precision"], "--optimizer", state["optimizer"]]
        assert main(["estimate", str(path), "--json", *recipe]) == 0
        told = json.loads(capsys.readouterr().out)
        assert found["parameters"] == told["parameters"], family
        if found["peak"]:  # a step of the text that it wraps: test_pasted_whole
            continue
        rows = {row["term"]: row["bytes"] for row in found["rows"]}
        assert rows == {term: size for term, size in told["rows"].items() if size is not None}


def test_each_cache_is_that_of_the_package(lookup):
    seen = 0
    for state in STATES:
        model = TypedModel(flat(state["config"]), lookup)
        if held := model.cache(Run(batch=2, tokens=100)):
            assert held == cache(Causal(state["config"]), 2, 100), model.family
            seen += 1
    assert seen == sum(bool(each["cache"]) for each in TABLES["types"].values()) > LEAST // 2


NEAR = {
    family: dims[1]
    for family, table in TABLES["types"].items()
    for kind, _, dims, _ in table["cache"]
    if kind == "near"
}


@pytest.mark.parametrize("family", sorted(NEAR))
def test_a_window_may_be_as_narrow_as_any(lookup, family):
    """A type's table was fitted to models of wider windows: one of gemma3's above 2,048."""
    key = TABLES["types"][family]["keys"][LETTERS.index(NEAR[family])][0]
    for window in (1, 2, 99, 2048):
        config = type_samples.whole(type_samples.flat(config_of(family)) | {key: window})
        held = TypedModel(flat(config), lookup).cache(Run(batch=2, tokens=100))
        assert held == cache(Causal(config), 2, 100), window


REFUSED = {
    "no table of the tensors": {"model_type": min(TABLES["refused"])},
    "quantization_config=": {"model_type": "phi", "quantization_config": {"bits": 4}},
    "10,000": {"model_type": "phi", "num_hidden_layers": 10_001},
    "vocab_size=“-1”": {"model_type": "phi", "vocab_size": -1},
}


@pytest.mark.parametrize("words", sorted(REFUSED))
def test_what_a_table_does_not_tell_is_refused_by_name(lookup, words):
    state = {"model": "config", "config": REFUSED[words]}
    assert words in outcome(json.dumps(state), lookup)["error"]


def test_a_described_model_of_too_many_layers_is_refused_at_once(lookup):
    config = {"model_type": "llama", "num_hidden_layers": 10_001}
    with pytest.raises(ValueError, match="10,001 layers: this page supports up to 10,000"):
        checked({"model": "config", "config": config})


def test_a_key_that_the_type_does_not_have_is_named(lookup):
    config = config_of("phi") | {"depth": 3}
    found = outcome(json.dumps({"model": "config", "config": config}), lookup)
    assert "keys of your config that are not known for its family: “depth”" in found["leaves_out"]


def test_nothing_is_asked_of_the_tables_before_such_a_config_is_given():
    asked = []

    def lookup(name, kind):
        asked.append(name)
        return "?"

    needs = outcome(json.dumps({}), lookup)["needs"]
    assert needs != TYPES and TYPES not in asked
    state = {"model": "config", "config": config_of("phi")}
    assert outcome(json.dumps(state), lookup) == {"needs": TYPES}
