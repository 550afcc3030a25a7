"""DeepSpeed's ZeRO 3, derived, against what two to four real ranks held: tests/deepspeed3.json."""

import json
from pathlib import Path

import pytest
from offloaded_weights import CONFIG, FOUND

from memlab import MiB, Model, Run, Sharding, estimate, explain
from memlab.cli import main
from memlab.families import proven
from memlab.fit import cheapest_change, largest_batch
from memlab.lab.deepspeed_steps import recorded
from memlab.step import simulate
from memlab.units import text

RECORD = json.loads(Path(__file__, "../deepspeed3.json").resolve().read_text())
LLAMA = Model.preset("llama-3-8b")


@pytest.mark.parametrize("found", RECORD["runs"], ids=str)
def test_real_ranks_held_what_is_derived(found):
    run = Run.from_dict(found["run"])
    derived = simulate(Model.from_config(found["config"]), found["recipe"], run)
    assert len(found["ranks"]) == run.devices.data
    for measured in found["ranks"]:  # all ranks hold the same
        assert measured["peak"] == derived.peak.bytes
        assert measured["first_peak"] == derived.peak.first_step_bytes
        for moment, held in derived.held.items():
            assert measured[moment] == held, moment
        told = dict(derived.peak.contents)
        told["gradients"] += told.pop("whole gradients", 0)  # the tracker knows no whole ones
        for term in ("weights", "master", "gradients", "reduce buckets", "optimizer"):
            assert measured["contents"].get(term, 0) == told.get(term, 0), term


@pytest.mark.parametrize("found", recorded(), ids=["gathered", "freed"])
def test_the_ranks_of_the_chapter_held_what_is_derived(found):
    model, recipe, run, ranks = found
    derived = simulate(model, recipe, run)
    assert len(ranks) == run.devices.data == 2
    for measured in ranks:
        assert measured["peak"] == derived.peak.bytes
        assert {moment: measured[moment] for moment in derived.held} == derived.held


@pytest.mark.parametrize(("ranks", "more", "peak", "sub_groups"), FOUND)
def test_weights_that_are_offloaded_come_for_a_gathering(ranks, more, peak, sub_groups):
    devices = Sharding.of(data=ranks, zero=3, library="deepspeed", offload_param="cpu", **more)
    run = Run(batch=2, tokens=64, devices=devices)
    model = Model.from_config(CONFIG)
    derived = simulate(model, "zero", run)
    assert derived.peak.bytes == peak + 4 * sub_groups
    here = simulate(model, "zero", run.replace(devices=devices.changed(offload_param=None)))
    held = here.host.contents.get("weights", 0) if here.host else 0
    part = derived.host.contents["weights"] - held
    assert 0 <= part - 2 * model.parameter_count / ranks < 2 * 21  # 21 tensors are rounded up


def test_weights_are_offloaded_by_stage_3_alone():
    with pytest.raises(ValueError, match="offload_param='cpu' is of DeepSpeed's stage 3"):
        Sharding.of(data=2, zero=2, library="deepspeed", offload_param="cpu")
    with pytest.raises(ValueError, match="offload_param='nvme' is not described; known: cpu"):
        Sharding.of(data=2, zero=3, library="deepspeed", offload_param="nvme")


def test_the_record_has_every_key_at_several_values():
    runs = [Run.from_dict(found["run"]) for found in RECORD["runs"]]
    assert {run.devices.data for run in runs} == {2, 3, 4}
    for field in ("prefetch_bucket_size", "param_persistence_threshold", "max_reuse_distance"):
        assert len({getattr(run.devices.config, field) for run in runs}) > 2, field
    for field in ("max_live_parameters", "sub_group_size", "reduce_bucket_size"):
        assert len({getattr(run.devices.config, field) for run in runs}) > 2, field
    assert {run.devices.config.contiguous_gradients for run in runs} == {True, False}
    torchs = [run for run in runs if not run.devices.config.memory_efficient_linear]
    assert len(torchs) == 14 and {run.checkpointing for run in torchs} == {"none", "block"}
    assert {run.checkpointing for run in runs} == {"none", "block"}
    assert {run.micro_batches for run in runs} == {1, 2, 3}
    assert {found["config"]["model_type"] for found in RECORD["runs"]} == {*proven("zero3")}


def step(**how):
    said = {"data": 8, "zero": 3, "library": "deepspeed"} | how
    return simulate(LLAMA, "zero", Run(tokens=512, devices=Sharding.of(**said)))


