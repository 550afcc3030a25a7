"""Names as people type them, and figures that are rounded further than the gap that they show."""

import sys

import pytest

from memlab import Model, Recipe, Run
from memlab.base.messages import languages
from memlab.base.suggestion import spelled
from memlab.cli import main
from memlab.explain.explanation import explain
from memlab.recipe import recipes
from memlab.terms.optimizer import OPTIMIZERS


@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
def test_an_optimizer_is_known_however_it_is_spelled(name, capsys):
    answers = set()
    for word in (name, name.replace("_", "-"), name.upper()):
        assert main(["estimate", "gpt2", "--optimizer", word]) == 0
        answers.add(capsys.readouterr().out)
    assert len(answers) == 1


def test_the_names_that_recipes_print_are_optimizers_where_they_name_one():
    for name in recipes():
        recipe = Recipe.named(name)
        if name.replace("-", "_") in OPTIMIZERS:
            assert recipe.optimizer == name, "one spelling of one thing"
        assert Recipe.named(name.upper().replace("_", "-")) == recipe


def test_an_unknown_name_is_told_what_is_near(capsys):
    with pytest.raises(ValueError, match="unknown recipe 'fp23'; did you mean fp32"):
        Recipe.named("fp23")
    with pytest.raises(ValueError, match=r"unknown thing 'zzz'; known: one, two, or more"):
        spelled("thing", "zzz", ["one", "two"], ", or more")
    assert main(["estimate", "gpt2", "--optimizer", "adamw_tor"]) == 2
    said = capsys.readouterr().err
    assert "unknown optimizer 'adamw_tor'; did you mean adamw" in said and "galore/<rank>" in said
    assert main(["estimate", "gpt2", "--optimizer", "GaLore/128"]) == 0


@pytest.mark.parametrize(
    "seen, hidden",
    [("40GB", True), ("37.3GiB", False), (40 * 10**9, False)],
    ids=["to a GB", "to a tenth", "to the byte"],
)
def test_a_gap_inside_the_rounding_is_said_before_its_causes(seen, hidden):
    run = Run(tokens=2048, checkpoint="block")
    found = explain(Model.preset("qwen3-4b"), "bf16", run, seen=seen)
    assert bool(found.inside) is hidden is (2 * abs(found.gap) <= found.rounding)
    lines = str(found).splitlines()
    if hidden:
        assert lines[3].startswith("The figure that was seen is rounded to 953.7 MiB")
        assert found.as_dict()["notes"][0] == lines[3]


def test_an_unknown_card_is_refused_before_anything_is_traced(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # importing it would raise
    assert main(["trace", "gpt2", "--tokens", "128", "--fits", "H1000"]) == 2
    assert "unknown device 'H1000'; did you mean H100" in capsys.readouterr().err


def test_help_names_the_variable_of_the_language(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    assert f"MEMLAB_LANG={' or '.join(languages()[1:])}" in capsys.readouterr().out
