"""Mixtures of experts in a pipeline: what is derived, against real ranks that talk over gloo."""

from functools import partial

import pytest
from depth import few
from test_expert_steps import CONFIGS

from memlab import Model, Recipe, Run, Sharding, estimate
from memlab.cli import main
from memlab.lab import pipelined
from memlab.lab.ranks import in_turn, on_ranks
from memlab.lab.two_steps import each
from memlab.sharding.expert_parallel import ROUTINGS
from memlab.step.parallel.pipeline.step import stage_peaks, step_of_stage

INTERLEAVED = {"schedule": "interleaved1f1b", "stages_per_rank": 2}
ZERO_BUBBLE = {"schedule": "interleavedzerobubble"}
V_SHAPED = {"schedule": "zbvzerobubble", "stages_per_rank": 2}
QWEN = Model.preset("qwen3-30b-a3b")


def question(family, recipe="fp32", ranks=2, *, config=None, **said):
    names = ("schedule", "stages_per_rank", "return_outputs")
    devices = {name: said.pop(name) for name in names if name in said}
    run = {"batch": 2, "tokens": 16, "micro_batches": 3} | said
    four = {"num_hidden_layers": 4} | (config or {})
    model = Model.from_config({"model_type": family} | CONFIGS[family] | four)
    return model, recipe, Run.cpu(**run, devices=Sharding.of(pipeline=ranks, **devices))


# Layers without experts lie on one stage, or stand between the others of several.
SEVEN = {"num_hidden_layers": 7}
QUESTIONS = few(
    5,
    (
        question("qwen3_moe"),
        question("qwen3_moe", schedule="gpipe", config={"mlp_only_layers": [1, 2]} | SEVEN),
        question("qwen3_moe", **ZERO_BUBBLE, micro_batches=4),
        question("mixtral", "bf16", return_outputs=False, batch=1, tokens=9, attention="eager"),
        question("mixtral", "bf16", **V_SHAPED, micro_batches=4),
        question("olmoe", Recipe(optimizer="sgd"), schedule="gpipe", checkpoint="block"),
        question("qwen2_moe", **ZERO_BUBBLE, micro_batches=4, checkpoint="block"),
        question("gpt_oss", **INTERLEAVED, micro_batches=4, config=SEVEN),
        question("glm4_moe", **INTERLEAVED, micro_batches=4, config={"first_k_dense_replace": 2}),
        question("deepseek_v2", checkpoint="block"),
        question("deepseek_v3", "bf16", **ZERO_BUBBLE, micro_batches=4),
    ),
)


@pytest.fixture(scope="module")
def measured():
    """Of each rank the steps with each routing."""
    calls = [
        (partial(each, partial(pipelined.steps, routing=routing)), QUESTIONS)
        for routing in ROUTINGS
    ]
    return on_ranks(2, in_turn, *calls)


@pytest.mark.parametrize("routing", ROUTINGS)
@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("number", range(len(QUESTIONS)), ids=str)
def test_a_real_rank_holds_what_is_derived_wherever_tokens_go(number, rank, routing, measured):
    derived = step_of_stage(*QUESTIONS[number], rank)
    found = measured[rank][ROUTINGS.index(routing)][number]
    assert found["peak"] == derived.peak.bytes
    assert found["first_peak"] == derived.peak.first_step_bytes
    for moment in ("after_backward", "between_steps"):
        assert found[moment] == derived.held[moment], moment
    for term in ("weights", "optimizer", "inputs"):
        assert found["contents"].get(term, 0) == derived.peak.contents.get(term, 0), term


