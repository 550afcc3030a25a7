"""Any causal language model of transformers, traced by its config.json alone."""

import json
import random

import causal_types
import pytest
import torch

import memlab
from memlab import Model, Recipe, Run
from memlab.cli import main
from memlab.lab.causal import Causal, read
from memlab.lab.causal_at_rest import at_rest
from memlab.lab.trace_run import trace_run
from memlab.measure.grouped_products import grouped_products
from memlab.run.recipe_choice import PRECISIONS

ROWS = json.loads(causal_types.OUT.read_text(encoding="utf-8"))
QUICK = sorted(row["type"] for row in ROWS if row["how"] == "traced" and row.get("seconds", 99) < 6)
SMALL = Run(batch=2, tokens=32)


def test_every_type_of_transformers_is_in_the_table():
    assert [row["type"] for row in ROWS] == causal_types.names(), (
        "transformers has other types now: python tools/causal_types.py --write"
    )


def test_nine_of_ten_types_are_answered_and_every_refusal_has_a_reason():
    refused = [row for row in ROWS if row["how"] == "refused"]
    assert len(refused) <= len(ROWS) / 10
    assert all(len(row["why"]) > 20 for row in refused)


def test_the_readme_says_how_many():
    answered = sum(row["how"] != "refused" for row in ROWS)
    page = causal_types.OUT.parent.parent / "README.md"
    text = " ".join(page.read_text(encoding="utf-8").split())
    assert f"{answered} of the {len(ROWS)} types" in text


def test_what_was_traced_was_what_a_real_step_took():
    compared = [row for row in ROWS if "real" in row]
    assert len(compared) > 0.85 * len(ROWS)
    assert {row["type"]: row["traced"] - row["real"] for row in compared} == dict.fromkeys(
        [row["type"] for row in compared], 0
    )


@pytest.mark.sample(1)
@pytest.mark.parametrize("family", random.Random(15).sample(QUICK, min(6, len(QUICK))))
def test_a_type_is_asked_again(family):
    row = causal_types.asked(family)
    kept = next(each for each in ROWS if each["type"] == family)
    assert row["real"] == row["traced"]
    assert {**row, "seconds": 0} == {**kept, "seconds": 0}


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_experts_take_what_a_real_step_takes(precision):
    model = Causal(causal_types.small("ernie4_5_moe"))
    traced = trace_run(model, precision, Run.cpu(batch=2, tokens=32))
    assert traced.peak == causal_types.real(model, precision)
    assert any("no byte depends on the routing" in line for line in traced.notes)


def test_checkpoints_save_activations():
    model = Causal(causal_types.small("phi"))
    plain = trace_run(model, "bf16", SMALL)
    again = trace_run(model, "bf16", SMALL.replace(checkpoint="block"))
    assert again.held["after_forward"] < plain.held["after_forward"]


@pytest.mark.parametrize(("inputs", "outputs"), [(8, 5), (8, 8), (6, 8)])
def test_grouped_products_without_values_are_like_those_with_them(inputs, outputs):
    def made(device):
        a, b = torch.ones(8, inputs, device=device), torch.ones(4, outputs, inputs, device=device)
        ends = torch.tensor([2, 4, 6, 8], dtype=torch.int32, device=device)
        try:
            return torch._grouped_mm(a, b.mT, offs=ends).stride()
        except RuntimeError as error:
            return str(error).splitlines()[0]

    real = made("cpu")
    assert real == ("strides should be multiple of 16 bytes" if inputs == 6 else (8, 1))
    with grouped_products():
        assert made("meta") == real
    assert "BF16" in made("meta")


