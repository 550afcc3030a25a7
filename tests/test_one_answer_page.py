"""The same question at the page, in both of its engines, and at the package: one answer."""

import json
import random
import shlex
from pathlib import Path

import calculator
import pytest
from calculator_states import states
from test_calculator import agree, folder, lookup  # noqa: F401  fixtures

from memlab import Run
from memlab.cli import main
from memlab.devices import devices
from memlab.estimate import estimate
from memlab.explain.changes import CHANGES
from memlab.explain.last_changes import EVERY, LAST, TORCHS
from memlab.fit import CannotFit, cheapest_change
from memlab.model import Model
from memlab.page import advice
from memlab.page.answer import answered, outcome
from memlab.page.answer_rows import SIGNS
from memlab.page.controls import CHOICES, OWN, PRECISIONS, checked
from memlab.page.question import model_of, run_of
from memlab.units import text
from memlab.verdict import DOES_NOT_FIT, FITS, TIGHT, room_for

QUESTIONS = 60
PACKAGE_ONLY = [change.name for change in (*EVERY, *LAST) if change not in CHANGES]


def questions():
    """Whole steps of one device with AdamW, which both doors answer: presets and configs."""
    chance = random.Random("one answer")
    models = [m for m in dict(_choices("model")) if Model.preset(m).family != "nanochat"]
    cards = sorted(devices(), key=lambda card: card.limit)[: len(devices()) // 2]
    found = []
    for given in states(100 * QUESTIONS, seed=11):
        said = {n: v for n, v in given.items() if n not in ("zero", "data", "tensor", "pipeline")}
        said |= {"optimizer": "adamw", "card": chance.choice(cards).name}
        if said.get("precision") == "zero" or said["batch"] * said["tokens"] > 20_000:
            continue
        if said.get("model") != "config":
            said |= {"model": chance.choice(models), "tokens": chance.choice((128, 512, 1000))}
        found.append(said)
    return found


def named(state):
    """The recipe that a state names; None: what the program takes by itself."""
    return None if state["precision"] == OWN else PRECISIONS[state["precision"]][1]


def _choices(name):
    return next(values for known, _, values in CHOICES if known == name)


@pytest.fixture(scope="module")
def asked(lookup):  # noqa: F811
    """(state, the page's answer in CPython) for the first questions that have a peak."""
    found: list = []
    families: dict = {}
    for state in questions():
        told = outcome(json.dumps(state), lookup, advise=False)
        family = state.get("config", {}).get("model_type", "") if told.get("peak") else None
        if family is not None and families.get(family, 0) < QUESTIONS // 5:
            families[family] = families.get(family, 0) + 1
            found.append((state, outcome(json.dumps(state), lookup)))
        if len(found) == QUESTIONS:
            return found
    raise AssertionError("too few questions have a peak")


def test_the_questions_are_of_many_kinds(asked):
    kinds = {model_of(checked(state)).family for state, _ in asked}
    assert {"gpt2", "opt", "llama", "qwen3"} <= kinds and len(kinds) >= 18
    assert sum(not told["fits"] for _, told in asked) >= 4
    assert any("attention" not in state for state, _ in asked)


def test_the_pages_engine_answers_the_same(asked, folder, lookup):  # noqa: F811
    agree(folder, lookup, [state for state, _ in asked])


def test_memlab_estimate_answers_the_same(asked):
    for state, told in asked:
        whole = checked(state)
        ledger = estimate(model_of(whole), named(whole), run_of(whole))
        assert ledger.total() == told["total"], state
        assert ledger.title.endswith(f": the peak, in {told['moment']}"), state
        assert told["heading"].endswith(f": the peak, in {told['moment']}")
        mine = {row["term"]: row["bytes"] for row in told["rows"]}
        theirs = {row.term: row.derived for row in ledger.rows}
        for name in ("weights", "gradients", "optimizer", "activations", "logits"):
            if name in mine:
                assert mine[name] == theirs.get(name, 0), (name, state)


def test_the_verdict_is_that_of_the_package(asked):
    for state, told in asked:
        room = room_for(run_of(checked(state)), state["card"])
        assert (room.at_most, room.name) == (told["limit"], told["card"])
        word = room.verdict(told["total"]).word
        assert told["fits"] == (word == FITS) and told["state"] == SIGNS[word]
        assert told["verdict"][0] == {FITS: "✓", TIGHT: "≈", DOES_NOT_FIT: "✗"}[word]


def test_the_cheapest_changes_are_those_of_the_package(asked):
    seen: list = []
    for state, told in asked:
        if told["fits"] or not told["changes"]:
            continue
        whole = checked(state)
        how = {"on": state["card"]}
        wanted = cheapest_change(model_of(whole), named(whole), run_of(whole), **how)
        under = {name for name, *_ in wanted} | {whole["precision"]}
        if under & set(PACKAGE_ONLY) or {TORCHS.name, "autocast"} <= under:
            continue  # which the page has no moments for
        told_here = [[name, cost, text(size)] for name, cost, size, _ in wanted]
        assert told["changes"] == told_here, state
        seen.append([name for name, *_ in told_here])
        if len(seen) >= 3 and any(TORCHS.name in names for names in seen):
            return
    raise AssertionError(f"too few are advised: {seen}")


def test_what_no_change_helps_is_refused_at_both(lookup):  # noqa: F811
    smallest = min(devices(), key=lambda card: card.limit).name
    state = {"model": "llama-3-70b", "tokens": 256, "card": smallest}
    assert "No change helps" in outcome(json.dumps(state), lookup)["advice"]
    with pytest.raises(CannotFit):  # nor do adapters and NF4, which the page has not
        cheapest_change(Model.preset("llama-3-70b"), "bf16", Run(tokens=256), on=smallest)


def test_only_changes_without_moments_are_left_out():
    known = {change.name for change in calculator.changes()}
    assert not known & set(PACKAGE_ONLY)


def test_no_module_of_the_page_is_long():
    modules = Path(advice.__file__).parent.glob("*.py")
    assert not {p.name for p in modules if len(p.read_text("utf-8").splitlines()) > 250}


def test_the_command_line_that_the_page_shows_answers_the_same(asked, tmp_path, capsys):
    for state, told in asked[::3]:
        words = shlex.split(told["command"])
        assert words[:2] == ["memlab", "estimate"]
        if "config" in state:
            config = tmp_path / "config.json"
            config.write_text(json.dumps(state["config"]))
            words[2] = str(config)
        assert main([*words[1:], "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["peak"]["bytes"] == told["total"], state


def test_the_lines_of_python_that_the_page_shows_answer_the_same(asked, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for state, told in asked[:24]:
        (tmp_path / "config.json").write_text(json.dumps(state.get("config", {})))
        lines = told["script"].replace("print(", "found = (")
        known: dict = {}
        exec(compile(lines, "script", "exec"), known)
        assert known["found"].total() == told["total"], state


def test_what_a_change_sets_is_what_it_promised(asked, lookup):  # noqa: F811
    """Its button leads where the line beside it says."""
    seen = 0
    for state, told in asked:
        for sets, (_, _, size) in zip(told["sets"], told["changes"], strict=True):
            assert answered(state | sets, lookup)["total_text"] == size, state
            seen += 1
    assert seen >= 5
