"""Multimodal models whose text memlab describes: its closed form, and what is left out, counted."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import causal_types
import pytest
import torch

from memlab import Model, Run
from memlab.cli import main
from memlab.lab.causal import Causal
from memlab.lab.text_part import text_part
from memlab.lab.trace_run import trace_run
from memlab.run.recipe_choice import PRECISIONS
from memlab.step import simulate

WHOLES = ("gemma3", "llama4", "mistral3", "internvl", "kimi_k25", "voxtral", "granite_speech")
# https://huggingface.co/google/gemma-3-4b-it, config.json: its text says little of its shape.
GEMMA = {
    "model_type": "gemma3",
    "text_config": {
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "model_type": "gemma3_text",
        "num_hidden_layers": 34,
        "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
        "sliding_window": 1024,
    },
    "torch_dtype": "bfloat16",
    "vision_config": {
        "hidden_size": 1152,
        "image_size": 896,
        "intermediate_size": 4304,
        "model_type": "siglip_vision_model",
        "num_attention_heads": 16,
        "num_hidden_layers": 27,
        "patch_size": 14,
        "vision_use_head": False,
    },
}
# The page of that model: 4,300,079,472 parameters, of which the text has 3,880,263,168.
TEXT, TOWER = 3_880_263_168, 419_816_304
LINE = f"left out: all parts of this gemma3 but the text ({TOWER:,} parameters, "


@pytest.fixture
def gemma(tmp_path: Path) -> Iterator[str]:
    folder = tmp_path / "gemma-3-4b-it"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(GEMMA), encoding="utf-8")
    yield str(folder)


def small(family: str) -> dict[str, Any]:
    """The config of a whole with small text, and the towers of its class."""
    import transformers

    whole = transformers.CONFIG_MAPPING[family]()
    text = whole.get_text_config(decoder=True).model_type
    return whole.to_dict() | {"text_config": causal_types.small(text)}


@pytest.mark.sample(5)
@pytest.mark.parametrize("family", WHOLES)
@pytest.mark.parametrize("precision", ["bf16", "autocast-bf16"])
def test_its_closed_form_is_what_its_own_code_takes(tmp_path, family, precision):
    path = tmp_path / "whole.json"
    path.write_text(json.dumps(small(family)), encoding="utf-8")
    model = text_part(path)
    assert model is not None and model.family != family and model.name == "whole"
    recipe = PRECISIONS[precision]
    for run in (Run(batch=2, tokens=32), Run.cpu(batch=2, tokens=32, attention="eager")):
        assert simulate(model, recipe, run).peak.bytes == trace_run(Causal(path), recipe, run).peak


@pytest.mark.parametrize("family", ["gemma3", "mistral3", "internvl", "voxtral"])
def test_what_is_left_out_is_every_tensor_outside_the_text(family):
    import transformers

    whole = Causal(small(family))
    name = "MultimodalLM" if family == "voxtral" else "ImageTextToText"
    with torch.device("meta"):
        module = getattr(transformers, f"AutoModelFor{name}").from_config(whole.settings)
    text = ("language_model", "lm_head")
    outside = {
        id(each): each.numel()
        for key, each in module.named_parameters()
        if not any(part in text for part in key.split("."))
    }
    assert whole.left_out() == sum(outside.values()) > 0


def test_a_published_config_is_filled_in_by_its_class(gemma):
    model = text_part(gemma)
    assert model is not None
    assert (model.family, model.name, model.parameter_count) == (
        "gemma3_text",
        "gemma-3-4b-it",
        TEXT,
    )
    assert (model.heads, model.kv_heads, model.head_dim, model.vocab) == (8, 4, 256, 262_208)
    assert model.config["dtype"] == "bfloat16"


def test_estimate_gives_the_peak_and_counts_what_it_left_out(gemma, capsys):
    asked = ["estimate", gemma, "--tokens", "1024"]
    assert main(asked) == 0
    printed = capsys.readouterr().out
    assert "gemma-3-4b-it · bf16 · 1 x 1024 tokens" in printed and "the peak, in " in printed
    assert f"{LINE}800.7 MiB)" in printed
    assert main([*asked, "--precision", "fp32"]) == 0
    assert f"{LINE}1.564 GiB)" in capsys.readouterr().out
    assert main([*asked, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["parameters"] == TEXT and told["leaves_out"][0].startswith(LINE)
    assert main(["estimate", gemma, "--against", "zero"]) == 0
    assert LINE in capsys.readouterr().out


def test_fit_and_explain_say_it_too(gemma, capsys):
    """Of fewer layers, which take a search less long."""
    config = json.loads(Path(gemma, "config.json").read_text(encoding="utf-8"))
    config["text_config"]["num_hidden_layers"] = 7
    Path(gemma, "config.json").write_text(json.dumps(config), encoding="utf-8")
    for last in ([], ["--json"]):
        main(["fit", gemma, "--on", "H100 80GB", "--batch", "1", "--tokens", "1024", *last])
        assert LINE in capsys.readouterr().out
        asked = ["explain", gemma, "--tokens", "1024", "--seen", "40 GiB"]
        assert main([*asked, *last]) == 0
        assert LINE in capsys.readouterr().out
    main(["fit", gemma, "--on", "H100 80GB", "--tokens", "1024", "--json"])
    assert json.loads(capsys.readouterr().out)["leaves_out"][0].startswith(LINE)


def test_a_preset_leaves_nothing_out(capsys):
    main(
        [
            "fit",
            "gemma-3-1b",
            "--on",
            "H100 80GB",
            "--batch",
            "1",
            "--tokens",
            "64",
            "--precision",
            "bf16",
            "--json",
        ]
    )
    assert json.loads(capsys.readouterr().out)["leaves_out"] == []


def test_an_engine_loads_every_part(gemma, capsys):
    assert main(["serve", gemma, "--on", "H100 80GB"]) == 2
    assert f"vllm loads every part of a model; {LINE}" in capsys.readouterr().err


def test_what_is_described_of_neither_stays_with_the_shapes(tmp_path, capsys):
    """Its text reads both ways, which no closed form does; its towers are counted there too."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(small("paligemma")), encoding="utf-8")
    assert text_part(path) is None
    assert main(["estimate", str(path)]) == 0
    printed = capsys.readouterr().out
    assert "what stays from step to step" in printed and "left out: all parts" in printed


def test_a_config_of_text_alone_has_no_part(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(causal_types.small("phi")), encoding="utf-8")
    assert text_part(path) is None


def test_without_torch_it_is_an_unknown_type(gemma):
    """The reader that needs no torch refuses the whole by name, and takes its text's own config."""
    with pytest.raises(ValueError, match="unknown model_type 'gemma3'"):
        Model.from_config(gemma)