def test_what_stays_comes_from_the_shapes(tmp_path, capsys):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(causal_types.small("codegen")), encoding="utf-8")
    model = Causal(path)
    traced = trace_run(model, "fp32", SMALL)
    ledger = at_rest(model, PRECISIONS["fp32"])
    assert {row.term: row.derived for row in ledger.rows} == {
        name: traced.rows[name] for name in ("weights", "gradients", "optimizer")
    }
    assert main(["estimate", str(path), "--precision", "fp32", "--tokens", "32"]) == 0
    printed = capsys.readouterr().out
    assert f"memlab trace {path} --precision fp32 --tokens 32" in printed
    assert "what stays" in printed
    assert main(["estimate", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["peak"] is None and found["rows"]["activations"] is None
    assert found["rows"]["weights"] == traced.rows["weights"]
    assert found["parameters"] == model.parameter_count


@pytest.mark.parametrize(
    ("recipe", "words"), [("nf4", "other="), ("muon", "treats hidden matrices apart")]
)
def test_what_the_shapes_do_not_say_is_refused(recipe, words):
    named = {
        "nf4": Recipe(name="nf4", weights="nf4", other="bf16"),
        "muon": Recipe(optimizer="muon"),
    }
    with pytest.raises(ValueError, match=words):
        at_rest(Causal(causal_types.small("phi")), named[recipe])


# --- multimodal models


def test_a_multimodal_model_stands_for_its_text_and_says_what_is_left_out():
    import transformers

    config = causal_types.small("gemma3")
    whole = Causal(config)
    text = Causal({**config["text_config"], "model_type": "gemma3_text"})
    step = trace_run(whole, "bf16", SMALL)
    assert step.peak == trace_run(text, "bf16", SMALL).peak
    with torch.device("meta"):
        module = transformers.AutoModelForImageTextToText.from_config(whole.settings)
    left = sum(p.numel() for p in module.parameters()) - step.parameters
    assert step.notes[0].startswith("left out: all parts of this gemma3 but the text")
    assert f"{left:,} parameters" in step.notes[0]


def test_a_multimodal_model_whose_text_has_no_class_of_its_own():
    step = trace_run(Causal(causal_types.small("qwen3_vl")), "bf16", SMALL)
    assert step.peak > 0 and "this qwen3_vl but the text" in step.notes[0]


# --- what cannot be


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"model_type": "no_such"}, "'no_such' is not in transformers"),
        ({"model_type": "no_such", "auto_map": {}}, "its code is its own: see auto_map"),
        ({"hidden_size": 3}, "no 'model_type'"),
        ({"model_type": 3}, "no 'model_type'"),
        ({"model_type": "glm4", "quantization_config": {"bits": 4}}, "quantization_config"),
        ({"model_type": "phi", "hidden_size": "wide"}, "does not build this phi: .*hidden_size"),
        ({"model_type": "phi", "num_hidden_layers": 10**6}, "num_hidden_layers=1,000,000 is more"),
        ({"model_type": "bloom", "n_layer": 1001}, "n_layer=1,001 is more than 1,000, the deepest"),
        ({"model_type": "phi", "num_hidden_layers": 0}, "num_hidden_layers=0; at least 1"),
        (
            {"model_type": "gemma3", "text_config": {"num_hidden_layers": 10**6}},
            "num_hidden_layers=1,000,000 is more",
        ),
    ],
)
def test_a_config_is_refused_by_name(config, words):
    with pytest.raises(ValueError, match=words):
        Causal(config)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"dropout": 0.1}, "dropout=0.1: of a phi its config says that"),
        ({"window": 8}, "window=8"),
        ({"implementation": "memlab"}, "implementation='memlab': it has no phi"),
        ({"tokens": 100_000}, "100,000 is more than the 256 positions"),
        ({"micro_batches": 2}, "micro_batches=2 cannot be traced"),
    ],
)
def test_a_run_is_refused_by_name(changes, words):
    model = Causal(causal_types.small("phi"))
    with pytest.raises(ValueError, match=words):
        trace_run(model, "bf16", SMALL.replace(**changes))


def test_a_refusal_of_the_models_own_code_is_one_line():
    with pytest.raises(ValueError, match="does not build this dots3_note_text") as told:
        trace_run(Causal({"model_type": "dots3_note_text", "num_attention_heads": 3}), None, SMALL)
    assert "\n" not in str(told.value)


def test_a_described_type_is_described():
    config = causal_types.small("llama")
    assert isinstance(read(config), Model)
    assert isinstance(read(causal_types.small("phi")), Causal)


# --- the doors


def test_python_takes_a_path_or_a_dict(tmp_path):
    config = causal_types.small("phi")
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    figures = {memlab.trace(each, "bf16", SMALL).peak for each in (config, str(path), path)}
    assert len(figures) == 1


def test_the_shell_says_what_it_left_out(tmp_path, capsys):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(causal_types.small("gemma3")), encoding="utf-8")
    asked = ["trace", str(path), "--batch", "2", "--tokens", "32", "--precision", "bf16"]
    assert main(asked) == 0
    printed = capsys.readouterr().out
    assert "left out: all parts of this gemma3 but the text" in printed
    assert main([*asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["leaves_out"][0].startswith("left out: all parts of this gemma3")
    step = trace_run(read(path), "bf16", SMALL)
    assert (found["peak"]["bytes"], found["parameters"]) == (step.peak, step.parameters)
