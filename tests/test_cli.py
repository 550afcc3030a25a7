"""The command line: what it prints, and how it fails."""

import json
import re

import pytest

from memlab.cli import main


def run(capsys, *words):
    status = main(list(words))
    out, err = capsys.readouterr()
    return status, out, err


def test_estimate_prints_a_ledger(capsys):
    status, out, _ = run(capsys, "estimate", "qwen3-0.6b", "--recipe", "bf16")
    assert status == 0
    assert out.splitlines()[0] == "qwen3-0.6b · bf16"
    assert "1,192,099,840" in out


def test_estimate_as_json_can_be_read_back(capsys):
    _, out, _ = run(capsys, "estimate", "tiny-llama", "--json")
    assert {row["term"] for row in json.loads(out)["rows"]} == {
        "weights",
        "gradients",
        "optimizer",
    }


def test_two_recipes_side_by_side(capsys):
    _, out, _ = run(capsys, "estimate", "gpt2", "--recipe", "fp32", "--against", "zero")
    assert "gpt2 · fp32" in out and "gpt2 · zero" in out and "master" in out


def test_a_config_file_is_a_model(capsys, tmp_path):
    config = {"model_type": "gpt2", "n_layer": 2, "n_embd": 8, "n_head": 2, "vocab_size": 10}
    (tmp_path / "config.json").write_text(json.dumps(config | {"n_positions": 4}))
    assert run(capsys, "estimate", str(tmp_path))[0] == 0
    assert run(capsys, "estimate", str(tmp_path / "config.json"))[0] == 0


def test_measure_closes_the_ledger(capsys):
    status, out, _ = run(capsys, "measure", "tiny-llama", "--steps", "2")
    assert status == 0
    assert out.count("+0 B") == 4 and "loss" in out


def test_lists(capsys):
    assert "596,049,920 parameters" in run(capsys, "models")[1]
    assert "hides: the gradients" in run(capsys, "recipes")[1]
    formats = run(capsys, "formats")[1]
    assert re.search(r"^nvfp4 +4.5 +16 +589,828 ", formats, re.M) and "IEEE 754" in formats


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["estimate", "gpt5"], "'gpt5' is neither a file nor a preset; known: tiny-gpt"),
        (["estimate", "gpt2", "--recipe", "x"], "unknown recipe 'x'; known: fp32"),
        (["measure", "gpt2", "--recipe", "x"], "unknown recipe 'x'"),
    ],
)
def test_wrong_input_fails_by_name(capsys, words, message):
    status, out, err = run(capsys, *words)
    assert status == 2 and out == "" and err.startswith("memlab: ") and message in err
