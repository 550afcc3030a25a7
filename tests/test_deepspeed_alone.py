"""DeepSpeed's ZeRO on one rank alone, derived, against what one held: tests/deepspeed1.json."""

import json
from pathlib import Path

import pytest

from memlab import Model, Run, Sharding, estimate
from memlab.cli import main
from memlab.step import simulate
from memlab.units import text

RECORD = json.loads(Path(__file__, "../deepspeed1.json").resolve().read_text())
LLAMA = Model.preset("llama-3.2-1b")


@pytest.mark.parametrize("found", RECORD["runs"], ids=str)
def test_one_real_rank_held_what_is_derived(found):
    run = Run.from_dict(found["run"])
    (measured,) = found["ranks"]
    derived = simulate(Model.from_config(found["config"]), found["recipe"], run)
    assert measured["peak"] == derived.peak.bytes
    assert measured["first_peak"] == derived.peak.first_step_bytes
    for moment, held in derived.held.items():
        assert measured[moment] == held, moment
    for term in ("weights", "master", "optimizer"):
        assert measured["contents"].get(term, 0) == derived.peak.contents.get(term, 0), term


def test_the_record_has_each_stage():
    runs = [Run.from_dict(found["run"]).devices for found in RECORD["runs"]]
    assert {(d.zero, d.data, d.by_deepspeed) for d in runs} == {(z, 1, True) for z in (1, 2, 3)}
    assert RECORD["command"] == "python tools/deepspeed_runs.py one > tests/deepspeed1.json"


def test_one_rank_has_all_16_bytes_a_parameter_and_the_bucket():
    run = Run(tokens=64, devices=Sharding.of(zero=2, library="deepspeed"))
    ledger, P = estimate(LLAMA, "zero", run), LLAMA.parameter_count
    assert ledger["weights"].derived == 2 * P
    assert ledger["optimizer"].derived == pytest.approx(8 * P, rel=1e-3)
    assert ledger.total() > 16 * P


def test_ranks_that_divide_nothing_are_still_refused_where_no_library_is_named():
    with pytest.raises(ValueError, match="zero=2 with data=1"):
        simulate(LLAMA, "zero", Run(tokens=64, devices=Sharding(zero=2)))
    with pytest.raises(ValueError, match="data=1: 2 ranks or more divide with ZeRO"):
        Sharding.of(zero=3, reshard_after_forward=False)


def test_the_shell_answers_for_one_rank(capsys):
    words = "estimate llama-3.2-1b --recipe zero --zero 2 --tokens 64"
    assert main([*words.split(), "--deepspeed"]) == 0
    run = Run(tokens=64, devices=Sharding.of(zero=2, library="deepspeed"))
    assert text(simulate(LLAMA, "zero", run).peak.bytes) in capsys.readouterr().out
    assert main(words.split()) != 0
    assert "give --ranks N, more than 1" in capsys.readouterr().err
