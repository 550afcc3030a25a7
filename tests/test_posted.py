"""What other people's GPUs said: the readings are whole, and memlab's errors do not grow."""

import json
import re
from collections import Counter

import pytest
from depth import DEPTH, few
from posted import (
    gpjt,
    megatron,
    megatron_peak,
    packed,
    peft,
    readings,
    stored,
    tables,
    torchtune,
    torchtune_chunked,
    torchtune_compiled,
    torchtune_reserved,
)
from posted.answers import MAPPINGS, Answer, answer
from posted.described import Described, Refused
from posted.floor import floor

from memlab import MiB, Model, Recipe, Run, text
from memlab.cli import main
from memlab.recipe.least import least
from memlab.terms.adapters import Ia3
from memlab.terms.lora import Lora
from memlab.terms.workspaces import cublas_workspaces

UNITS = {"B": 1, "MB": 10**6, "GB": 10**9, "MiB": 2**20, "GiB": 2**30}
HOST = {"implementation": "memlab", "optimizer_impl": "forloop"}
AGAIN = "python tools/posted --write"


@pytest.fixture(scope="module")
def now():
    """Of the source whose steps take longest a part, and all else that can be answered, anew."""
    every = readings.read()
    long = few(19, [reading.id for reading in every if reading.source == "gpjt"])
    return [answer(each) for each in every if each.source != "gpjt" or each.id in long]


def test_every_reading_has_its_source_and_the_figure_that_was_printed():
    heads = readings.sources()
    assert set(MAPPINGS) - {"memlab"} <= set(heads) <= set(MAPPINGS)
    rows = [(head, row) for head in heads.values() for row in head["readings"]]
    assert len({row["id"] for _, row in rows}) == len(rows) == 755
    for head, row in rows:
        is_whole(head, row)


def is_whole(head, row):
    told = head["every"] | row
    assert head["licence"] and head["repository"] and head["not_stated"]
    assert "address" in told or (told["path"] and re.fullmatch("[0-9a-f]{9,10}", told["commit"]))
    said = float(told["printed"]) * UNITS[told["unit"]]
    assert told["bytes"] == pytest.approx(said, abs=1), row["id"]
    assert told["kind"] in readings.KINDS and told["counter"] and told["device"]


def test_no_reading_is_missed_by_more_than_before(now):
    before = {old.reading.id: old for old in stored.stored()}
    assert {old.reading.source for old in before.values()} == {new.reading.source for new in now}
    assert len(now) == len(before) or DEPTH == 1
    worse, other = [], []
    for new in now:
        old = before[new.reading.id]
        if old == new:
            continue
        lost = old.counted and not new.counted
        far = old.counted and new.counted and abs(new.error) > abs(old.error)
        (worse if lost or far else other).append(new.reading.id)
    assert not worse, f"memlab misses more than it did: {worse}"
    assert not other, f"these answers changed for the better or have a new reason; {AGAIN}: {other}"


def test_only_stated_rules_take_a_reading_out_of_the_count():
    out = [a for a in stored.stored() if a.bytes is not None and a.reason]
    ruled = {a.reading.id for a in out if a.reason == "a length was read from it"}
    assert ruled == set(peft.READ_FROM)
    left = [a for a in out if a.reading.id not in ruled]
    assert all(a.reason.startswith("cannot be: ") for a in left)
    assert sum(a.reason.startswith("cannot be: ") for a in out) == 3


def test_a_reason_is_one_for_many_readings():
    """A mapping refuses kinds of runs and never a row that it would miss."""
    reasons = Counter(a.reason for a in stored.stored() if a.bytes is None)
    assert len(reasons) <= 30 and min(reasons.values()) >= 1
    assert all(reason and not re.search(r"\d,\d{3}|%", reason) for reason in reasons)


