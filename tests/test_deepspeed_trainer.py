"""Trainer under DeepSpeed, derived, against what real ranks held: tests/deepspeed_trainer.json."""

import json
from pathlib import Path

import pytest

from memlab import Model, Recipe, Run, Sharding, estimate
from memlab.cli import main
from memlab.sharding.deepspeed_keys import auto, key_of, written
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
        if run.devices.zero > 1 and not run.devices.config.offload_optimizer:
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
    assert {run.checkpointing for run in runs} == {"none", "block"}
    hosts = [run.devices for run in runs if run.devices.config.offload_optimizer]
    assert {devices.zero for devices in hosts} == {1, 2, 3} and len(hosts) == 8
    assert RECORD["command"].startswith("python tools/deepspeed_runs.py trainer")
    asked = [(f, Run.from_dict(f["run"]).devices) for f in RECORD["runs"] if f["auto"]]
    assert {devices.zero for _, devices in asked} == {1, 2, 3}
    for found, devices in asked:
        values = auto(Model.from_config(found["config"]).d_model, devices.zero)
        assert {key_of(field) for field in values} == {*found["auto"]}
        assert all(getattr(devices.config, field) == value for field, value in values.items())


def test_auto_is_what_transformers_puts_there():
    assert auto(4096, 2) == {"reduce_bucket_size": 16_777_216}
    more = {"prefetch_bucket_size": 15_099_494, "param_persistence_threshold": 40_960}
    assert auto(4096, 3) == auto(4096, 2) | more
    third = Sharding.of(data=8, zero=3, library="deepspeed", **auto(4096, 3))
    assert written(third) == {
        "stage": 3,
        "reduce_bucket_size": 16_777_216,
        "stage3_prefetch_bucket_size": 15_099_494,
        "stage3_param_persistence_threshold": 40_960,
    }


def step(zero, loop="trainer", **how):
    more = {"library": "deepspeed"} if zero == 3 else {}
    devices = Sharding.of(**{"data": 8, "zero": zero} | more | how)
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


def test_an_optimizer_on_the_host_leaves_weights_and_a_buffer_of_the_largest():
    """llama-3-8b's tables have 525,336,576 values, of which bf16 takes 1,002 MiB."""
    there = step(2, offload_optimizer="cpu")
    table = LLAMA.vocab * LLAMA.d_model
    held = there.held_contents["between_steps"]
    assert held["weights"] == 2 * LLAMA.parameter_count
    assert held["gradients"] == 2 * table and not held.get("optimizer") and not held.get("master")
    part = LLAMA.parameter_count // 8
    assert there.host.contents["optimizer"] - 8 * part < 100
    assert there.host.contents["master"] == 4 * part
    # fp32 gradients of the part, a narrow copy of it, and a buffer of the largest weight.
    assert there.host.contents["gradients"] == 4 * part + 2 * table
    assert there.host.contents["weights"] == 2 * part
    assert step(2).host is None


def test_on_a_gpu_a_part_of_a_gradient_comes_back_from_the_host():
    """Where gloo's ranks have no other device than their host, it does not move."""
    how = dict(data=8, zero=3, library="deepspeed", offload_optimizer="cpu")
    asked = Run(tokens=512, loop="trainer", devices=Sharding.of(**how))

    def parts(run):
        events = simulate(LLAMA, "zero", run).log.events
        return {r.bytes for r, change, _ in events if r and r.op == "to" and r.dtype == "bf16"}

    gate = 2 * LLAMA.d_ff * LLAMA.d_model // 8
    assert gate in parts(asked)
    assert gate not in parts(asked.replace(backend="cpu"))


def test_what_is_at_rest_on_a_host_needs_tokens():
    devices = Sharding.of(data=8, zero=2, offload_optimizer="cpu")
    with pytest.raises(ValueError, match="offload_optimizer='cpu' leaves weights .* needs tokens"):
        estimate(LLAMA, "zero", Run(devices=devices))


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"zero": 2, "offload_optimizer": "nvme"}, "'nvme' is not described; known: cpu"),
        ({"zero": 3, "offload_optimizer": "cpu"}, "offload_optimizer='cpu' is DeepSpeed's"),
    ],
    ids=str,
)
def test_an_offload_fails_by_name(said, message):
    with pytest.raises(ValueError, match=message):
        Sharding.of(data=8, **said)


def test_other_trainers_are_refused_by_name():
    run = Run(tokens=64, loop="sft", devices=Sharding(data=8, zero=2))
    with pytest.raises(ValueError, match="loop='sft' is not described beside DeepSpeed's ZeRO 2"):
        simulate(LLAMA, Recipe.named("zero"), run)


def test_the_shell_answers_with_trainers_peak(capsys):
    words = "estimate llama-3-8b --recipe zero --ranks 8 --zero 2 --loop trainer --tokens 512"
    assert main(words.split()) == 0
    assert text(step(2).peak.bytes) in capsys.readouterr().out
    assert main([*words.split(), "--offload-optimizer", "cpu"]) == 0
    said = capsys.readouterr().out
    there = step(2, offload_optimizer="cpu")
    assert text(there.peak.bytes) in said and "offload_optimizer=cpu" in said
    whole = f"{text(8 * there.host.bytes)} if one machine has all 8 ranks"
    assert f"on the host            {whole}, {text(there.host.bytes)} of one rank" in said
