"""config: a Hugging Face config.json as a file, a folder or a dict, and what is wrong with it."""

import json

import pytest

from memlab.families import REQUIRED, config_types, record_of
from memlab.model import Model, latent

LLAMA = {
    "model_type": "llama",
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    "vocab_size": 100,
}


def test_a_file_its_folder_and_a_dict_say_the_same(tmp_path):
    folder = tmp_path / "my-llama"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(LLAMA))
    model = Model.from_config(folder)
    assert model.name == "my-llama"
    assert model == Model.from_config(str(folder / "config.json"))
    assert model == Model.from_config(LLAMA).replace(name="my-llama")


def test_keys_that_change_no_parameter_are_kept_beside_the_shape():
    extra = {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4}, "dtype": "bfloat16"}
    model = Model.from_config({**LLAMA, **extra})
    assert model.parameters() == Model.from_config(LLAMA).parameters()
    assert model.config == {**LLAMA, **extra}


@pytest.mark.parametrize("family", config_types())
def test_each_missing_shape_key_is_named(family):
    required = [key for key, default in record_of(family).shape.values() if default is REQUIRED]
    assert len(required) >= 4
    whole = {"model_type": family}
    if record_of(family).latent:
        required += [key for key in latent.KEYS.values() if key != "q_lora_rank"]
        whole |= {"q_lora_rank": None, "num_key_value_heads": 32}
    whole |= dict.fromkeys(required, 32)
    whole |= {record_of(family).shape["d_model"][0]: 64, "pad_token_id": None}
    Model.from_config(whole)
    for key in required:
        for broken in ({k: v for k, v in whole.items() if k != key}, {**whole, key: None}):
            with pytest.raises(ValueError, match=f"the {family} config has no '{key}'"):
                Model.from_config(broken)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"model_type": "t5"}, ValueError, "'t5'; known families: arcee, cohere2"),
        ({"model_type": ["llama"]}, ValueError, r"unknown model_type \['llama'\]"),
        ({"model_type": None}, ValueError, "no 'model_type'; known families"),
        ({"num_key_value_heads": 3}, ValueError, "N=8 is not a multiple of K=3"),
        ({"hidden_size": 60}, ValueError, "D=60 is not a multiple of N=8"),
        ({"num_hidden_layers": 0}, ValueError, "layers=0"),
        ({"num_hidden_layers": "2"}, TypeError, "num_hidden_layers='2' is a str; int"),
        ({"num_hidden_layers": True}, TypeError, "num_hidden_layers=True is a bool; int"),
        ({"tie_word_embeddings": 1}, TypeError, "tie_word_embeddings=1 is a int; bool"),
    ],
)
def test_a_wrong_config_is_named(changes, error, message):
    with pytest.raises(error, match=message):
        Model.from_config({**LLAMA, **changes})


def test_a_gpt2_config_may_use_the_general_names():
    general = {
        "model_type": "gpt2",
        "num_hidden_layers": 2,
        "hidden_size": 64,
        "num_attention_heads": 8,
        "vocab_size": 100,
        "max_position_embeddings": 32,
    }
    own = {"n_layer": 2, "n_embd": 64, "n_head": 8, "vocab_size": 100, "n_positions": 32}
    meant = Model.from_config({"model_type": "gpt2", **own})
    assert repr(Model.from_config(general)) == repr(meant)
    # transformers takes the general names, where both are there.
    wrong = {"n_embd": 32, "n_layer": 7, "n_head": 2, "n_positions": 4}
    assert Model.from_config(general | wrong).tensors() == meant.tensors()
    with pytest.raises(ValueError, match="add_cross_attention=True"):
        Model.from_config({**general, "add_cross_attention": True})


def test_a_key_that_stands_there_twice_is_named(tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "llama", "vocab_size": 5, "vocab_size": 6}')
    with pytest.raises(ValueError, match="'vocab_size' stands there twice"):
        Model.from_config(path)


def test_what_is_nested_too_deeply_is_no_config(tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"a": ' * 100_000 + "1" + "}" * 100_000)
    with pytest.raises(ValueError, match="nested too deeply"):
        Model.from_config(path)


def test_wrong_sources_are_named(tmp_path):
    bad = tmp_path / "config.json"
    with pytest.raises(FileNotFoundError, match="no config file at .*config.json"):
        Model.from_config(tmp_path)
    for words in ("{'model_type': 'llama'}", "", "\udcff"):
        bad.write_bytes(words.encode("utf-8", "surrogateescape"))
        with pytest.raises(ValueError, match="config.json is not JSON"):
            Model.from_config(bad)
    bad.write_text("[1, 2]")
    with pytest.raises(ValueError, match="holds a list; a JSON object is needed"):
        Model.from_config(bad)
    with pytest.raises(TypeError, match="config is a int; a path or a dict is needed"):
        Model.from_config(7)  # type: ignore[arg-type]
