"""DeepSpeed's ZeRO 1 and 2, derived, against what two real ranks held: tests/deepspeed.json."""

import json
from pathlib import Path

import pytest

from memlab import Model, Run, Sharding, estimate
from memlab.cli import main
from memlab.step import simulate
from memlab.units import text

RECORD = json.loads(Path(__file__, "../deepspeed.json").resolve().read_text())
LLAMA = Model.preset("llama-3-8b")


def asked(found):
    return Model.from_config(found["config"]), found["recipe"], Run.from_dict(found["run"])


@pytest.mark.parametrize("found", RECORD["runs"], ids=str)
def test_two_real_ranks_held_what_is_derived(found):
    for rank, measured in enumerate(found["ranks"]):
        derived = simulate(*asked(found), rank=rank)
        assert measured["peak"] == derived.peak.bytes
        assert measured["first_peak"] == derived.peak.first_step_bytes
        for moment, held in derived.held.items():
            assert measured[moment] == held, moment
        for term in ("weights", "master", "optimizer"):
            assert measured["contents"].get(term, 0) == derived.peak.contents.get(term, 0), term


def test_the_record_has_each_stage_with_buffers_and_without():
    kinds = {
        (devices.zero, devices.config.contiguous_gradients, devices.config.overlap_comm)
        for devices in (Run.from_dict(found["run"]).devices for found in RECORD["runs"])
    }
    assert kinds == {(1, 1, 0), (2, 1, 0), (2, 1, 1), (2, 0, 0), (2, 0, 1)}
    assert all(len(found["ranks"]) == 2 for found in RECORD["runs"])
    assert RECORD["command"].startswith("python tools/deepspeed_runs.py")


def step(**how):
    devices = Sharding.of(**{"data": 8, "zero": 2} | how)
    return simulate(LLAMA, "zero", Run(tokens=512, devices=devices))


def peak(**how):
    return step(**how).peak


def test_a_bucket_is_there_whatever_the_size_of_the_model():
    def made(**how):
        log = step(zero=1, **how).log
        span = log.events[log.marks["second.backward"] : log.marks["second.optimizer"]]
        return [change for r, change, _ in span if r and r.op == "ipg_bucket" and change > 0]

    assert made() == [2 * 500_000_000]
    assert made(overlap_comm=True) == 2 * made()
    assert made(contiguous_gradients=False) == []
    one = peak(zero=1)
    assert one.contents["reduce buckets"] == made()[0]
    assert one.contents["weights"] == 2 * LLAMA.parameter_count  # stage 1 and 2 keep them whole
    assert peak().bytes < one.bytes - LLAMA.parameter_count  # gradients of the others are dropped


def test_the_fullest_rank_is_found():
    run = Run(tokens=512, devices=Sharding(data=8, zero=2))
    every = [simulate(LLAMA, "zero", run, rank=rank).peak.bytes for rank in range(8)]
    assert simulate(LLAMA, "zero", run).peak.bytes == max(every) > min(every)


@pytest.mark.parametrize(
    ("said", "recipe", "message"),
    [
        ({"loop": "sft"}, "fp32", "loop='sft' is not described beside DeepSpeed's"),
        ({"holds": ("model",)}, "fp32", "holds=.* is not described beside DeepSpeed"),
        ({}, "bf16", "which updates an fp32 copy; known: 'zero', 'fp32'"),
        ({}, "autocast", "autocast='bf16' is not described"),
        ({}, "megatron", "recipe 'megatron' is not described beside DeepSpeed's"),
    ],
    ids=str,
)
def test_what_is_not_described_is_refused_by_name(said, recipe, message):
    run = Run(tokens=64, devices=Sharding(data=8, zero=2), **said)
    with pytest.raises(ValueError, match=message):
        estimate(LLAMA, recipe, run)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"zero": 3, "overlap_comm": True}, "the step of zero=3 is FSDP2's"),
        ({"zero": 2, "reduce_bucket_size": 0}, "reduce_bucket_size=0; at least 1 value"),
        ({"zero": 2, "contiguous_gradients": 1}, "contiguous_gradients=1; True or False"),
    ],
    ids=str,
)
def test_a_config_fails_by_name(said, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Sharding.of(data=8, **said)


@pytest.mark.parametrize(
    "said",
    [
        {"zero": 1, "reduce_bucket_size": 1000},
        {"zero": 2, "overlap_comm": True},
    ],
    ids=str,
)
def test_one_rank_has_no_config_of_a_library_that_is_not_named(said):
    with pytest.raises(ValueError, match="with data=1: 2 ranks or more divide with ZeRO"):
        Sharding.of(data=1, **said)


def test_the_shell_answers_with_deepspeeds_peak(capsys):
    words = "estimate llama-3-8b --recipe zero --ranks 8 --zero 2 --tokens 512".split()
    assert main([*words, "--reduce-bucket-size", "1000000", "--overlap-comm"]) == 0
    said = capsys.readouterr().out
    assert "one rank of 8 (DeepSpeed: data 8, ZeRO 2, reduce_bucket_size=1000000, over" in said
    assert text(peak(reduce_bucket_size=10**6, overlap_comm=True).bytes) in said
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["peak"]["bytes"] == peak().bytes
    assert told["run"]["devices"]["reduce_bucket_size"] == 5 * 10**8
