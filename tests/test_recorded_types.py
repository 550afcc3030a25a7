"""Types that nobody wrote down: answered from a recording, beside their own code and real steps."""

import importlib.metadata
import json
import random
import subprocess
import sys

import causal_types
import pytest
from depth import DEPTH, few

from memlab import Model, Recipe, Run, Sharding
from memlab.adapters import Lora
from memlab.base.not_described import NotDescribed
from memlab.cli import main
from memlab.families import RECORDED, has_config, record_of
from memlab.families.recorded import recording, variant
from memlab.lab.causal import Causal
from memlab.lab.network_check import apart, drawn, sizes
from memlab.lab.network_type import usual_of
from memlab.measure.network_letters import Letters
from memlab.model.config import NotRecorded
from memlab.recipe.resident import resident
from memlab.run import CacheAlone
from memlab.step import simulate

TYPES = few(2, RECORDED)
VERSIONS = ("torch", "transformers")


def said(family):
    """What recorded it, and what is here: a difference may be the library's."""
    made = recording(family)["versions"]
    here = {name: importlib.metadata.version(name).partition("+")[0] for name in VERSIONS}
    return f"{family} was recorded with {made}; installed are {here}"


@pytest.mark.parametrize("family", TYPES)
def test_a_type_is_played_as_its_own_code_runs(family):
    for config, recipe, run in drawn(family, 2 if DEPTH == 1 else 12, 3701 + DEPTH):
        found = apart(config, recipe, run)
        assert not found, (said(family), recipe, run.said(), config, found)


@pytest.mark.parametrize("family", TYPES)
def test_a_real_step_on_this_machine_is_the_played_one(family):
    config = sizes(random.Random(3702), family)
    run = Run.cpu(batch=causal_types.BATCH, tokens=causal_types.TOKENS)
    played = simulate(Model.from_config(config), "fp32", run)
    assert played.peak.bytes == causal_types.real(Causal(config)), said(family)


@pytest.mark.parametrize("family", RECORDED)
def test_parameters_are_those_of_the_type(family):
    for seed in (1, 2):
        config = sizes(random.Random(seed), family)
        assert Model.from_config(config).parameter_count == Causal(config).parameter_count


def test_every_type_is_one_that_has_no_record():
    assert "nemotron" in RECORDED
    for family in RECORDED:
        assert not has_config(family)
        assert set(recording(family)["versions"]) == {"torch", "transformers"}


@pytest.mark.parametrize("family", RECORDED)
def test_no_class_has_a_window_where_a_config_says_none(family):
    assert not usual_of(family).get("sliding_window")


def test_a_number_that_changes_no_byte_may_be_any_but_null():
    config = sizes(random.Random(6), "cohere")
    peaks = [
        simulate(Model.from_config(config | more), "bf16", Run(tokens=64)).peak.bytes
        for more in ({}, {"logit_scale": 0.8})
    ]
    assert peaks[0] == peaks[1]
    pinned = record_of("cohere").recorded
    assert variant(pinned, {"logit_scale": None}) == "logit_scale=null"
    assert variant(pinned, {"logit_scale": 0}) == "logit_scale=0"
    assert variant({"attn": {"alibi": True, "clip": None}}, {"attn": {"alibi": True}}) == ""
    assert variant({"attn": {"alibi": True}}, {"attn": {"alibi": False}})


def test_a_size_is_a_product_of_letters_or_of_constants():
    letters = Letters({"N": 29, "D": 131 * 29, "T": 8 * 107}, {}, [1408])
    assert [letters.of(n) for n in (856, 2816, 3 * 3799)] == ["T", "2816", "3·D"]
    with pytest.raises(ValueError, match="26 is no product"):
        letters.of(26)


def small(**more):
    config = sizes(random.Random(5), "nemotron")
    return config | {"num_hidden_layers": 3} | more


