"""The estimate: hand-computed cases, published totals, and what changes it."""

import pytest

from memlab.estimate import by_component, estimate
from memlab.model import Model, presets
from memlab.recipe import Recipe, recipes
from memlab.run import Run
from memlab.step import simulate

TINY = Model.preset("tiny-llama")


def test_fp32_adamw_is_sixteen_bytes_a_parameter_and_four_a_tensor():
    for name in ("gpt2", "qwen3-0.6b", "llama-3-8b"):
        model = Model.preset(name)
        tensors = sum(tensor.copies for tensor in model.tensors())
        assert estimate(model, "fp32").total() == 16 * model.parameter_count + 4 * tensors


def test_qwen3_by_hand():
    # L28 D1024 F3072 N16 K8 H128 V151936, tied; each layer has 4 norms, the network one more.
    layer = 2 * 1024 * 128 * (16 + 8) + 3 * 1024 * 3072 + 2 * 1024 + 2 * 128
    parameters = 151936 * 1024 + 28 * layer + 1024
    assert parameters == 596_049_920
    ledger = estimate(Model.preset("qwen3-0.6b"), "fp32")
    assert ledger["weights"].derived == ledger["gradients"].derived == 4 * parameters
    assert ledger["optimizer"].derived == 8 * parameters + 4 * (28 * 11 + 2)


@pytest.mark.parametrize("recipe", recipes())
def test_every_preset_is_near_its_bytes_per_parameter(recipe):
    chosen = Recipe.named(recipe)
    copies = chosen.bytes_per_parameter()
    quoted = sum(copies.values())
    for name in presets():
        model = Model.preset(name)
        per = estimate(model, chosen).total() / model.parameter_count
        if chosen.optimizer == "muon":  # embeddings and vectors pay AdamW's two states
            assert quoted <= per <= quoted + (7 if model.experts else 4)  # and stacked experts, too
        elif "adafactor" in chosen.optimizer:  # a row and a column: less where matrices are large
            rest = quoted - copies["optimizer"]
            assert rest < per < rest + 0.2
        elif "adamw" in chosen.optimizer and chosen.optimizer != "adamw":
            assert quoted <= per < quoted + 7  # small tensors are not quantized
        else:
            assert quoted <= per < quoted * 1.001


def test_terms_appear_only_where_a_recipe_has_them():
    assert list(estimate(TINY, "fp32")) == ["weights", "gradients", "optimizer"]
    assert list(estimate(TINY, "maxtext")) == ["weights", "optimizer"]
    assert list(estimate(TINY, "playbook")) == [
        "weights",
        "master",
        "gradients",
        "accumulator",
        "optimizer",
    ]


def test_tying_removes_the_head_from_every_term():
    untied = TINY.replace(tied=False)
    tied = estimate(untied, Recipe(tie=True))
    head = untied.vocab * untied.d_model
    saved = estimate(untied) - tied
    assert saved["weights"].derived == saved["gradients"].derived == 4 * head
    assert saved["optimizer"].derived == 8 * head + 4


def test_quantized_weights_leave_embeddings_and_norms_in_the_other_format():
    recipe = Recipe(weights="nf4", other="bf16", gradients=None, optimizer="sgd")
    linear = sum(t.count for t in TINY.tensors() if t.linear)
    rest = TINY.parameter_count - linear
    # every row of tiny-llama is a multiple of 32, and nf4 blocks run over the whole matrix
    assert estimate(TINY, recipe)["weights"].derived >= linear // 2 + 2 * rest
    assert estimate(TINY, recipe)["weights"].derived < linear * 0.6 + 2 * rest


def test_doubling_the_layers_doubles_what_layers_hold():
    one, two, three = (estimate(TINY.replace(layers=n)).total() for n in (1, 2, 3))
    assert three - two == two - one > 0


@pytest.mark.parametrize("term", ["weights", "gradients", "optimizer"])
def test_components_add_up_to_their_term(term):
    for name in presets():
        model = Model.preset(name)
        split = by_component(model, "adamw8bit", term=term)
        rate = 4 if term == "optimizer" else 0  # torchao's learning rate belongs to no component
        assert split.total() + rate == estimate(model, "adamw8bit")[term].derived
        assert set(split) == {t.component for t in model.tensors()}


def test_a_term_that_the_recipe_lacks_is_refused():
    with pytest.raises(ValueError, match="fp32 has no term 'master'; it has: weights, gradients"):
        by_component(TINY, "fp32", term="master")


def test_an_unknown_recipe_lists_the_known():
    with pytest.raises(ValueError, match="unknown recipe 'adamw'; did you mean .* known: fp32"):
        estimate(TINY, "adamw")


@pytest.mark.parametrize(
    ("family", "more"),
    [
        ("qwen2_moe", {"shared_ff": 64, "experts_per_token": 2}),
        ("llama4_text", {"shared_ff": 64, "experts_per_token": 1}),
    ],
)
def test_muon_leaves_routers_that_are_linear_layers_to_adamw(family, more):
    """What rests was 4 bytes too few for each of their weights; the step had them all."""
    sizes = {"layers": 3, "d_model": 64, "d_ff": 96, "heads": 4, "vocab": 128}
    model = Model(family=family, experts=4, expert_ff=64, **sizes, **more)
    recipe = Recipe(optimizer="muon")
    step = simulate(model, recipe, Run(tokens=16))
    assert estimate(model, recipe)["optimizer"].derived == step.rows["optimizer"]
