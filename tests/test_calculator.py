"""The page's calculator answers as the command line does, in CPython and in the page's engine.

Node runs the engine with the files that the page gives it. Without either the tests of the engine
are skipped, or fail where MEMLAB_REQUIRE names node (conftest.py).
"""

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from calculator_states import HOSTILE, MARKUP, states

from memlab.changes import CHANGES as ALL_CHANGES
from memlab.changes import cheapest_change
from memlab.devices import devices
from memlab.estimate import estimate
from memlab.fit import SPARE as HABIT
from memlab.model import Model
from memlab.moments import hills
from memlab.page.answer import CHANGES, SPARE, answer, answered, model_of
from memlab.page.files import files
from memlab.page.moments import reader
from memlab.page.request import PRECISIONS, checked, recipe_of
from memlab.step import simulate

ROOT = Path(__file__).parent.parent
HERE = Path(__file__).parent / "calculator"
ENGINE = ROOT / "node_modules" / "@micropython" / "micropython-webassembly-pyscript"
MANY = 2000


def test_the_kept_moments_are_those_of_the_steps_as_they_are(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import peaks

    # Before a fixture makes them again.
    assert (peaks.TARGET / "key").read_text().strip() == peaks.key(), "run python tools/peaks.py"


@pytest.fixture(scope="module")
def folder():
    """The moments, as the repository keeps them; making them again takes minutes."""
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import peaks

        return peaks.build()
    finally:
        sys.path.remove(str(ROOT / "tools"))


@pytest.fixture(scope="module")
def lookup(folder):
    return reader(folder)


def there(folder, states, texts=()):
    """What the page's engine answers."""
    if shutil.which("node") is None:
        pytest.skip("no node")
    if not (ENGINE / "micropython.mjs").exists():
        pytest.skip("no node package with MicroPython: npm ci installs it")
    asked = {"states": states, "files": files(), "moments": str(folder), "texts": list(texts)}
    done = subprocess.run(
        ["node", str(HERE / "run.mjs")],
        input=json.dumps(asked),
        capture_output=True,
        encoding="utf8",
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def here(states, lookup):
    return [json.loads(answer(json.dumps(state), lookup)) for state in states]


def test_the_engines_agree(folder, lookup):
    asked = states(MANY)
    ours, theirs = here(asked, lookup), there(folder, asked)["answers"]
    apart = [(s, a, b) for s, a, b in zip(asked, ours, theirs, strict=True) if a != b]
    assert not apart, f"{len(apart)} of {MANY}, the first as (state, here, there): {apart[0]}"
    peaks = sum(found.get("peak", False) for found in ours)
    assert peaks > MANY // 4 and sum("error" in found for found in ours) > 20
    assert sum(bool(found.get("changes")) for found in ours) > 20


def described(count, lookup, seed):
    """Random states whose peak the page gives for AdamW with all in one format, and the answers."""
    found = []
    for state in states(20 * count, seed):
        state |= {"optimizer": "adamw"}
        if state.get("precision") == "zero":
            continue
        try:
            made = answered(state, lookup)
        except (ValueError, TypeError):
            continue
        if made["peak"] and checked(state)["data"] == 1:
            found.append((checked(state), made))
        if len(found) == count:
            return found
    raise AssertionError("too few states are described")


def simulated(state, **more):
    model = model_of(state)
    return simulate(
        model,
        PRECISIONS[state["precision"]][1],
        batch=state["batch"],
        tokens=state["tokens"],
        attention=state["attention"],
        checkpoint=state["checkpoint"],
        loss=state["loss"],
        backend="cuda",
        optimizer_impl=state["loop"],
        micro_batches=state["passes"],
        extra=state.get("config"),
        **more,
    )


def test_the_peak_is_that_of_the_simulated_step(lookup):
    for state, found in described(120, lookup, seed=1):
        step = simulated(state)
        assert found["total"] == step.peak.bytes == sum(row["bytes"] for row in found["rows"])
        tops = {name: ledger.total() for name, ledger in hills(step).items()}
        assert max(size for _, size, _ in found["hills"]) == max(tops.values())
        assert tops[found["moment"]] == found["total"], state


def test_without_a_peak_the_rows_are_those_of_the_estimate(lookup):
    seen = 0
    for state in states(400, seed=2):
        try:
            found = answered(state, lookup)
        except (ValueError, TypeError):
            continue
        whole = checked(state)
        if found["peak"] or whole["tensor"] * whole["pipeline"] * whole["data"] > 1:
            continue
        ledger = estimate(model_of(whole), recipe_of(whole))
        rows = {row["term"]: row["bytes"] for row in found["rows"]}
        assert rows == {row.term: row.derived for row in ledger.rows}
        seen += 1
    assert seen > 20


def test_the_changes_are_those_of_the_package():
    known = {change.name: change for change in ALL_CHANGES}
    for name, _, cost in CHANGES:
        assert known[name].cost == cost
    assert [name for name in known if name in dict.fromkeys(c[0] for c in CHANGES)] == [
        name for name, _, _ in CHANGES
    ]
    assert SPARE == HABIT


def test_the_cheapest_change_is_that_of_the_package(lookup):
    chance, seen, refused = random.Random(3), 0, 0
    cards = [each for each in devices() if each.marketed <= 48]
    for state, _ in described(60, lookup, seed=4):
        if state["model"] == "config" and state["tokens"] * state["batch"] < 512:
            continue
        state["card"] = chance.choice(cards).name
        found = answered(state, lookup)
        if found["fits"]:
            continue
        refused += not found["changes"]
        if not found["changes"] and refused > 2:
            continue  # the package tries for long before it gives up
        choices = {"attention": state["attention"], "checkpoint": state["checkpoint"]}
        choices |= {"loss": state["loss"], "optimizer_impl": state["loop"]}
        choices |= {"micro_batches": state["passes"], "extra": state.get("config")}
        sizes = {"batch": state["batch"], "tokens": state["tokens"]}
        recipe = PRECISIONS[state["precision"]][1]
        try:
            wanted = cheapest_change(model_of(state), recipe, on=state["card"], **sizes, **choices)
        except ValueError:
            assert found["changes"] == [] and found["never"]
            continue
        names = [name for name, _, _ in wanted]
        if "a step inside backward" in names or any("LoRA" in name for name in names):
            continue  # the page has no control for these two
        assert [name for name, _, _ in found["changes"]] == names, state
        seen += 1
        if seen == 4:
            break
    assert seen == 4


@pytest.mark.parametrize("state", HOSTILE, ids=lambda state: str(state)[:60])
def test_a_hostile_state_is_answered_by_one_line(lookup, state):
    found = json.loads(answer(json.dumps(state), lookup))
    assert list(found) == ["error"]
    assert "\n" not in found["error"] and 0 < len(found["error"]) < 300


def test_the_engine_refuses_in_the_same_words(folder, lookup):
    assert there(folder, HOSTILE)["answers"] == here(HOSTILE, lookup)


def test_a_pasted_text_is_read_as_data(folder):
    good = json.dumps(
        {"model_type": "llama", "hidden_size": 64, "rope_scaling": {"type": "linear"}}
    )
    texts = [
        good,
        "",
        "{",
        "[1]",
        "null",
        '{"a": NaN}',
        '{"a": 1e999}',
        MARKUP,
        "[" * 100_000,
        '{"a":' * 100 + "1" + "}" * 100,
        "x" * 10_000_000,
        '{"__proto__": {"polluted": 1}, "model_type": "llama"}',
        '{"hidden_size": 123456789012345678901234567890}',
    ]
    found = there(folder, [], texts)["configs"]
    assert found[0]["config"] == json.loads(good)
    for text, made in zip(texts[1:11], found[1:11], strict=True):
        assert set(made) == {"error"} and len(made["error"]) < 120, text[:40]
    assert found[11]["config"] == {"model_type": "llama"}
    assert found[12]["config"]["hidden_size"] > 10**9  # Python refuses it by name


def test_a_preset_is_the_preset(lookup):
    for name in ("llama-3-8b", "qwen3-0.6b", "gpt2"):
        found = answered({"model": name, "tokens": 512, "batch": 2}, lookup)
        assert found["parameters"] == Model.preset(name).parameter_count