def test_an_estimate_needs_no_torch_and_reads_one_file(tmp_path):
    path = tmp_path / "nemotron.json"
    path.write_text(json.dumps(small()), encoding="utf-8")
    code = f"""
import builtins, io, sys
class No:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in ("torch", "transformers", "numpy"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, No())
read, opened = [], builtins.open
builtins.open = lambda file, *a, **k: (read.append(str(file)), opened(file, *a, **k))[1]
import memlab
from memlab.step import simulate
simulate(memlab.Model.preset("llama-3.2-1b"), "bf16", memlab.Run(tokens=16))
assert not read, read
from memlab.cli import main
assert main(["estimate", {str(path)!r}, "--tokens", "64", "--precision", "bf16"]) == 0
names = [name for name in read if "networks" in name]
assert len(names) == 1 and names[0].endswith("nemotron.json"), read
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert not done.returncode, done.stderr
    assert "the peak, in" in done.stdout


def test_devices_and_micro_batches_are_the_engines():
    model, run = Model.from_config(small()), Run(batch=2, tokens=64)
    whole = simulate(model, "bf16", run)
    four = Sharding(data=4, zero=3)
    shared = simulate(model, "bf16", run.replace(devices=four))
    assert shared.rows["weights"] == resident(model, Recipe.named("bf16"), four)["weights"]
    assert shared.rows["activations"] == whole.rows["activations"]
    again = simulate(model, "bf16", run.replace(micro_batches=3))
    assert again.peak.contents["gradients"] == whole.rows["weights"]  # those of the first one
    alone = simulate(model, "bf16", run.replace(devices=Sharding(data=4)))
    assert alone.peak.bytes > whole.peak.bytes  # DDP's buckets


@pytest.mark.parametrize(
    ("how", "named"),
    [
        ({"texts": "packed"}, "texts='packed'"),
        ({"dropout": 0.1}, "dropout=0.1"),
        ({"loop": "dpo"}, "loop='dpo'"),
        ({"loop": "keeps-outputs"}, "keys and values is not supported for .* with use_cache=False"),
        ({"loss": "chunked"}, "loss='chunked'"),
        ({"offload": ("saved",)}, "offload="),
        ({"attention": "eager"}, "attention='eager'"),
        ({"lora": Lora(8, ("q",))}, "not recorded"),
        ({"devices": Sharding(tensor=2)}, "tensor parallelism"),
        ({"devices": Sharding(pipeline=2), "micro_batches": 2}, "pipeline"),
        ({"implementation": "memlab"}, "not described for memlab"),
    ],
)
def test_what_no_recording_covers_is_refused_by_name(how, named):
    run = {"batch": 4, "tokens": 64, "micro_batches": 1} | how
    with pytest.raises(ValueError, match=named):
        simulate(Model.from_config(small()), "bf16", Run(**run))


def test_a_refusal_that_a_rehearsal_answers_is_not_described():
    with pytest.raises(NotDescribed, match="texts='packed' is not supported for nemotron"):
        simulate(Model.from_config(small()), "bf16", Run(tokens=64, texts="packed"))


def test_a_config_that_says_otherwise_is_refused_and_estimate_names_the_trace(capsys, tmp_path):
    config = small(mlp_bias=True, rope_parameters={"partial_rotary_factor": 0.25})
    with pytest.raises(NotRecorded, match="mlp_bias=true, partial_rotary_factor=0.25 is not"):
        Model.from_config(config)
    path = tmp_path / "other.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    assert main(["estimate", str(path), "--tokens", "64"]) == 0
    printed = capsys.readouterr().out
    assert "mlp_bias=true, partial_rotary_factor=0.25 is not supported" in printed
    assert "memlab trace" in printed


def test_a_call_is_answered_with_its_cache():
    from memlab.step.calls import prefill

    with pytest.raises(CacheAlone, match="phase='prefill' is not supported for nemotron"):
        prefill(Model.from_config(small()), "bf16", Run(phase="prefill", tokens=64))


def test_fit_finds_the_longest_sequence(tmp_path, capsys):
    path = tmp_path / "nemotron.json"
    path.write_text(json.dumps(small(max_position_embeddings=4096)), encoding="utf-8")
    assert main(["fit", str(path), "--on", "1 GB", "--batch", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["value"] > 64


def test_its_record_is_that_of_its_class():
    known = record_of("nemotron")
    assert known.shape["kv_heads"] == ("num_key_value_heads", None)
    assert known.modules["up"] == "mlp.up_proj" and known.layers_path == "model.layers"
    assert known.recorded == {
        "attention_bias": False,
        "attention_dropout": 0.0,
        "hidden_act": "relu2",
        "mlp_bias": False,
        "partial_rotary_factor": 0.5,
    }
