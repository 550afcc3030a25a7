"""`memlab trace`: what it prints, for people and programs, and how it fails."""

import json
import pickle
import re
import subprocess
import sys

import causal_types
import pytest
import torch

from memlab import Model, Run
from memlab.cli import main
from memlab.lab.subject import subject
from memlab.measure import resident

SOURCE = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 4)

    def forward(self, x):
        return self.linear(x)

def inputs():
    return torch.nn.Sequential(Net(), torch.nn.Flatten(0), torch.nn.Linear(32, 1)), torch.ones(8, 8)

def step():
    return Net(), lambda net: net(torch.ones(3, 8)).sum()

def branch():
    return Net(), lambda net: net(torch.ones(3, 8)).max() if net.linear.bias[0] else None

def module():
    return Net()

number = 3

def slip():
    return undefined

def wide():
    return Net(), lambda net: net(torch.ones(3, 9)).sum()

def on_a_card():
    return Net().cuda(), lambda net: net(torch.ones(3, 8)).sum()

def nothing_back():
    return Net(), lambda net: None

def here():
    return Net(), lambda net: net(torch.ones(3, 8, device="cpu")).sum()
"""


OURS = ("--implementation", "memlab")


@pytest.fixture
def run(capsys):
    def run(*words):
        status = main(["trace", *map(str, words)])
        out, err = capsys.readouterr()
        return status, out, err

    return run


@pytest.fixture
def config(tmp_path):
    shape = {
        "model_type": "gpt2",
        "n_layer": 2,
        "n_embd": 32,
        "n_head": 2,
        "vocab_size": 53,
        "n_positions": 40,
    }
    (tmp_path / "config.json").write_text(json.dumps(shape))
    return tmp_path


def test_it_prints_a_ledger_the_moments_and_the_answer(run):
    status, out, err = run("tiny-llama", "--tokens", 16, "--fits", "RTX 4090")
    assert (status, err) == (0, "")
    assert out.startswith("tiny-llama · fp32 · 1 x 16 tokens, transformers on cuda: the peak, in ")
    for words in ("traced", "optimizer", "after forward", "reserved by"):
        assert words in out
    assert "\nit fits RTX 4090: " in out and "495.5 MiB CUDA context and cuBLAS" in out
    status, out, _ = run("tiny-llama", "--tokens", 16, "--fits", "1 MiB")
    assert status == 1 and "it does not fit 1 MiB: " in out


def test_json_has_the_keys_of_estimate(run):
    _, out, _ = run("tiny-gpt", "--batch", 2, "--tokens", 16, "--precision", "bf16", "--json")
    document = json.loads(out)
    P = Model.preset("tiny-gpt").parameter_count
    assert document["parameters"] == P
    terms = "weights gradients optimizer activations logits kv_cache other".split()
    assert list(document["rows"]) == terms
    assert document["rows"]["weights"] == document["rows"]["gradients"] == 2 * P
    assert list(document["held"]) == ["after_forward", "after_backward", "between_steps"]
    peak, allocator = document["peak"], document["allocator"]
    assert sum(peak["contents"].values()) == peak["bytes"] <= allocator["allocated"]
    assert allocator["allocated"] <= allocator["reserved"]
    assert peak["moment"] in ("forward", "loss", "backward", "optimizer")
    assert document["recipe"]["weights"] == "bf16"


def test_the_options_reach_the_step(run):
    def rows(*words):
        document = json.loads(run("tiny-gpt", "--tokens", 64, "--json", *words)[1])
        return document["rows"], document["peak"]["bytes"]

    plain, peak = rows()
    assert rows("--checkpoint", "block")[0]["activations"] < plain["activations"] / 4
    # GPT-2's class has dropout, 0.1, unless something else is said.
    assert rows("--dropout", 0.0)[0]["activations"] < plain["activations"]
    assert rows("--dropout", 0.1) == (plain, peak)
    assert rows("--backend", "cpu")[0]["activations"] != plain["activations"]
    assert rows("--optimizer-impl", "fused")[1] <= peak
    assert rows("--attention", "flash", "--precision", "autocast-bf16")[0]["logits"] > 0
    eager = rows("--attention", "eager")[0]
    assert eager["weights"] == plain["weights"] and eager["activations"] > plain["activations"]
    ours = rows("--implementation", "memlab")[0]
    assert ours["weights"] == plain["weights"] and ours["activations"] != plain["activations"]


def test_whether_it_fits_is_the_exit_status(run):
    words = ("tiny-llama", "--tokens", 16, "--fits")
    assert run(*words, "RTX 4090")[0] == 0 and run(*words, "1 MiB")[0] == 1
    assert run(*words, "RTX 4099")[0] == 2
    assert run(*words, "40 MiB", "--spare", "8 MiB")[0] == 0
    assert run(*words, "40 MiB", "--spare", "39 MiB")[0] == 1


@pytest.mark.parametrize("implementation", ["memlab", "transformers"])
def test_a_config_file_or_its_folder(run, config, implementation):
    words = ("--tokens", 16, "--json", "--implementation", implementation)
    folder, file = (json.loads(run(path, *words)[1]) for path in (config, config / "config.json"))
    assert folder["peak"] == file["peak"]
    assert folder["rows"]["weights"] == 4 * Model.from_config(config).parameter_count


def test_a_picture(run, tmp_path):
    path = tmp_path / "step.svg"
    assert run("tiny-llama", "--tokens", 16, "--plot", path)[0] == 0
    assert path.read_text().startswith("<svg")
    status, _, err = run("tiny-llama", "--tokens", 16, "--plot", tmp_path / "step.png")
    assert status == 2 and "does not end in .svg" in err


def test_a_snapshot_for_the_memory_viewer(run, tmp_path):
    path = tmp_path / "step.pickle"
    assert run("tiny-llama", "--tokens", 16, "--snapshot", path)[0] == 0
    snapshot = pickle.loads(path.read_bytes())
    assert snapshot["segments"] and snapshot["device_traces"]


def test_a_function_of_ones_own(run, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(SOURCE)
    document = json.loads(run(f"{path}:step", "--json")[1])
    assert document["parameters"] == 36 and document["rows"]["weights"] == 4 * 36
    assert json.loads(run(f"{path}:inputs", "--json")[1])["parameters"] == 36 + 33


@pytest.mark.parametrize(
    "function, words",
    [
        ("nothing_back", "the step gave a NoneType where a loss of one number is needed"),
        ("module", r"module\(\) returned a Net; a torch.nn.Module and its inputs"),
        ("number", "has no function 'number'"),
        ("nothing", "has no function 'nothing'"),
        ("slip", r"mine.py:\d+, in slip: NameError: name 'undefined' is not defined$"),
        ("wide", r"mine.py:\d+, in forward: RuntimeError: a and b must have same reduction dim"),
        ("here", r"cannot trace .*: with backend=.cuda. the module and its inputs are on cuda:0"),
    ],
)
def test_a_function_that_will_not_do(run, tmp_path, function, words):
    path = tmp_path / "mine.py"
    path.write_text(SOURCE)
    status, out, err = run(f"{path}:{function}")
    assert (status, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert re.search(words, err), err


def test_what_values_decide_is_said_with_its_line(run, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(SOURCE)
    status, out, _ = run(f"{path}:branch")
    assert status == 0
    assert re.search(r"assumed 2 × a number that is not known: 1.0   mine.py:19 return", out)


def test_a_module_may_be_moved_to_a_card_where_there_is_one(run, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(SOURCE)
    there, here = (json.loads(run(f"{path}:{f}", "--json")[1]) for f in ("on_a_card", "step"))
    assert there["peak"]["bytes"] == here["peak"]["bytes"]


@pytest.mark.parametrize(
    "text, words",
    [
        ("def f(:\n", "mine.py:1: SyntaxError"),
        ("import none_such\n", "mine.py:1, in <module>: Modu"),
    ],
)
def test_a_file_that_does_not_run_is_one_line(run, tmp_path, text, words):
    """Not a traceback through torch, and not the status of a step that is too large."""
    path = tmp_path / "mine.py"
    path.write_text(text)
    status, out, err = run(f"{path}:f")
    assert (status, out, len(err.splitlines())) == (2, "", 1) and words in err


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["nope"], "'nope' is neither a file nor a preset; `memlab models` lists them"),
        (["nope.py:f"], "no file 'nope.py'"),
        (["tiny-llama", "--tokens", "999"], "--tokens 999 is more than the 256 positions"),
        (["tiny-llama", "--batch", "0"], "--batch 0; at least 1"),
        (["tiny-llama", "--tokens", "8", *OURS, "--attention", "eager"], "in transformers only"),
        (["tiny-llama", "--tokens", "8", *OURS, "--dropout", "0.1"], "memlab's llama has none"),
        (["nanochat-d26", "--tokens", "8"], "transformers has no 'nanochat'; known: arcee"),
        (["nanochat-d26", "--tokens", "8", *OURS], "family 'nanochat' is not built here"),
        (["tiny-llama", "--tokens", "8", "--micro-batches", "2"], "--micro-batches 2 cannot be"),
        (["tiny-llama", "--batch", "2"], "tokens is missing"),
        (["tiny-gpt", "--tokens", "8", "--fits", "RTX 4099"], "unknown device 'RTX 4099'"),
        (["tiny-gpt", "--tokens", "8", "--spare", "1 GiB"], "--spare 1 GiB is left free on a dev"),
    ],
)
def test_bad_input_is_one_clear_line(run, arguments, words):
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert words in err and len(err.splitlines()) == 1


@pytest.mark.parametrize("family", ["gpt2", "llama", "mistral", "qwen2", "qwen3"])
def test_both_implementations_of_a_config_have_the_same_parameters(family):
    shape = Model(
        family=family, layers=2, d_model=48, d_ff=80, heads=4, vocab=53, positions=40, head_dim=12
    )
    sizes = []
    for implementation in ("memlab", "transformers"):
        with torch.device("meta"):
            module = subject(
                shape,
                "bf16",
                Run(implementation=implementation),
            )
        assert module.training
        sizes.append(resident(module)["weights"])
    assert sizes == [2 * shape.parameter_count] * 2


def test_an_unknown_implementation_is_named():
    with pytest.raises(
        ValueError, match="implementation='mine' is not described; known: transformers, memlab"
    ):
        subject(
            Model.preset("tiny-gpt"),
            "fp32",
            Run(implementation="mine"),
        )


# --- what it need not wait for

LEAN = """
import sys
from memlab.cli import main
{before}
assert main(["trace", {path!r}, "--tokens", "8"]) == 0
loaded = "torchao" in sys.modules
from transformers.quantizers import quantizer_torchao
from transformers.utils import is_torchao_available
print(loaded, is_torchao_available(), quantizer_torchao.is_torchao_available())
"""


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "before, loaded", [("", "False"), ("import transformers.modeling_utils", "True")]
)
def test_a_config_is_traced_without_torchao(tmp_path, before, loaded):
    """The second way is the one without the step that leaves it out: then it is there."""
    pytest.importorskip("torchao")
    path = tmp_path / "config.json"
    path.write_text(json.dumps(causal_types.small("llama")), encoding="utf-8")
    script = LEAN.format(before=before, path=str(path))
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == f"{loaded} True True"