@pytest.mark.parametrize(
    ("family", "config", "how"),
    [
        ("qwen3_moe", {}, INTERLEAVED),
        ("glm4_moe", {"first_k_dense_replace": 3}, INTERLEAVED),  # of which stage 0 has most
        ("glm4_moe", {"first_k_dense_replace": 9}, {}),
        ("gpt_oss", {}, {}),
    ],
)
@pytest.mark.parametrize("rank", [0, 1])
def test_layers_that_are_counted_are_like_those_that_are_simulated(family, config, how, rank):
    asked = question(family, **how, config={"num_hidden_layers": 30} | config, micro_batches=2)
    short, whole = step_of_stage(*asked, rank), step_of_stage(*asked, rank, every_layer=True)
    assert short.log.repeats and not whole.log.repeats
    assert short.peak == whole.peak
    assert short.held_contents == whole.held_contents


@pytest.mark.parametrize(
    ("family", "config"),
    [
        ("qwen3_moe", {}),
        ("qwen3_moe", {"mlp_only_layers": [0, 3]}),
        ("qwen2_moe", {"decoder_sparse_step": 2}),
        ("glm4_moe", {"first_k_dense_replace": 2}),
        ("gpt_oss", {}),
    ],
)
def test_the_stages_have_all_parameters_between_them(family, config):
    model = question(family, config={"num_hidden_layers": 5} | config)[0]
    for ranks in (2, 3, 5):
        devices = Sharding(pipeline=ranks)
        stages = [devices.tensors(model, stage) for stage in range(ranks)]
        assert sum(t.count for stage in stages for t in stage) == model.parameter_count
    mixed = [
        sum(t.copies for t in s if "experts_up" in t.name and "bias" not in t.name) for s in stages
    ]
    assert mixed == [layer not in model.dense_layers for layer in range(5)]


def test_the_shell_answers_with_each_stage_of_a_mixture(capsys):
    words = "qwen3-30b-a3b --precision bf16 --pipeline 8 --micro-batches 8 --tokens 1024"
    run = Run(tokens=1024, micro_batches=8, devices=Sharding(pipeline=8))
    assert main(["estimate", *words.split(), "--schedule", "1f1b"]) == 0
    said = capsys.readouterr().out
    assert str(estimate(QWEN, "bf16", run)) in said
    for stage, peak in enumerate(stage_peaks(QWEN, "bf16", run)):
        assert f"peak of stage {stage}" in said and peak.bytes
    assert main(["estimate", "qwen3-30b-a3b", "--precision", "bf16", "--pipeline", "8"]) == 0


@pytest.mark.parametrize(
    ("family", "said", "message"),
    [
        ("qwen3_moe", {"config": {"output_router_logits": True}}, "output_router_logits=True is"),
        (
            "qwen2_moe",
            {"config": {"use_sliding_window": True, "sliding_window": 8}},
            "layers of two kinds, with a window and without",
        ),
        (
            "qwen3_moe",
            {"config": {"mlp_only_layers": [1]}, "micro_batches": 1282, "ranks": 2},
            "micro_batches=1,282: 2,564 with the stages",
        ),
        (
            "qwen3_moe",
            {"config": {"num_hidden_layers": 22, "mlp_only_layers": [3]}, "micro_batches": 250},
            r"micro_batches=250 with dense_layers=\(3,\): times L=22 layers .* more than 5,120",
        ),
        ("qwen3_moe", {"config": {"hidden_size": 38}}, "D=38 in fp32: torch multiplies experts"),
    ],
    ids=str,
)
def test_what_is_not_described_is_refused_by_name(family, said, message):
    with pytest.raises(ValueError, match=message):
        estimate(*question(family, **said))


def test_families_that_are_not_described_are_refused_by_name():
    scout = Model.preset("llama-4-scout")
    run = Run(tokens=8, micro_batches=2, devices=Sharding(pipeline=2))
    with pytest.raises(ValueError, match="transformers 'llama4_text' is not described beside a pi"):
        estimate(scout, "bf16", run)


def test_an_unknown_routing_fails_by_name():
    with pytest.raises(RuntimeError, match="routing='odd'; known: even, fullest"):
        on_ranks(2, partial(pipelined.steps, routing="odd"), *question("mixtral"))
