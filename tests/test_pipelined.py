"""The step that is derived for each rank of a pipeline, against real ranks that talk over gloo."""

import json
from types import SimpleNamespace

import compare
import pytest
from depth import few
from torch.distributed.pipelining.schedules import (
    ScheduleInterleavedZeroBubble,
    ScheduleZBVZeroBubble,
)

from memlab import Model, Recipe, Run, Sharding, estimate, text
from memlab.adapters import Ia3
from memlab.cli import main
from memlab.lab import pipelined
from memlab.lab.ranks import on_ranks
from memlab.step import simulate
from memlab.step.parallel.pipeline.schedules import split_actions, v_actions
from memlab.step.parallel.pipeline.step import stage_peaks, step_of_stage
from memlab.terms.sharded_step import in_flight, stage_buffers

SMALL = {"num_hidden_layers": 4, "hidden_size": 32, "num_attention_heads": 4, "head_dim": 8}
SMALL |= {"intermediate_size": 70, "vocab_size": 101, "max_position_embeddings": 64}
SMALL |= {"num_key_value_heads": 2, "model_type": "llama", "tie_word_embeddings": False}
LLAMA = Model.preset("llama-3-8b").replace(layers=4)
TINY = Model.preset("tiny-llama")
INTERLEAVED = {"schedule": "interleaved1f1b", "stages_per_rank": 2}
ZERO_BUBBLE = {"schedule": "interleavedzerobubble"}
V_SHAPED = {"schedule": "zbvzerobubble", "stages_per_rank": 2}


def question(recipe="fp32", ranks=2, *, config=None, **said):
    said = {"micro_batches": 3} | said
    return compare.question(SMALL | (config or {}), recipe, {"pipeline": ranks}, said)


# With two stages a rank the stages 1 and 2 are middle ones, which receive on both sides.
QUESTIONS = few(
    8,
    (
        question(),
        question("bf16", config={"num_hidden_layers": 3}, return_outputs=False),
        question(schedule="gpipe"),
        question(schedule="gpipe", checkpoint="block", config={"model_type": "qwen3"}),
        question(**INTERLEAVED, micro_batches=4, config={"num_hidden_layers": 7}),
        question(Recipe(optimizer="sgd"), batch=1, tokens=9, config={"model_type": "qwen2"}),
        question(config={"model_type": "mistral", "sliding_window": 8}, optimizer_impl="foreach"),
        question(**ZERO_BUBBLE, micro_batches=4),
        question("bf16", **ZERO_BUBBLE, config={"model_type": "qwen2"}, return_outputs=False),
        question(
            Recipe(optimizer="sgd"),
            **ZERO_BUBBLE,
            stages_per_rank=2,
            micro_batches=4,
            config={"num_hidden_layers": 7, "model_type": "qwen3"},
        ),
        question(**V_SHAPED, micro_batches=4),  # on rank 1 one stage hands its output to the other
        question("bf16", **V_SHAPED, micro_batches=5, config={"num_hidden_layers": 6}),
        question(**V_SHAPED, micro_batches=2, return_outputs=False),
        # Each half of backward, and in the second each weight, computes a layer again.
        question("bf16", **ZERO_BUBBLE, micro_batches=4, checkpoint="block", return_outputs=False),
        question(
            Recipe(optimizer="sgd"),
            **ZERO_BUBBLE,
            stages_per_rank=2,
            micro_batches=4,
            config={"num_hidden_layers": 7, "model_type": "qwen3"},
            checkpoint="block",
        ),
        question(**V_SHAPED, micro_batches=4, checkpoint="block"),
    ),
)
# On rank r of four the weights' half comes r turns after the input's.
OF_FOUR = (
    question("bf16", 4, **ZERO_BUBBLE, micro_batches=5, config={"num_hidden_layers": 6}),
    question("bf16", 4, **V_SHAPED, micro_batches=8, config={"num_hidden_layers": 9}),
)


