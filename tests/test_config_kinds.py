"""Every type of config that transformers has, pasted: answered, or named as what it is.

A whole whose text is of a described type is answered by that text to the byte of the command line;
what is refused is told what it is, and which command answers.
"""

import json
import re
from functools import cache

import pytest
import text_sizes as sizes_tool
import type_kinds as kinds_tool
from causal_types import small as small_text
from test_calculator import agree, folder, lookup  # noqa: F401  fixtures

from memlab.cli import main
from memlab.families import has_config
from memlab.lab.text_part import text_part
from memlab.model import type_kinds
from memlab.model.kind import WrongKind
from memlab.page import config_words
from memlab.page.answer import answered, outcome
from memlab.page.pasted import flat
from memlab.page.text_sizes import OF_WHOLES, SIZES
from memlab.page.wholes import without

transformers = pytest.importorskip("transformers")
from transformers.models.auto import modeling_auto as auto  # noqa: E402
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES  # noqa: E402

SIZE = {"tokens": 96, "batch": 2}
READERS = {*auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES}
READERS |= {*auto.MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES}
# What a refusal leads to: a command, or the key of a config that is needed or in the way.
WAYS = (
    r"memlab (estimate|trace|rehearse) ",
    r"config has no '\w+'",
    r"the page needs [\w.]+",
    r"; give head_dim",
)
PLACEHOLDERS = ("this value", "known: arcee")


@cache
def usual(family):
    """The class's own config as its file has it; None where the class refuses its defaults."""
    try:
        return json.loads(json.dumps(transformers.CONFIG_MAPPING[family]().to_dict()))
    except Exception:  # each class with an error of its own
        return None


def described(family):
    """Whether a whole has text of a described type, which no key of its class makes another."""
    text = (usual(family) or {}).get("text_config") or {}
    twisted = text.get("use_bidirectional_attention")
    return has_config(text.get("model_type")) and not type_kinds.kind_of(family) and not twisted


WHOLES = sorted(family for family in READERS if described(family))


def whole(family, **text):
    """A config of a whole, with so much of its text."""
    made = {k: v for k, v in usual(family).items() if k.endswith("_config")}
    kind = made["text_config"]["model_type"]
    return made | {"model_type": family, "text_config": {"model_type": kind} | text}


def test_the_kinds_are_those_of_the_installed_transformers():
    kept = {name: kind for kind, names in type_kinds.TYPES.items() for name in names.split()}
    assert kept == kinds_tool.kinds()
    assert len(kept) == sum(len(names.split()) for names in type_kinds.TYPES.values()), "once each"


def test_the_sizes_are_those_of_its_classes():
    assert sizes_tool.sizes() == SIZES and sizes_tool.of_wholes() == OF_WHOLES


@pytest.mark.sample(60)
@pytest.mark.parametrize("family", sorted(CONFIG_MAPPING_NAMES))
def test_every_type_is_answered_or_named_with_a_way_out(lookup, family):  # noqa: F811
    config = usual(family) or {"model_type": family}
    found = outcome(json.dumps({"model": "config", "config": config, "tokens": 512}), lookup)
    told = str(found.get("error", found.get("verdict")))
    assert not [each for each in PLACEHOLDERS if each in told]
    if kind := type_kinds.kind_of(config["model_type"]):
        if not config.get("is_decoder"):
            assert type_kinds.KINDS[kind] in told and "memlab rehearse -- python" in told
        return
    if "error" in found:
        assert [way for way in WAYS if re.search(way, told)], told
        return
    assert found["rows"] and found["total"]
    part = config.get("text_config") or (config.get("thinker_config") or {}).get("text_config")
    assert ("Its text, " in told or "What its text, " in told) == isinstance(part, dict), told


@pytest.mark.sample(6)
@pytest.mark.parametrize("family", WHOLES)
def test_a_whole_is_answered_as_the_command_line_answers(tmp_path, capsys, lookup, family):  # noqa: F811
    """Of small text that says all sizes, and of one that leaves them to its class."""
    path = tmp_path / "config.json"
    kind = usual(family)["text_config"]["model_type"]
    for text in (small_text(kind) | {"num_hidden_layers": 12}, {"num_hidden_layers": 12}):
        config = whole(family, **text) | {"dtype": "bfloat16"}
        path.write_text(json.dumps(config), encoding="utf-8")
        model = text_part(path)
        found = outcome(json.dumps({"model": "config", "config": config} | SIZE), lookup)
        if model is None:
            assert "memlab estimate CONFIG answers" in found["error"]
            continue
        assert found["parameters"] == model.parameter_count
        assert main(["estimate", str(path), "--json", "--batch", "2", "--tokens", "96"]) == 0
        told = json.loads(capsys.readouterr().out)
        if found["peak"]:  # else it says why, and its total is what stays
            assert found["total"] == told["peak"]["bytes"]
        part = "Its text, " if found["peak"] else "What its text, "
        assert f"{part}{found['without']}, " in str(found["verdict"])
        assert str(found["name"]) == f"your {family}"


