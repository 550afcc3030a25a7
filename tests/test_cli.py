"""The command line: what it prints, and how it fails."""

import json
import re
import subprocess
import sys

import pytest
from described import described_alone

from memlab import cli
from memlab.base import versions
from memlab.cli import COMMANDS, main


def run(capsys, *words):
    status = main(list(words))
    out, err = capsys.readouterr()
    return status, out, err


def test_estimate_prints_a_ledger(capsys):
    status, out, _ = run(capsys, "estimate", "qwen3-0.6b", "--recipe", "bf16")
    assert status == 0
    assert out.splitlines()[0] == "qwen3-0.6b · bf16"
    assert "1,192,099,840" in out


def test_json_has_the_keys_that_programs_rely_on(capsys):
    words = "estimate tiny-llama --batch 2 --tokens 32 --implementation memlab --json".split()
    whole = json.loads(run(capsys, *words)[1])
    resident = json.loads(run(capsys, "estimate", "tiny-llama", "--json")[1])
    keys = "parameters rows held peak allocator recipe leaves_out".split()
    for document in (whole, resident):
        assert all(key in document for key in keys)
        assert list(document["rows"])[:6] == [
            "weights",
            "gradients",
            "optimizer",
            "activations",
            "logits",
            "kv_cache",
        ]
    assert list(whole["held"]) == ["after_forward", "after_backward", "between_steps"]
    assert set(whole["peak"]) == {"bytes", "moment", "contents", "first_step_bytes"}
    assert sum(whole["peak"]["contents"].values()) == whole["peak"]["bytes"]
    assert resident["peak"] is None and resident["rows"]["activations"] is None
    assert any("--tokens" in line for line in resident["leaves_out"])


def test_on_cuda_the_allocator_is_asked_too(capsys):
    words = "estimate qwen3-0.6b --tokens 64 --precision bf16 --backend cuda --json".split()
    document = json.loads(run(capsys, *words)[1])
    found = document["allocator"]
    assert document["peak"]["bytes"] <= found["allocated"] <= found["reserved"]


def test_the_peak_grows_with_the_batch(capsys):
    words = "estimate tiny-llama --tokens 32 --implementation memlab --json".split()
    peaks = [
        json.loads(run(capsys, *words, "--batch", str(batch))[1])["peak"]["bytes"]
        for batch in (4, 8)
    ]
    assert peaks[0] < peaks[1]
    assert "peak" in run(capsys, *words[:-1])[1]


@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_inference_phases(capsys, phase):
    words = f"estimate tiny-llama --phase {phase} --tokens 32 --precision bf16 --json".split()
    rows = json.loads(run(capsys, *words)[1])["rows"]
    assert rows["kv_cache"] > 0 and rows["gradients"] == rows["optimizer"] == 0


def test_one_rank_of_several(capsys):
    words = "estimate llama-3-8b --recipe zero --ranks 16 --zero 3 --tensor-parallel 2".split()
    assert run(capsys, *words)[1].startswith("llama-3-8b · zero · data 8, tensor 2, ZeRO 3: one")
    document = json.loads(run(capsys, *words, "--json")[1])
    told = {"ranks": 16, "data": 8, "zero": 3, "tensor": 2, "pipeline": 1, "context": 1, "stage": 0}
    told |= {"param_dtype": None, "reduce_dtype": None}
    told |= {"reshard_after_forward": True, "gradient_sync": "every"}
    told |= {"replicas": 1, "cpu_offload": None, "reduce_bucket_size": 5 * 10**8}
    told |= {"overlap_comm": False, "contiguous_gradients": True, "library": None}
    told |= {"prefetch_bucket_size": 5 * 10**7, "param_persistence_threshold": 10**5}
    told |= dict.fromkeys(("max_live_parameters", "max_reuse_distance", "sub_group_size"), 10**9)
    told |= {"memory_efficient_linear": True, "offload_optimizer": None, "offload_param": None}
    told |= {"schedule": "1f1b", "stages_per_rank": 1, "return_outputs": True}
    told |= {"sequence": False, "plan": "torch", "expert": 1, "routing": "even"}
    assert document["sharding"] == told
    per_rank = document["rows"]["weights"] / document["parameters"]
    assert 2 / 16 < per_rank < 1.001 * 2 / 16
    cut = "estimate llama-3-8b --pipeline-parallel 4 --json".split()
    assert json.loads(run(capsys, *cut)[1])["sharding"]["stage"] == 3
    assert "sharding" not in json.loads(run(capsys, "estimate", "gpt2", "--json")[1])
    beside = run(capsys, *words, "--against", "fp32")[1]
    assert beside.count("one rank of 16") == 2