@pytest.fixture(scope="module")
def measured():
    return on_ranks(2, pipelined.several, QUESTIONS)


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("number", range(len(QUESTIONS)), ids=str)
def test_a_real_rank_holds_what_is_derived(number, rank, measured):
    derived, found = step_of_stage(*QUESTIONS[number], rank), measured[rank][number]
    assert found["peak"] == derived.peak.bytes
    assert found["first_peak"] == derived.peak.first_step_bytes
    for moment in ("after_backward", "between_steps"):
        assert found[moment] == derived.held[moment], moment
    for term in ("weights", "optimizer", "inputs"):
        assert found["contents"].get(term, 0) == derived.peak.contents.get(term, 0), term


@pytest.mark.deep
def test_each_of_four_real_ranks_holds_what_is_derived():
    measured = on_ranks(4, pipelined.several, OF_FOUR)
    for rank, found in enumerate(measured):
        for asked, real in zip(OF_FOUR, found, strict=True):
            derived = step_of_stage(*asked, rank)
            assert real["peak"] == derived.peak.bytes
            assert real["first_peak"] == derived.peak.first_step_bytes
            assert real["between_steps"] == derived.held["between_steps"]


@pytest.mark.parametrize("each", [1, 2, 3])
@pytest.mark.parametrize(("ranks", "count"), [(2, 2), (2, 3), (4, 3), (4, 6), (4, 12), (8, 8)])
def test_zero_bubble_takes_the_turns_that_torch_takes(ranks, count, each):
    in_round = count // max(1, count // ranks)
    told = {"_n_microbatches": count, "n_local_stages": each, "pp_group_size": ranks}
    theirs = SimpleNamespace(**told, microbatches_per_round=in_round)
    for rank in range(ranks):
        asked = ScheduleInterleavedZeroBubble._calculate_single_rank_operations(theirs, rank)
        ours = SimpleNamespace(stages=[None] * each, micro_batches=count, ranks=ranks, rank=rank)
        assert [(turn[0], rank + ranks * turn[1], turn[2]) for turn in split_actions(ours)] == [
            said(action) for action in asked if action
        ]


@pytest.mark.parametrize(("ranks", "count"), [(2, 1), (2, 3), (2, 8), (4, 3), (4, 7), (8, 20)])
def test_the_v_takes_the_turns_that_torch_takes(ranks, count):
    theirs = SimpleNamespace(_n_microbatches=count, pp_group_size=ranks, num_stages=2 * ranks)
    for rank in range(ranks):
        asked = ScheduleZBVZeroBubble._calculate_single_rank_operations(theirs, rank)
        ours = SimpleNamespace(micro_batches=count, ranks=ranks, rank=rank)
        stages = Sharding.of(pipeline=ranks, **V_SHAPED).stages(rank)
        assert [(turn[0], stages[turn[1]], turn[2]) for turn in v_actions(ours)] == [
            said(action) for action in asked if action
        ]


def said(action):
    """A turn of torch's, in the words of memlab.step.parallel.pipeline.schedules."""
    words = {"FORWARD": "forward", "BACKWARD_INPUT": "input", "BACKWARD_WEIGHT": "weight"}
    return words[action.computation_type.name], action.stage_index, action.microbatch_index


def test_what_zero_bubble_costs_beside_1f1b():
    def of(**how):
        run = Run(tokens=512, micro_batches=8, devices=Sharding.of(pipeline=4, **how))
        return [step_of_stage(LLAMA.replace(layers=8), "bf16", run, rank) for rank in range(4)]

    plain, split = of(), of(**ZERO_BUBBLE)
    # The first stage's input asks for no gradient: its backward is whole, and nothing differs.
    assert split[0].peak == plain[0].peak
    for rank in (1, 2, 3):
        assert split[rank].peak.bytes > plain[rank].peak.bytes
        # The gradients that were sent stay the .grad of what was received, until the next step.
        more = split[rank].held["between_steps"] - plain[rank].held["between_steps"]
        assert more == 8 * 512 * LLAMA.d_model * 2


