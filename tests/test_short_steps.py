"""What a search leaves out of a simulation changes no byte of what it asks for."""

import gc
import weakref

import pytest

from memlab import Model, Recipe, Run, Sharding
from memlab.explain.explanation import explain
from memlab.step import simulate
from memlab.step.core.allocator_replay import FEW, replayed
from memlab.step.core.result import term
from memlab.step.loops.loop import nearest
from memlab.step.parallel.pipeline import step as pipelined
from memlab.step.parallel.pipeline.step import stage_peaks, step_of_stage

SMALL = {"num_hidden_layers": 4, "hidden_size": 32, "num_attention_heads": 4}
SMALL |= {"intermediate_size": 70, "vocab_size": 101, "max_position_embeddings": 64}
SMALL |= {"num_key_value_heads": 2, "head_dim": 8, "tie_word_embeddings": False}
LLAMA = Model.from_config({"model_type": "llama"} | SMALL)
HOW = {"batch": 2, "tokens": 16}
# A recipe and a run of several micro-batches.
STEPS = (
    ("fp32", Run(**HOW, micro_batches=3)),
    ("bf16", Run(**HOW, micro_batches=2, loop="trainer")),
    ("autocast", Run(**HOW, micro_batches=4, checkpoint="block", loop="keeps-outputs")),
    ("bf16", Run(**HOW, micro_batches=3, loop="sft", checkpoint="none", lora=None)),
    ("fp32", Run(**HOW, micro_batches=3, loop="trainer", eval_batch=8, eval_logits=2)),
    ("bf16", Run(**HOW, micro_batches=3, implementation="memlab", loss="chunked")),
    (
        "fp32",
        Run(**HOW, micro_batches=3, devices=Sharding.of(data=2, zero=3, gradient_sync="last")),
    ),
    (
        "fp32",
        Run(**HOW, micro_batches=3, devices=Sharding.of(data=2, zero=3, cpu_offload="pinned")),
    ),
    ("zero", Run(**HOW, micro_batches=3, devices=Sharding(data=2, zero=1))),
    ("zero", Run(**HOW, micro_batches=3, devices=Sharding.of(data=2, zero=2, overlap_comm=True))),
    ("zero", Run(**HOW, micro_batches=2, devices=Sharding.of(data=2, zero=3, library="deepspeed"))),
    ("bf16", Run(**HOW, micro_batches=2, devices=Sharding(tensor=2), optimizer_impl="forloop")),
)


def _some(step):
    """What is held of each term, without terms of which there is nothing any more."""
    return {at: {t: n for t, n in held.items() if n} for at, held in step.held_contents.items()}


@pytest.mark.parametrize(("recipe", "run"), STEPS, ids=str)
def test_a_short_first_step_leaves_the_second_as_it_is(recipe, run):
    whole, short = (simulate(LLAMA, recipe, run, short=short) for short in (False, True))
    assert short.peak.contents == whole.peak.contents
    assert (short.peak.moment, short.peak.bytes) == (whole.peak.moment, whole.peak.bytes)
    assert _some(short) == _some(whole) and short.rows == whole.rows
    assert short.peak.first_step_bytes <= whole.peak.first_step_bytes
    assert len(short.log.events) < len(whole.log.events)


SCHEDULES = (
    ("gpipe", 1),
    ("1f1b", 1),
    ("interleaved1f1b", 2),
    ("interleavedzerobubble", 1),
    ("interleavedzerobubble", 2),
    ("zbvzerobubble", 2),
)


@pytest.mark.parametrize("backend", ["cpu", "cuda"])
@pytest.mark.parametrize(("schedule", "each"), SCHEDULES)
def test_so_it_is_of_each_rank_of_a_pipeline(schedule, each, backend):
    there = Sharding.of(pipeline=2, schedule=schedule, stages_per_rank=each)
    run = Run(**HOW, micro_batches=4, backend=backend, devices=there)
    for rank, short in enumerate(stage_peaks(LLAMA, "fp32", run)):
        whole = step_of_stage(LLAMA, "fp32", run, rank).peak
        assert short.contents == whole.contents and short.moment == whole.moment


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("recipe", "run"),
    [
        ("bf16", Run(batch=2, tokens=33, micro_batches=9)),
        ("fp32", Run(batch=3, tokens=57, micro_batches=7, checkpoint="block")),
        ("autocast", Run(batch=1, tokens=64, micro_batches=12, loop="keeps-outputs")),
        ("bf16", Run(batch=2, tokens=40, micro_batches=8, loss="chunked")),
        ("zero", Run(**HOW, micro_batches=8, devices=Sharding(data=2, zero=1))),
        ("bf16", Run(**HOW, micro_batches=8, devices=Sharding(data=2, zero=3))),
        ("fp32", Run(**HOW, micro_batches=7, loop="trainer")),
    ],
    ids=str,
)
def test_what_is_reserved_is_that_of_all_micro_batches(recipe, run):
    chosen = Recipe.named(recipe)
    assert run.micro_batches > FEW
    done = simulate(LLAMA, nearest(chosen, run), run, every_layer=True).replay()
    assert replayed(LLAMA, chosen, run).added == done.peak_reserved - done.peak_requested


def test_a_pipeline_is_simulated_once_for_each_cause_and_rank(monkeypatch):
    """Its answer took the fullest rank a second time, and both of its steps in full length."""
    run = Run(**HOW, micro_batches=16, devices=Sharding.of(pipeline=2, schedule="gpipe"))
    peak = max(at.bytes for at in stage_peaks(LLAMA, "bf16", run))
    ranks, own, simulated = stage_peaks.cache_info().misses, pipelined._played, []

    def played(model, recipe, run, *rest):
        simulated.append(run)
        return own(model, recipe, run, *rest)

    monkeypatch.setattr(pipelined, "_played", played)
    found = explain(LLAMA, "bf16", run, seen=2 * peak, level="allocated")
    assert found.causes
    cases = stage_peaks.cache_info().misses - ranks
    assert 0 < len(simulated) <= 2 * cases


@pytest.mark.parametrize(
    "devices",
    [Sharding(), Sharding(data=4), Sharding(data=4, zero=2), Sharding(pipeline=2)],
    ids=str,
)
def test_a_step_that_is_over_goes_without_a_look_for_cycles(devices):
    """A search simulates many; a log that waits for Python's garbage collector is large."""
    model = Model.preset("tiny-llama")
    run = Run(tokens=24, micro_batches=2, devices=devices)
    was = gc.isenabled()
    gc.disable()
    try:
        step = simulate(model, "fp32", run)
        log = weakref.ref(step.log)
        assert log().contents(step.log.marks["second.end"], term)
        step_of_stage.cache_clear()
        del step
        assert log() is None
    finally:
        if was:
            gc.enable()