def test_fit_answers_three_questions(capsys):
    words = "fit qwen3-0.6b --precision bf16 --on".split() + ["RTX 4090"]
    assert "largest batch on RTX 4090" in run(capsys, *words, "--tokens", "1024")[1]
    assert "largest sequence on RTX 4090" in run(capsys, *words, "--batch", "2")[1]
    both = ("--batch", "8", "--tokens", "1024")
    assert "the cheapest changes that make it fit" in run(capsys, *words, *both)[1]
    changes = json.loads(run(capsys, *words, *both, "--json")[1])
    assert (
        changes["fits"] is False
        and changes["then"] == "fits"
        and changes["changes"][-1]["peak"] < 24 * 2**30
    )
    assert "it fits RTX 4090: " in run(capsys, *words, "--batch", "1", "--tokens", "64")[1]
    assert json.loads(run(capsys, *words, "--batch", "2", "--json")[1])["value"] > 1000


def test_fp16_takes_the_bytes_of_bf16(capsys):
    words = "estimate tiny-llama --tokens 32 --json --precision"
    found = {
        name: json.loads(run(capsys, *words.split(), name)[1])
        for name in ("bf16", "fp16", "autocast-bf16", "autocast-fp16")
    }
    assert found["fp16"]["peak"] == found["bf16"]["peak"] != found["autocast-fp16"]["peak"]
    assert found["autocast-fp16"]["held"] == found["autocast-bf16"]["held"]
    assert found["fp16"]["recipe"]["weights"] == "fp16"


@pytest.mark.parametrize(
    "words",
    [
        "",
        "--implementation memlab --tokens 32",
        "--implementation memlab --backend cpu --phase prefill --logits last --tokens 32",
    ],
)
def test_an_estimate_can_be_drawn(capsys, tmp_path, words):
    file = tmp_path / "bar.svg"
    how = f"estimate tiny-llama {words} --plot {file}"
    assert run(capsys, *how.split())[0] == 0
    assert "<svg" in file.read_text() and "weights" in file.read_text()
    assert run(capsys, "estimate", "gpt2", "--plot", "bar.png")[2].count(".svg")


def test_precision_and_optimizer_make_a_recipe(capsys):
    words = "estimate gpt2 --precision bf16 --optimizer sgd --json".split()
    document = json.loads(run(capsys, *words)[1])
    assert document["rows"]["optimizer"] == 0
    assert document["rows"]["weights"] == 2 * document["parameters"]


def test_a_config_file_says_more_than_the_shape(capsys, tmp_path):
    shape = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 4}
    config = {"model_type": "opt", **shape, "ffn_dim": 64, "vocab_size": 50}
    config |= {"max_position_embeddings": 64, "word_embed_proj_dim": 32}
    kept = {}
    for activation in ("relu", "gelu"):
        file = tmp_path / f"{activation}.json"
        file.write_text(json.dumps(config | {"activation_function": activation}))
        words = ["estimate", str(file), "--tokens", "16", "--json"]
        kept[activation] = json.loads(run(capsys, *words)[1])["rows"]["activations"]
    assert kept["relu"] < kept["gelu"]


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
    assert re.search(r"^RTX 4090 +24 GB +23.99 GiB +23.64 GiB", run(capsys, "devices")[1], re.M)
    assert "hides: the gradients" in run(capsys, "recipes")[1]
    formats = run(capsys, "formats")[1]
    assert re.search(r"^nvfp4 +4.5 +16 +589,828 ", formats, re.M) and "IEEE 754" in formats


def test_whether_a_step_fits_is_the_exit_status(capsys):
    words = "qwen3-0.6b --precision bf16 --on RTX-4090 --batch".split()
    for asked, status in {("1", "64"): 0, ("8", "1024"): 1, ("100000", "4096"): 1}.items():
        batch, tokens = asked
        for more in ((), ("--json",)):
            found = run(capsys, "fit", *words, batch, "--tokens", tokens, *more)
            assert found[0] == status and found[1] and not found[2], asked
    assert run(capsys, "fit", *words, "1", "--tokens", "64", "--on", "RTX 9")[0] == 2