def gathered(made, moment="second.backward"):
    """Whole weights and buffers of them at a moment."""
    held = made.log.contents(made.log.marks[moment], lambda record: record.category)
    return held.get("gathered weights", 0)


def test_what_stays_whole_is_what_the_keys_say():
    alone = {"prefetch_bucket_size": 0}
    far, usual = step(max_reuse_distance=10**11, **alone), step(**alone)
    none = step(max_reuse_distance=0, **alone)
    norms = 2 * (2 * LLAMA.layers + 1) * LLAMA.d_model
    assert gathered(far) == 2 * LLAMA.parameter_count
    assert 10**9 < gathered(usual) < 2 * 10**9  # the last layers and the head: 10^9 values of use
    assert gathered(none) == gathered(none, "second.forward") == norms
    none = step(max_reuse_distance=0, param_persistence_threshold=0, **alone)
    assert gathered(none) == gathered(none, "second.forward") == 0


def test_to_gather_ahead_keeps_what_comes_up_again_soon():
    """The last layers' weights, met ahead of their use in backward, stay, whatever the distance."""
    few = step(max_reuse_distance=0)
    assert 2 * 10**9 < gathered(few) < 2 * (10**9 + 5 * 10**7)  # up to max_live_parameters
    less = step(max_reuse_distance=0, max_live_parameters=6 * 10**8)
    assert gathered(less) < 2 * (6 * 10**8 + 5 * 10**7)


def test_torchs_own_linear_layers_keep_all_weights_to_backward():
    alone = {"prefetch_bucket_size": 0, "max_reuse_distance": 0}
    ours, torchs = step(**alone), step(memory_efficient_linear=False, **alone)
    table = LLAMA.vocab * LLAMA.d_model  # the embedding is no linear layer
    held = [made.held["after_forward"] for made in (ours, torchs)]
    norms = (2 * LLAMA.layers + 1) * LLAMA.d_model
    assert held[1] - held[0] == 2 * (LLAMA.parameter_count - table - norms)
    again = {"data": 8, "zero": 3, "library": "deepspeed"} | alone
    run = Run(tokens=512, checkpoint="block", devices=Sharding.of(**again))
    other = run.replace(devices=Sharding.of(memory_efficient_linear=False, **again))
    held = [simulate(LLAMA, "zero", each).held["after_forward"] for each in (run, other)]
    assert held[1] - held[0] == 2 * table  # of the layers nothing, the head's alone


def test_a_gradient_that_no_bucket_holds_stays_whole():
    """Llama 3's tables have 525,336,576 values, more than the bucket's 500,000,000."""
    table = 2 * LLAMA.vocab * LLAMA.d_model
    large = step(reduce_bucket_size=6 * 10**8)
    moments = [made.peak.contents for made in (step(), large)]
    assert moments[0]["reduce buckets"] == 10**9
    assert moments[1]["reduce buckets"] == 12 * 10**8

    def most(made):
        events = made.log.events[made.log.marks["second.backward"] :]
        sizes = [r.bytes for r, change, _ in events if r and r.category == "whole gradients"]
        return max(sizes)

    assert most(step()) == most(large) == table
    assert "whole gradients" in moments[0]  # the head's, while the layers' are made


def test_a_sub_group_at_a_time_is_updated():
    whole, parts = step(), step(sub_group_size=10**7)

    def wide(made):
        events = made.log.events[made.log.marks["second.optimizer"] :]
        return max(r.bytes for r, change, _ in events if r and r.op == "to" and r.dtype == "fp32")

    assert wide(whole) == 4 * LLAMA.parameter_count // 8
    assert wide(parts) < 4 * 10**8
    assert parts.held["between_steps"] - whole.held["between_steps"] < 10**4  # states' counters