def test_a_peak_below_its_weights_gradients_and_states_cannot_be():
    model, bf16 = Model.preset("llama-3.2-1b"), Recipe.named("bf16")
    P, told = model.parameter_count, {"tokens": 64}
    assert sum(least(model, bf16, Run(**told)).values()) == pytest.approx(8 * P, rel=1e-6)
    inside = least(model, bf16, Run(step_in_backward=True, **told))
    assert "gradients" not in inside and sum(inside.values()) == pytest.approx(6 * P, rel=1e-6)
    away = least(model, bf16, Run(offload=("states",), **HOST, **told))
    assert away == {"weights": 2 * P, "gradients": 2 * P}
    lora = Lora(8)
    trained = lora.parameter_count(model)
    adapted = least(model, bf16, Run(lora=lora, **told))
    assert sum(adapted.values()) == 2 * P + 16 * trained
    vectors = least(model, bf16, Run(adapter=Ia3(), **told))
    assert sum(vectors.values()) == 2 * P + 16 * Ia3().parameter_count(model)
    norms_alone = least(model, bf16, Run(frozen=("embedding", "attention", "feed_forward"), **told))
    norms = sum(t.count for t in model.tensors() if t.component == "norm")
    assert norms_alone["weights"] == 2 * P and norms_alone["gradients"] == 2 * norms
    assert least(model, bf16, Run(phase="decode", **told)) == {"weights": 2 * P}
    assert floor(Described(model, bf16, Run(), "resident")) == 0


def test_the_least_is_never_above_the_peak():
    for run in (
        Run(tokens=16),
        Run(tokens=16, lora=Lora(4)),
        Run(tokens=16, adapter=Ia3()),
        Run(tokens=16, step_in_backward=True),
        Run(tokens=16, frozen=("embedding",)),
        Run(tokens=16, offload=("states",), **HOST),
    ):
        said = Described(Model.preset("tiny-llama"), Recipe.named("fp32"), run)
        assert 0 < floor(said) <= said.bytes(), run


