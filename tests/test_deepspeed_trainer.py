"""Trainer under DeepSpeed, derived, against what real ranks held: tests/deepspeed_trainer.json."""

import json
from pathlib import Path

import pytest

from memlab import Model, Recipe, Run, Sharding
from memlab.cli import main
from memlab.recipe.deepspeed_config import auto, key_of, written
from memlab.step import simulate
from memlab.units import text

RECORD = json.loads(Path(__file__, "../deepspeed_trainer.json").resolve().read_text())
LLAMA = Model.preset("llama-3-8b")
HELD = ("weights", "master", "optimizer")


def named(found):
    run = found["run"]
    said = [found["config"]["model_type"], found["recipe"], *map(str, run["devices"].items())]
    return " ".join(
        [*said, *found["auto"], *(f"{k}={v}" for k, v in run.items() if k != "devices")]
    )


@pytest.mark.parametrize("found", RECORD["runs"], ids=named)
def test_real_ranks_held_what_is_derived(found):
    run = Run.from_dict(found["run"])
    assert run.loop == "trainer" and len(found["ranks"]) == run.devices.data
    model = Model.from_config(found["config"])
    for rank, measured in enumerate(found["ranks"]):
        derived = simulate(model, found["recipe"], run, rank=rank, every_layer=True)
        log = derived.log
        last = f".{run.micro_batches}" if run.micro_batches > 1 else ""

        def top(first, last, log=log):
            return max(event[2] for event in log.events[log.marks[first] : log.marks[last]])

        assert measured["peak"] == derived.peak.bytes
        assert measured["before"] == log.events[log.marks["second.forward"] - 1][2]
        assert measured["end"] == log.events[log.marks["second.end"] - 1][2]
        # Of several micro-batches the first backward pass may be the highest; stage 1 reduces
        # what they left when autograd is done.
        spans = [f"second.backward{which}" for which in ("", last)]
        both = max(measured["backward"], measured["after"])
        assert both in [top(span, "second.end") for span in spans]
        if run.devices.zero > 1:
            assert measured["after"] == top("second.optimizer", "second.end")
        told = dict(derived.peak.contents)
        third = ("reduce buckets", "buffers") if run.devices.zero == 3 else ()
        for term in (*HELD, *third):
            assert measured["contents"].get(term, 0) == told.get(term, 0), term


def test_the_record_has_each_stage_and_auto_at_each():
    runs = [Run.from_dict(found["run"]) for found in RECORD["runs"]]
    assert {run.devices.zero for run in runs} == {1, 2, 3}
    assert {run.devices.data for run in runs} == {2, 3, 4}
    assert {run.micro_batches for run in runs} == {1, 2, 3}
    assert {found["recipe"] for found in RECORD["runs"]} == {"zero", "fp32"}
    assert {run.checkpoint for run in runs} == {"none", "block"}
    assert RECORD["command"].startswith("python tools/deepspeed_runs.py trainer")
    asked = [(f, Run.from_dict(f["run"]).devices) for f in RECORD["runs"] if f["auto"]]
    assert {devices.zero for _, devices in asked} == {1, 2, 3}
    for found, devices in asked:
        values = auto(Model.from_config(found["config"]).d_model, devices.zero)
        assert {key_of(field) for field in values} == {*found["auto"]}
        assert all(getattr(devices, field) == value for field, value in values.items())


def test_auto_is_what_transformers_puts_there():
    assert auto(4096, 2) == {"reduce_bucket_size": 16_777_216}
    more = {"prefetch_bucket_size": 15_099_494, "param_persistence_threshold": 40_960}
    assert auto(4096, 3) == auto(4096, 2) | more
    third = Sharding(data=8, zero=3, library="deepspeed", **auto(4096, 3))
    assert written(third) == {
        "stage": 3,
        "reduce_bucket_size": 16_777_216,
        "stage3_prefetch_bucket_size": 15_099_494,
        "stage3_param_persistence_threshold": 40_960,
    }


def step(zero, loop="trainer", **how):
    more = {"library": "deepspeed"} if zero == 3 else {}
    devices = Sharding(**{"data": 8, "zero": zero} | more | how)
    return simulate(LLAMA, "zero", Run(tokens=512, loop=loop, devices=devices))


@pytest.mark.parametrize("zero", [1, 2, 3])
def test_auto_buckets_are_smaller_than_deepspeeds_own(zero):
    """A bucket of D^2 values, 32 MiB for llama-3-8b, in the place of 5 x 10^8, 954 MiB."""

    def bucket(made):
        return max(r.bytes for r, *_ in made.log.events if r and r.op == "ipg_bucket")

    own, less = step(zero), step(zero, **auto(LLAMA.d_model, zero))
    assert (bucket(own), bucket(less)) == (10**9, 2 * 4096 * 4096)
    assert own.held["after_backward"] >= less.held["after_backward"]
    if zero == 2:  # the peak is the update's, where there are no buckets
        assert own.peak.bytes == less.peak.bytes
    else:
        assert own.peak.bytes > less.peak.bytes


def test_two_groups_of_parameters_are_updated_one_after_the_other():
    """The fp32 gradient of a part is that of the matrices alone: norms do not decay."""

    def wide(log):
        events = log.events[log.marks["second.optimizer"] :]
        made = (r for r, change, _ in events if r and change > 0)
        return [r.bytes for r in made if r.op == "to" and r.dtype == "fp32"]

    norms = (2 * LLAMA.layers + 1) * LLAMA.d_model
    matrices = LLAMA.parameter_count - norms
    assert wide(step(2).log) == [4 * matrices // 8, 4 * norms // 8]
    assert wide(step(2, loop="plain").log) == [4 * LLAMA.parameter_count // 8]


def test_other_trainers_are_refused_by_name():
    run = Run(tokens=64, loop="sft", devices=Sharding(data=8, zero=2))
    with pytest.raises(ValueError, match="loop='sft' is not described beside DeepSpeed's ZeRO 2"):
        simulate(LLAMA, Recipe.named("zero"), run)


def test_the_shell_answers_with_trainers_peak(capsys):
    words = "estimate llama-3-8b --recipe zero --ranks 8 --zero 2 --loop trainer --tokens 512"
    assert main(words.split()) == 0
    assert text(step(2).peak.bytes) in capsys.readouterr().out