def test_without_flags_every_command_describes_the_same_step(capsys):
    """That of a GPU: CUDA's kernels, foreach, the library's own code."""
    sizes = "tiny-llama --batch 2 --tokens 32 --json".split()
    whole = json.loads(run(capsys, "estimate", *sizes)[1])
    kinds = {name: whole["run"][name] for name in ("backend", "implementation", "optimizer_impl")}
    usual = {"backend": "cuda", "implementation": "transformers", "optimizer_impl": None}
    assert kinds == usual
    said = ("--backend", "cuda", "--implementation", "transformers", "--optimizer-impl", "foreach")
    assert json.loads(run(capsys, "estimate", *sizes, *said)[1])["peak"] == whole["peak"]
    explained = json.loads(run(capsys, "explain", *sizes, "--seen", "1GB")[1])
    assert explained["predicted_bytes"] == whole["peak"]["bytes"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["estimate", "gpt5"], "nor a preset; did you mean gpt2? `memlab models`"),
        (["estimate", "gpt2", "--recipe", "x"], "unknown recipe 'x'; known: fp32"),
        (["measure", "gpt2", "--recipe", "x"], "unknown recipe 'x'"),
        (["estimate", "gpt2", "--recipe", "bf16", "--precision", "fp32"], "give one of them"),
        (["fit", "gpt2", "--on", "H100"], "give --tokens (for the largest batch)"),
        (["fit", "gpt2", "--on", "RTX 9", "--batch", "2"], "RTX 9"),
        (["fit", "gpt2", "--on", "24", "--batch", "2"], "'24' has no unit; say it: 24 GB?"),
        (["fit", "gpt2", "--on", "4090", "--batch", "2"], "did you mean RTX 4090?"),
        (["fit", "gpt2", "--on", "H100", "--batch", "2", "--spare", "2"], "'2' has no unit"),
        (["explain", "gpt2", "--seen", "80"], "'80' has no unit; say it: 80 GB?"),
        (["explain", "gpt2", "--seen", "9GB", "--predicted", "28"], "'28' has no unit"),
        (["estimate", "gpt2", "--phase", "decode"], "--phase decode needs tokens"),
        (["estimate", "llama-3-8b", "--tokens", "0"], "--tokens 0; at least 2 are needed"),
        (
            ["estimate", "llama-3-8b", "--tensor-parallel", "3"],
            "--tensor-parallel 3 does not divide K=8",
        ),
        (
            ["estimate", "gpt2", "--ranks", "9", "--pipeline-parallel", "2"],
            "not a multiple of tens",
        ),
        (["estimate", "gpt2", "--ranks", "8", "--zero", "4"], "--zero 4 is not a stage of ZeRO"),
        (
            ["estimate", "gpt2", "--ranks", "8", "--pipeline-parallel", "2", "--tokens", "64"],
            "data 4, pipeline 2: the step of one device alone is described",
        ),
        (["estimate", "nanochat-d26", "--tokens", "8"], "family 'nanochat' is not described"),
    ],
)
def test_wrong_input_fails_by_name(capsys, words, message):
    with described_alone():
        status, out, err = run(capsys, *words)
    assert status == 2 and out == "" and err.startswith("memlab: ") and message in err


def test_python_dash_m_is_the_same_command():
    words = [sys.executable, "-m", "memlab", "models"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0 and "tiny-llama" in done.stdout


def test_an_error_of_memlab_itself_is_no_answer(capsys, monkeypatch):
    """Its status was 1, which says that the step does not fit."""

    def broken(_):
        return {}["row"]

    monkeypatch.setattr(cli.asked, "answered", broken)
    monkeypatch.delenv("MEMLAB_DEBUG", raising=False)
    status, out, err = run(capsys, "estimate", "gpt2")
    assert status == 70 and out == "" and err.count("\n") == 1
    assert re.match(r"memlab: this is an error of memlab itself: KeyError: 'row' \(test_cli", err)
    status, out, err = run(capsys, "estimate", "gpt2", "--json")
    found = json.loads(err)
    assert status == found["status"] == 70 and out == "" and "KeyError" in found["message"]
    monkeypatch.setenv("MEMLAB_DEBUG", "1")
    with pytest.raises(KeyError, match="row"):
        main(["estimate", "gpt2"])


def test_the_version_is_said(capsys):
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0 and capsys.readouterr().out == versions.told() + "\n"


def test_without_a_word_the_commands_are_listed(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["memlab"])
    for arguments in (None, []):
        with pytest.raises(SystemExit) as end:
            main(arguments)
        said = capsys.readouterr()
        assert end.value.code == 0 and said.err == ""
        assert all(f"\n    {name}" in said.out for name in COMMANDS)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("fit gpt2 --on H100 --batch 1 --card 2", "unrecognized arguments: --card 2"),
        ("fit gpt2 --on H100 --batch 1 --card 2", "did you mean --on?"),
        ("trace tiny-llama --gpu H100", "did you mean --fits?"),
        ("estimate gpt2 --token 5", "did you mean --tokens"),
    ],
)
def test_a_shortened_flag_is_no_other_flag(capsys, words, said):
    """argparse would take --card for --cards, which asks for advice about several."""
    with pytest.raises(SystemExit):
        main(words.split())
    assert said in capsys.readouterr().err