def test_there_are_wholes_of_many_kinds():
    assert len(WHOLES) > 30
    told = {without(usual(family)) for family in WHOLES}
    assert {config_words.NO_VISION, config_words.NO_AUDIO} <= told


def test_the_pages_engine_says_the_same(lookup, folder):  # noqa: F811
    configs = [whole(family, num_hidden_layers=12) for family in WHOLES[:6]]
    configs += [usual(family) for family in ("clip", "bert", "t5", "pi0", "aria", "gemma4")]
    configs += [{"model_type": "no_such_type"}, small("qwen3_vl"), small("qwen3_omni_moe_thinker")]
    configs.append(speaking())
    states = [{"model": "config", "config": config} | SIZE for config in configs]
    agree(folder, lookup, [*states, states[0] | {"use": "serve"}])


def small(family):
    made = whole(family)
    kept = ("layer_types", "per_layer_config", "dtype", "id2label", "label2id")
    text = {k: v for k, v in usual(family)["text_config"].items() if k not in kept}
    return made | {"text_config": text}


def speaking():
    """A model that speaks: its text lies one object deeper."""
    config = json.loads(json.dumps(usual("qwen3_omni_moe")))
    config["thinker_config"]["model_type"] = "qwen3_omni_moe_thinker"
    config["thinker_config"]["text_config"]["num_attention_heads"] = 32
    return config


def test_the_text_of_a_thinker_is_found_in_the_page_and_in_the_shell(lookup, tmp_path, capsys):  # noqa: F811
    found = answered({"model": "config", "config": speaking(), "tokens": 512}, lookup)
    told = str(found["verdict"])
    assert config_words.NO_VISION_NOR_AUDIO in told and str(found["name"]) == "your qwen3_omni_moe"
    path = tmp_path / "config.json"
    path.write_text(json.dumps(speaking()), encoding="utf-8")
    assert main(["estimate", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["parameters"] == found["parameters"] > 10**10


def test_a_config_from_before_text_config_is_read_as_the_class_reads_it(lookup):  # noqa: F811
    """Qwen2.5-VL's files say the sizes of their text among the keys of the whole."""
    config = small("qwen2_5_vl")
    text = {k: v for k, v in config["text_config"].items() if k != "model_type"}
    old = {k: v for k, v in config.items() if k != "text_config"} | text
    totals = [
        answered({"model": "config", "config": each, "tokens": 512}, lookup)["total"]
        for each in (config, old)
    ]
    assert totals[0] == totals[1]


@pytest.mark.parametrize("written", ["Infinity", '{"__float__": "Infinity"}'])
def test_a_limit_without_end_is_read_in_both_of_its_forms(lookup, written):  # noqa: F811
    config = usual("mamba2") | {"time_step_limit": [0.0, json.loads(written)]}
    found = answered({"model": "config", "config": config, "tokens": 512}, lookup)
    assert found["total"] and flat(config)["time_step_limit"] == [0.0, "Infinity"]


def test_an_engine_is_refused_for_a_whole_at_both_doors(lookup, tmp_path, capsys):  # noqa: F811
    config = whole("llava", num_hidden_layers=2)
    state = {"model": "config", "config": config, "use": "serve", "context": 512}
    told = str(outcome(json.dumps(state), lookup)["error"])
    assert told.startswith("vLLM loads every part of a llava") and config_words.NO_VISION in told
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    assert main(["serve", str(path), "--on", "H100 80GB"]) == 2
    assert "vllm loads every part of a model" in capsys.readouterr().err
    alone = answered(state | {"engine": "none"}, lookup)
    assert config_words.NO_VISION in str(alone["verdict"])


def test_a_whole_of_quantized_weights_is_refused_by_that_key(lookup):  # noqa: F811
    config = whole("llava", num_hidden_layers=2) | {"quantization_config": {"bits": 4}}
    told = str(outcome(json.dumps({"model": "config", "config": config}), lookup)["error"])
    assert "quantization_config" in told and "take the config of the model" in told


@pytest.mark.parametrize("family", ["clip", "vit", "wav2vec2", "colpali", "qwen3_vl_text"])
def test_the_shell_names_a_kind_at_every_door(tmp_path, capsys, family):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(usual(family)), encoding="utf-8")
    words = type_kinds.KINDS[type_kinds.kind_of(family)]
    for door in (["estimate"], ["trace"], ["fit", "--on", "H100"]):
        assert main([door[0], str(path), *door[1:]]) == 2
        assert words in capsys.readouterr().err


def test_an_encoder_that_is_told_to_decode_is_believed():
    type_kinds.check({"model_type": "bert", "is_decoder": True})
    type_kinds.check({"model_type": "bert", "architectures": ["BertLMHeadModel"]})
    with pytest.raises(WrongKind, match="an encoder"):
        type_kinds.check({"model_type": "bert"})
