"""A pasted config of a multimodal model: the page answers about its text, as the package does."""

import json

import pytest
from test_calculator import agree, folder, lookup  # noqa: F401  fixtures
from test_text_part import GEMMA, TEXT, WHOLES, small

from memlab.cli import main
from memlab.estimate import estimate
from memlab.families import has_config
from memlab.lab.text_part import text_part
from memlab.page import words
from memlab.page.answer import answered
from memlab.page.controls import checked
from memlab.page.question import recipe_of, run_of

SIZES = {"tokens": 96, "batch": 2}


def pasted(family):
    """What a config.json of the type says, with enough of its text: some turns of its layers."""
    made = json.loads(json.dumps(small(family)))
    made["text_config"]["num_hidden_layers"] = 12
    return made


def asked(family, **more):
    return {"model": "config", "config": pasted(family)} | SIZES | more


@pytest.mark.sample(7)
@pytest.mark.parametrize("family", WHOLES)
@pytest.mark.parametrize("precision", ["bf16", "autocast"])
def test_it_is_answered_by_its_text_as_the_package_answers(tmp_path, lookup, family, precision):  # noqa: F811
    path = tmp_path / "config.json"
    path.write_text(json.dumps(pasted(family)), encoding="utf-8")
    model, state = text_part(path), checked(asked(family, precision=precision))
    assert model is not None and has_config(model.family)
    found = answered(asked(family, precision=precision), lookup)
    recipe, run = recipe_of(state), run_of(state)
    assert found["parameters"] == model.parameter_count
    assert found["peak"] and found["total"] == estimate(model, recipe, run).total()
    assert words.BUT_TEXT.format(family=family) in [str(each) for each in found["leaves_out"]]


def test_the_pages_engine_answers_the_same(lookup, folder):  # noqa: F811
    states = [asked(family) for family in WHOLES] + [asked("llama4", use="serve")]
    states += [{"model": "config", "config": GEMMA, "tokens": 512}]
    agree(folder, lookup, states)


def test_what_it_shows_asks_the_package_the_same(tmp_path, monkeypatch, capsys, lookup):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(pasted("llama4")), encoding="utf-8")
    found = answered(asked("llama4"), lookup)
    assert main([*found["command"].split()[1:], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["peak"]["bytes"] == found["total"]
    known: dict = {}
    exec(found["script"].replace("print(", "found = ("), known)
    assert known["found"].total() == found["total"]


def test_a_text_that_says_little_has_the_sizes_of_its_class(lookup):  # noqa: F811
    """gemma-3-4b's config leaves the number of its heads to its class."""
    found = answered({"model": "config", "config": GEMMA, "tokens": 512}, lookup)
    assert found["peak"] and found["parameters"] == TEXT
    assert "without its vision tower, fits H100 80GB" in found["verdict"]