def test_the_shell_says_that_a_posted_peak_cannot_be(capsys):
    words = "estimate tiny-llama --tokens 32 --posted".split()
    assert main([*words, "1 MB"]) == 0
    assert (
        "it cannot be, for the weights, gradients and optimizer states" in capsys.readouterr().out
    )
    assert main([*words, "20 MB", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    found, peak = document["posted"], document["peak"]["bytes"]
    assert found["possible"] and found["least"] < peak < 20 * 10**6
    assert found["error"] == pytest.approx((peak - 20 * 10**6) / (20 * 10**6))
    assert main([*words, "20 MB", "--against", "bf16"]) != 0
    assert "leave out --against" in capsys.readouterr().err
    assert main([*words, "-1 MB"]) != 0


def test_the_tables_say_what_is_stored():
    assert tables.impossible(None).count("`litgpt-hub/") == 3
    assert tables.by_source(None).count("https://github.com/") == len(readings.sources())


def test_a_layer_of_megatron_is_the_published_sum():
    """34 · s · b · h without any split, 5 · a · s² · b more where attention is not fused."""
    what = {"ffn": 2048, "d_model": 512, "tp": 1, "kv": 8, "heads": 8, "seq": "1024", "cp": 1}
    what |= {"swiglu": False, "impl": "transformer_engine", "attention": None}
    values = 1024 * 4 * 512
    assert megatron_peak.layer(what, values) == 34 * values
    parallel = what | {"tp": 2, "sequence_parallel": True}
    assert megatron_peak.layer(parallel, values) == 17 * values
    unfused = megatron_peak.layer(what | {"attention": "unfused"}, values)
    assert unfused - 34 * values == 5 * 8 * 1024**2 * 4
    turns = {"layers": 32, "pp": 4, "vp": "1", "gpus": 8, "gbs": 8, "mbs": "1"}
    assert megatron_peak.in_flight(what | turns) == (8 - 1) * 4 + 1
    assert megatron_peak.in_flight(what | turns | {"vp": None}) == 8
    uneven = what | turns | {"last": [1, 0]}  # the loss is a chunk without layers
    assert megatron_peak.in_flight(uneven) == 4 and megatron_peak.stage(uneven) == 1
    assert megatron_peak.in_flight(uneven | {"last": [2]}) == megatron_peak.stage(uneven) * 2


def test_the_page_repeats_what_the_code_says():
    page = (readings.ROOT / "book" / "posted.md").read_text(encoding="utf-8")
    assert text(cublas_workspaces(8, threads=1)) == "8.125 MiB" and "8.125 MiB each" in page
    assert text(cublas_workspaces(9, threads=1)) == "32 MiB" and "32 MiB each" in page
    llama = Model.preset("llama-2-13b")
    (up,) = [t for t in llama.tensors() if t.name.endswith(".up")]
    assert 2 * up.numel == 135 * MiB and packed.allocated([2 * up.numel]) == 136 * MiB
    more = packed.held(llama) - sum(packed.weights(llama))
    assert round(more / MiB) == 120 and "add up to 120 MiB" in page
    usual = gpjt.describe(
        next(r for r in readings.read() if r.source == "gpjt" and r.what["tokens"] > 1)
    )
    kept = sum(t.count for t in usual.model.tensors() if t.component not in ("embedding", "norm"))
    assert f"{2 * kept / 2**30:.1f}" == "14.0" and "14.0 GiB more for Llama-3-8B" in page


def test_a_stage_of_megatron_keeps_the_last_inputs_of_its_chunks():
    """Their own bytes and their gradients', in 16 bits, on every stage but the first."""
    kept, without, errors = {}, [], []
    for a in stored.stored():
        if a.reading.source == "megatron" and a.counted:
            held = dict(MAPPINGS["megatron"].describe(a.reading).more).get(megatron.INPUTS)
            assert (held is not None) == (a.reading.what["pp"] > 1 and a.reading.id[-3:] != "max")
            if held:
                kept[a.reading.id.split("/")[1]] = held
                without.append((a.bytes - held) / a.reading.bytes - 1)
                errors.append(a.error)
    assert kept["gpt3_7b_tp1_pp4_memory_speed"] == 2 * 8 * 8192 * 4096 * 2 == 2**30
    assert kept["gpt3_mcore_te_tp1_pp4_vp1"] == 2 * 3 * 4 * 1024 * 512 * 2
    assert kept["gpt3_mcore_te_tp2_pp2_cp2"] == 2 * (4 * 512 * 512 // 2) * 2
    assert (len(errors), round(min(without), 3), round(max(without), 3)) == (39, -0.054, -0.011)
    assert round(min(errors), 3) == -0.022 and max(errors) <= 0


@pytest.mark.parametrize("kind", [pytest.param("full", marks=pytest.mark.deep), "lora"])
def test_what_torchtune_reserves_is_traced(kind):
    kept = json.loads(torchtune.RESERVED.read_text(encoding="utf-8"))
    assert set(kept) == {"full", "lora"}
    assert torchtune_reserved.traced(kind).reserved() == kept[kind]


@pytest.mark.deep
def test_kernels_and_more_steps_do_not_explain_what_a_full_fine_tune_reserved():
    kept = json.loads(torchtune.RESERVED.read_text(encoding="utf-8"))["full"]
    told = torchtune_reserved.traced("full", steps=6, kernels=torchtune_reserved.Scratch)
    assert 0 < told.reserved() - kept <= 2 * MiB


@pytest.mark.deep
def test_what_torchtune_compiled_is_traced():
    """Of the five rows the one that takes least; `python tools/posted --compiled` traces all."""
    kept = json.loads(torchtune_chunked.COMPILED.read_text(encoding="utf-8"))
    assert set(kept) == set(torchtune_compiled.ROWS) == set(torchtune_chunked.ROWS.values())
    assert torchtune_compiled.traced("chunks").allocated() == kept["chunks"]


def test_what_a_mapping_refuses_is_refused_by_name():
    (reading,) = [r for r in readings.read() if r.id == "vllm/llama3-8b/act"]
    with pytest.raises(Refused, match="limits are not stated"):
        MAPPINGS["vllm"].describe(reading)
    assert Answer(reading, None, "x").counted is False
    assert json.loads(stored.PATH.read_text(encoding="utf-8"))[reading.id][0] is None