def test_what_stays_on_a_rank_is_a_part_of_each_flattened_weight():
    run = Run(devices=Sharding.of(data=3, zero=3, library="deepspeed"))
    parts = sum(-(-p.values // 3) * p.copies for p in map(Values, LLAMA.tensors()))
    told = {row.term: row.derived for row in estimate(LLAMA, "zero", run).rows}
    assert told["weights"] == 2 * parts


class Values:
    """A tensor's copies, and the values of each."""

    def __init__(self, tensor):
        self.copies, self.values = tensor.copies, 1
        for size in tensor.shape:
            self.values *= size


@pytest.mark.parametrize(
    ("said", "recipe", "message"),
    [
        ({"loop": "sft"}, "fp32", "loop='sft' is not described beside DeepSpeed's ZeRO 3"),
        ({"loss": "chunked"}, "zero", "loss='chunked' is not described beside"),
        ({"texts": "padded"}, "zero", "texts='padded' is not described beside"),
        ({"holds": ("model",)}, "zero", "holds=.* is not described beside"),
        ({"implementation": "memlab"}, "zero", "memlab 'llama' is not described .* known: tra"),
        ({}, "bf16", "which updates an fp32 copy; known: 'zero', 'fp32'"),
        ({}, "autocast", "autocast='bf16' is not described"),
    ],
    ids=str,
)
def test_what_is_not_described_is_refused_by_name(said, recipe, message):
    devices = Sharding.of(data=8, zero=3, library="deepspeed")
    with pytest.raises(ValueError, match=message):
        estimate(LLAMA, recipe, Run(tokens=64, devices=devices, **said))


def test_other_families_are_refused_by_name():
    devices = Sharding.of(data=8, zero=3, library="deepspeed")
    with pytest.raises(ValueError, match="'opt' is not described .* llama, mistral, olmo, olmo2"):
        estimate(Model.preset("opt-1.3b"), "zero", Run(tokens=64, devices=devices))


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"zero": 3, "library": "fsdp"}, "library='fsdp' is not described; known: deepspeed"),
        ({"library": "deepspeed"}, "library='deepspeed' says whose ZeRO it is; zero is 1, 2 or 3"),
        ({"zero": 3, "sub_group_size": 9}, "sub_group_size=9 is of DeepSpeed's stage 3: say zer"),
        ({"zero": 2, "max_live_parameters": 9}, "max_live_parameters=9 is of DeepSpeed's stage 3"),
        (
            {"zero": 3, "memory_efficient_linear": False},
            "memory_efficient_linear=False is of DeepSpeed's stage 3: say zero=3 and",
        ),
        (
            {"zero": 3, "library": "deepspeed", "sub_group_size": 0},
            "sub_group_size=0; at least 1",
        ),
        (
            {"zero": 3, "library": "deepspeed", "prefetch_bucket_size": -1},
            "prefetch_bucket_size=-1 is negative",
        ),
        (
            {"zero": 3, "library": "deepspeed", "replicas": 2},
            "replicas=2 is FSDP2's, which is zero=3 without library='deepspeed'",
        ),
    ],
    ids=str,
)
def test_a_config_fails_by_name(said, message):
    with pytest.raises(ValueError, match=message):
        Sharding.of(data=8, **said)


def test_the_largest_batch_the_cheapest_change_and_the_likely_cause_are_found():
    model = Model.from_config(RECORD["runs"][0]["config"] | {"num_hidden_layers": 4})
    devices = Sharding.of(data=4, zero=3, library="deepspeed", reduce_bucket_size=4000)
    run = Run(batch=8, tokens=64, devices=devices)

    def peak(run):
        return simulate(model, "zero", run).peak.bytes

    fits = largest_batch(model, "zero", run, on=24 * MiB, spare=0)
    size = fits.value
    assert peak(run.replace(batch=size)) <= 24 * MiB < peak(run.replace(batch=size + 1))
    changes = cheapest_change(model, "zero", run, on=peak(run) - 1, spare=0)
    assert changes
    told = explain(model, "zero", run.replace(checkpoint="block"), seen=peak(run))
    assert "checkpoint" in str(told)


def test_the_shell_answers_with_deepspeeds_peak(capsys):
    words = "estimate llama-3-8b --recipe zero --ranks 8 --zero 3 --deepspeed --tokens 512".split()
    assert main([*words, "--prefetch-bucket-size", "1000", "--max-reuse-distance", "0"]) == 0
    said = capsys.readouterr().out
    assert "DeepSpeed: data 8, ZeRO 3, library=deepspeed, prefetch_bucket_size=1000, max_" in said
    few = step(prefetch_bucket_size=1000, max_reuse_distance=0)
    assert text(few.peak.bytes) in said
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["peak"]["bytes"] == step().peak.bytes
    assert told["run"]["devices"]["library"] == "deepspeed"
    assert main([*words, "--cpu-offload"]) == 2
    assert "which is --zero 3 without --deepspeed" in capsys.readouterr().err
    assert main([*words, "--no-memory-efficient-linear"]) == 0
    said = capsys.readouterr().out
    assert "ZeRO 3, library=deepspeed, memory_efficient_linear=False" in said
    assert text(step(memory_efficient_linear=False).peak.bytes) in said
    fsdp = ["estimate", "llama-3-8b", "--fsdp", "8", "--tokens", "64"]
    assert main([*fsdp, "--max-live-parameters", "1"]) == 2
    assert "--max-live-parameters 1 beside --fsdp" in capsys.readouterr().err
