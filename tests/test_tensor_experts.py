"""Mixtures of experts on ranks that divide each matrix: what is derived, against real ranks."""

from functools import partial

import pytest
from depth import few
from test_expert_steps import CONFIGS

from memlab import Model, Recipe, Run, Sharding, estimate
from memlab.cli import main
from memlab.lab import tensor_steps
from memlab.lab.ranks import fake_group, in_turn, on_ranks
from memlab.lab.two_steps import each
from memlab.sharding.expert_parallel import ROUTINGS
from memlab.step import simulate

QWEN = Model.preset("qwen3-30b-a3b")
WIDE = {"moe_intermediate_size": 32}
OTHER_WIDE = {"mixtral": {"intermediate_size": 32}}
EVEN = {"vocab_size": 600}


def question(family, recipe="fp32", ranks=2, *, config=None, plan="transformers", **said):
    run = {"batch": 2, "tokens": 16} | said
    sizes = CONFIGS[family] | OTHER_WIDE.get(family, WIDE) | (config or {})
    model = Model.from_config({"model_type": family} | sizes)
    return model, recipe, Run.cpu(**run, devices=Sharding.of(tensor=ranks, plan=plan))


REAL = few(
    2,
    (
        question("qwen3_moe"),
        question("mixtral", "bf16", micro_batches=2, config=EVEN),
        question("qwen2_moe", checkpoint="block"),  # whose plan leaves the shared expert whole
        question("glm4_moe", "bf16", config={"use_qk_norm": True}),
    ),
)
# On rank 0 of two or four that this process makes believe are there.
PRETENDED = (
    question("qwen3_moe", "bf16", micro_batches=2, config=EVEN),
    question("qwen3_moe", checkpoint="block", config={"tie_word_embeddings": True}),
    question("qwen3_moe", config={"mlp_only_layers": [1], "num_hidden_layers": 3}, batch=1),
    question("qwen3_moe", batch=1, tokens=101, config={"tie_word_embeddings": True}),  # T = V
    question("mixtral", tokens=5),
    question("qwen2_moe", "bf16"),
    question("glm4_moe", config={"first_k_dense_replace": 0}),
    question("mixtral", ranks=4, config={"num_key_value_heads": 4}, tokens=24),
    question("glm4_moe", ranks=4, config={"num_key_value_heads": 4, "num_hidden_layers": 3}),
)


@pytest.fixture(scope="module")
def found():
    """Of each rank the steps with each routing."""
    calls = [
        (partial(each, partial(tensor_steps.steps, routing=routing)), REAL) for routing in ROUTINGS
    ]
    return on_ranks(2, in_turn, *calls)


def compare(asked, measured):
    derived = simulate(*asked)
    assert measured["peak"] == derived.peak.bytes
    assert measured["first_peak"] == derived.peak.first_step_bytes
    for moment, held in derived.held.items():
        assert measured[moment] == held, moment
    for term in ("weights", "gradients", "optimizer"):
        assert measured["contents"].get(term, 0) == derived.peak.contents.get(term, 0), term


@pytest.mark.parametrize("routing", ROUTINGS)
@pytest.mark.parametrize("number", range(len(REAL)), ids=str)
def test_two_real_ranks_hold_what_is_derived_wherever_tokens_go(number, routing, found):
    first, second = (ranks[ROUTINGS.index(routing)][number] for ranks in found)
    compare(REAL[number], first)
    uneven = REAL[number][0].vocab % 2  # the last rank has fewer words then
    assert second["peak"] < first["peak"] if uneven else second["peak"] == first["peak"]


@pytest.mark.sample(5)
@pytest.mark.parametrize("number", range(len(PRETENDED)), ids=str)
def test_rank_0_of_several_holds_what_is_derived(number):
    asked = PRETENDED[number]
    with fake_group(asked[2].devices.tensor):
        compare(asked, tensor_steps.steps(*asked))


@pytest.mark.parametrize("family", ["qwen3_moe", "glm4_moe"])
def test_layers_that_are_counted_are_like_those_that_are_simulated(family):
    asked = question(family, config={"num_hidden_layers": 9})
    short, whole = simulate(*asked), simulate(*asked, every_layer=True)
    assert short.log.repeats and not whole.log.repeats
    assert short.peak == whole.peak
    assert short.held_contents == whole.held_contents


def test_what_stays_is_a_slice_of_each_expert_and_the_whole_router():
    """Of qwen3-30b-a3b on 4 ranks; rows that the experts read are not divided."""
    devices = Sharding.of(tensor=4, plan="transformers")
    whole, cut = ({t.name: t for t in s.tensors(QWEN)} for s in (Sharding(), devices))
    for name, tensor in whole.items():
        part = 4 if ".experts_" in name else 1
        if "feed_forward." in name:
            assert tensor.numel == part * cut[name].numel, name
    assert cut["layers.feed_forward.experts_up"].shape == (128, 2 * 768 // 4, 2048)
    assert cut["layers.feed_forward.experts_down"].shape == (128, 2048, 768 // 4)
    step = simulate(QWEN, "bf16", Run(tokens=4096, devices=devices))
    resident = estimate(QWEN, "bf16", Run(devices=devices))
    assert step.rows["weights"] == resident["weights"].derived
    assert step.rows["optimizer"] == resident["optimizer"].derived


def test_the_shell_answers_with_transformers_plan_alone(capsys):
    words = "estimate qwen3-30b-a3b --precision bf16 --tokens 1024 --tensor 4".split()
    assert main([*words, "--plan", "transformers"]) == 0
    said = capsys.readouterr().out
    run = Run(tokens=1024, devices=Sharding.of(tensor=4, plan="transformers"))
    assert str(estimate(QWEN, "bf16", run)) in said
    assert main(words) == 2
    assert "--tensor-parallel 4: the experts of a mixture are cut by --plan transformers alone" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("family", "said", "message"),
    [
        ("qwen3_moe", {"plan": "torch"}, "the experts of a mixture are cut by plan='transformers'"),
        (
            "qwen3_moe",
            {"recipe": "bf16", "config": {"moe_intermediate_size": 24}},
            "M=12 in bf16: torch multiplies experts in groups",
        ),
        ("qwen3_moe", {"recipe": Recipe(optimizer="sgd")}, "sgd is not described beside tensor"),
        ("qwen3_moe", {"config": {"output_router_logits": True}}, "output_router_logits=True is"),
        ("olmoe", {}, "transformers 'olmoe' is not described beside tensor parallelism"),
    ],
    ids=str,
)
def test_what_is_not_described_is_refused_by_name(family, said, message):
    with pytest.raises(ValueError, match=message):
        estimate(*question(family, **said))


def test_what_stays_is_refused_by_name_too():
    for family, config, message in (
        ("qwen3_moe", {"moe_intermediate_size": 33}, r"not divide M=33 \(an expert's width\)"),
        ("glm4_moe", {"n_shared_experts": 1, "moe_intermediate_size": 33}, "not divide M=33"),
        ("olmoe", {}, "transformers' plan for olmoe with tensor=2 is not described; known: glm"),
    ):
        model, recipe, run = question(family, config=config)
        with pytest.raises(ValueError, match=message):
            estimate(model, recipe, Run(devices=run.devices))
    shared = question("qwen2_moe", config={"shared_expert_intermediate_size": 33})
    assert estimate(shared[0], "fp32", Run(devices=shared[2].devices)).total()  # it stays whole