def test_checkpoints_under_zero_bubble_save_on_the_first_rank_and_cost_on_middle_ones():
    def of(checkpoint, **how):
        devices = Sharding.of(pipeline=4, **how)
        run = Run(tokens=4096, micro_batches=8, checkpoint=checkpoint, devices=devices)
        model = LLAMA.replace(layers=8)
        return [step_of_stage(model, "bf16", run, rank).peak.bytes for rank in range(4)]

    plain, checkpointed = of("none", **ZERO_BUBBLE), of("block", **ZERO_BUBBLE)
    assert checkpointed[0] < plain[0]  # its backward is whole
    assert all(checkpointed[rank] > plain[rank] for rank in (1, 2))
    assert all(of("block")[rank] < of("none")[rank] for rank in (0, 1, 2))  # 1F1B saves on each


def test_buffers_stay_for_each_micro_batch_and_on_both_sides_of_a_middle_stage():
    run = Run(tokens=512, micro_batches=8, devices=Sharding(pipeline=4))
    shape = dict(tokens=512, d_model=4096, micro_batches=8, stages=4)
    for stage in (0, 1, 3):
        buffers = stage_buffers(1, **shape, stage=stage)
        held = step_of_stage(LLAMA, "bf16", run, stage).held_contents["between_steps"]
        assert held["pipeline buffers"] == buffers


@pytest.mark.parametrize("how", [{}, {"schedule": "gpipe"}, INTERLEAVED], ids=str)
def test_as_many_micro_batches_are_in_flight_as_the_formula_says(how):
    devices = Sharding.of(pipeline=4, return_outputs=False, **how)
    told = {"schedule": devices.schedule.name, "each": devices.schedule.stages_per_rank}
    run = Run(tokens=64, micro_batches=8, devices=devices)
    model = LLAMA.replace(layers=8)
    one = {}
    for stage in (1, 2):  # alike, but for what is in flight
        step = step_of_stage(model, "bf16", run, stage)
        one[stage] = step.rows["activations"], in_flight(8, stages=4, stage=stage, **told)
    (more, many), (less, few) = one[1], one[2]
    if devices.schedule.name == "gpipe":
        assert more == less and many == few == 8
        return
    each = (more - less) // (many - few)
    assert 0.9 < more / (many * each) < 1.05  # the moment is before the first backward


def test_the_last_stage_keeps_all_outputs_unless_it_is_told_otherwise():
    def last(**how):
        run = Run(tokens=512, micro_batches=8, devices=Sharding.of(pipeline=4, **how))
        return step_of_stage(LLAMA, "bf16", run, 3)

    kept, dropped = last(), last(return_outputs=False)
    logits = 8 * 512 * LLAMA.vocab * 2
    assert kept.held["between_steps"] - dropped.held["between_steps"] == logits
    assert "cat" in {record.op for record, _, _ in kept.log.events if record is not None}


def test_layers_that_are_counted_are_like_those_that_are_simulated():
    model, recipe, run = question(**INTERLEAVED, config={"num_hidden_layers": 22}, micro_batches=2)
    short = step_of_stage(model, recipe, run, 1)
    whole = step_of_stage(model, recipe, run, 1, every_layer=True)
    assert short.log.repeats and not whole.log.repeats
    assert short.peak == whole.peak
    assert short.held_contents == whole.held_contents


def test_every_door_answers_with_the_fullest_stage(capsys):
    words = "tiny-llama --pipeline 4 --schedule 1f1b --micro-batches 4 --tokens 64"
    run = Run(tokens=64, micro_batches=4, devices=Sharding(pipeline=4))
    found = stage_peaks(TINY, None, run)
    fullest = max(range(4), key=lambda stage: found[stage].bytes)
    ledger = estimate(TINY, None, run)
    assert f"stage {fullest} of 4" in ledger.title
    assert ledger.total() == found[fullest].bytes == simulate(TINY, None, run).peak.bytes
    assert estimate(TINY, None, run, stage=1).total() == found[1].bytes
    assert main(["estimate", *words.split()]) == 0
    said = capsys.readouterr().out
    assert str(ledger) in said
    for stage, peak in enumerate(found):
        assert f"peak of stage {stage}        {text(peak.bytes)}, in {peak.moment}" in said
    assert main(["estimate", *words.split(), "--json", "--no-outputs"]) == 0
    told = json.loads(capsys.readouterr().out)["sharding"]
    assert told["return_outputs"] is False and told["stage"] == fullest
    assert [each["bytes"] for each in told["stages"][:3]] == [peak.bytes for peak in found[:3]]
    assert told["stages"][3]["bytes"] < found[3].bytes


