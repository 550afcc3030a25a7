"""Recipes: the bytes per parameter in circulation, reproduced, and what a recipe refuses."""

import pytest

from memlab.recipe import Recipe, recipes

# The figures that people quote; who quotes each stands in memlab/recipe/recipe_table.py.
QUOTED = {
    "bf16": 8,
    "scaling-book": 10,
    "maxtext": 12,
    "fp32": 16,
    "autocast": 16,
    "zero": 16,
    "megatron": 18,
    "playbook": 20,
}


@pytest.mark.parametrize(("name", "figure"), QUOTED.items())
def test_named_recipes_give_the_figure_in_circulation(name, figure):
    assert sum(Recipe.named(name).bytes_per_parameter().values()) == figure


def test_every_named_recipe_says_what_it_hides_and_who_says_so():
    for name in recipes():
        recipe = Recipe.named(name)
        assert len(recipe.hides) > 10 and len(recipe.source) > 10, name


def test_the_same_total_can_be_two_different_sums():
    fp32, zero = Recipe.named("fp32"), Recipe.named("zero")
    assert fp32.bytes_per_parameter() == {"weights": 4, "gradients": 4, "optimizer": 8}
    assert zero.bytes_per_parameter() == {
        "weights": 2,
        "master": 4,
        "gradients": 2,
        "optimizer": 8,
    }


def test_states_follow_the_copy_that_is_updated():
    assert Recipe(weights="bf16").state_bytes((10,)) == 2 * 10 * 2 + 4
    assert Recipe(weights="bf16", master="fp32").state_bytes((10,)) == 2 * 10 * 4 + 4


def test_block_formats_count_their_scales():
    muon8 = Recipe(optimizer="muon", states=("int8/128",))
    assert muon8.bytes_per_parameter()["optimizer"] == 1.03125
    assert Recipe.named("adamw8bit").bytes_per_parameter()["optimizer"] == 2.03125


def test_a_recipe_prints_its_sum():
    assert str(Recipe.named("zero")) == (
        "zero: weights 2 + master 4 + gradients 2 + optimizer 8 = 16 B per parameter"
    )
    assert str(Recipe.named("autocast")).endswith("= 16 B per parameter (+2 while autocast)")


def test_a_changed_recipe_says_that_it_is_changed():
    assert Recipe.named("fp32").replace(tie=True).name == "fp32*"
    assert Recipe.named("fp32").replace(tie=True, name="tied").name == "tied"


@pytest.mark.parametrize(
    ("fields", "error", "words"),
    [
        ({"weights": "fp31"}, ValueError, "weights: .*fp31.*known.*fp32"),
        ({"states": ("fp32", "fp99")}, ValueError, "states: .*fp99"),
        ({"states": ("fp32",)}, ValueError, "1 state formats for adamw, which keeps 2"),
        ({"optimizer": "adam"}, ValueError, "unknown optimizer 'adam'; known: adafactor"),
        ({"tie": "yes"}, TypeError, "tie='yes'"),
    ],
)
def test_wrong_input_fails_by_name(fields, error, words):
    with pytest.raises(error, match=words):
        Recipe(**fields)


def test_an_unknown_name_lists_the_known():
    with pytest.raises(ValueError, match="unknown recipe 'adam'; did you mean .* known: fp32"):
        Recipe.named("adam")