def test_the_shell_knows_how_many_stages_a_v_has(capsys):
    words = "tiny-llama --pipeline 2 --schedule zbvzerobubble --micro-batches 3 --tokens 64"
    run = Run(tokens=64, micro_batches=3, devices=Sharding.of(pipeline=2, **V_SHAPED))
    assert main(["estimate", *words.split()]) == 0
    said = capsys.readouterr().out
    for rank, peak in enumerate(stage_peaks(TINY, None, run)):
        assert f"peak of stage {rank}        {text(peak.bytes)}, in {peak.moment}" in said
    # Rank 0 has the embedding and the head.
    assert "lm_head" in {tensor.name for tensor in run.devices.tensors(TINY, 0)}
    assert "lm_head" not in {tensor.name for tensor in run.devices.tensors(TINY, 1)}


def test_a_run_goes_through_json_with_its_schedule():
    run = question(**INTERLEAVED, return_outputs=False)[2]
    assert Run.from_json(run.to_json()) == run


@pytest.mark.parametrize(
    ("said", "recipe", "message"),
    [
        ({"loss": "chunked"}, "fp32", "loss='chunked' is not described beside a pipeline"),
        ({"adapter": Ia3()}, "fp32", r"adapter=\(IA\)³ on .* is not described beside a pipeline"),
        ({"loop": "trainer"}, "fp32", "loop='trainer' is not described beside a pipeline"),
        ({"holds": ("model",)}, "fp32", "holds=.* is not described beside a pipeline"),
        ({}, "autocast-bf16", "autocast='bf16' is not described beside a pipeline"),
        ({}, Recipe(optimizer="muon"), "muon is not described beside a pipeline"),
        ({}, "zero", "recipe 'zero': copies beside weights"),
        ({"implementation": "memlab"}, "fp32", "memlab 'llama' is not described"),
        ({"config": {"tie_word_embeddings": True}}, "fp32", "a tied table"),
        ({"config": {"num_hidden_layers": 1}}, "fp32", "stages=2 is more than L=1"),
        (
            {"micro_batches": 514, "config": {"num_hidden_layers": 20}, **ZERO_BUBBLE},
            "fp32",
            "micro_batches=514 .* L=20 layers .* more than 5,120",
        ),
        ({"micro_batches": 1025}, "fp32", "micro_batches=1,025: 2,050 .* at most 2,048"),
    ],
    ids=str,
)
def test_what_is_not_described_is_refused_by_name(said, recipe, message):
    with pytest.raises(ValueError, match=message):
        estimate(*question(recipe, **said))


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"micro_batches": 1}, "micro_batches=1 with schedule='1f1b'; at least as many as its 2"),
        ({"micro_batches": 5, **INTERLEAVED}, "micro_batches=5 .* a multiple of its 2 rounds of 2"),
        ({"micro_batches": 5, **ZERO_BUBBLE}, "micro_batches=5 .* a multiple of its 2 rounds of 2"),
        ({"schedule": "zbvzerobubble"}, "stages_per_rank=1 with schedule='zbvzerobubble'"),
        ({"schedule": "zbv"}, "schedule='zbv' is not described; known: gpipe"),
        ({"stages_per_rank": 2}, "stages_per_rank=2 with schedule='1f1b'"),
        ({"schedule": "interleaved1f1b"}, "stages_per_rank=1 with schedule='interleaved1f1b'"),
        ({"schedule": "gpipe", "ranks": 1}, "schedule='gpipe' is a pipeline's"),
    ],
    ids=str,
)
def test_what_a_pipeline_cannot_be_fails_by_name(said, message):
    with pytest.raises(ValueError, match=message):
        question(**said)
