"""What is not described is rehearsed: the script of its trainer, and what it answers.

Long, for each combination that many people run stands here. Where one is described, its script
holds the described bytes; where it is not, bytes that follow from its neighbour.
"""

import contextlib
import io
import json
import sys
from importlib.util import find_spec

import pytest

from memlab import Model, Run, Sharding, estimate
from memlab.adapters import Lora
from memlab.base.not_described import NotDescribed
from memlab.cli import main, rehearsed
from memlab.rehearse.script import DIVIDED, OF, OF_TRAINERS, SAID, script
from memlab.rehearse.trainers import TRAINERS
from memlab.run.fields import TABLE
from memlab.run.recipe_choice import recipe_for

SIZES = {"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2, "vocab_size": 304}
SIZES |= {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 512}
CONFIG = {"model_type": "llama"} | SIZES
LLAMA = Model.from_config(CONFIG)
HALF = {"completion": 32}
FSDP, DDP = Sharding(data=4, zero=3), Sharding(data=4)
STEP_COUNTERS = 4  # bytes, as in test_rehearse
linux = pytest.mark.skipif(sys.platform != "linux", reason="proven on Linux")
quiet = pytest.mark.filterwarnings("ignore")


def said(recipe=None, other=None, **run):
    how = Run(**{"batch": 2, "tokens": 64} | run)
    return script(CONFIG, LLAMA, recipe_for(LLAMA, recipe, how), how, other), how


def peak_of(recipe=None, other=None, **run):
    """The rehearsal of a script, and what is described of the same."""
    made, how = said(recipe, other, **run)
    missing = [name for name in made.needs if find_spec(name) is None]
    if missing:
        pytest.skip(f"no {', '.join(missing)} here")
    with contextlib.redirect_stdout(io.StringIO()):
        found = rehearsed._rehearsed(made, None)
    assert not found.status, found.failure
    try:
        return found, estimate(LLAMA, recipe_for(LLAMA, recipe, how), how).total()
    except NotDescribed:
        return found, None


DEEP = [pytest.mark.deep]
DESCRIBED = [
    ("bf16", {}, 21 * STEP_COUNTERS),
    ("bf16", {"loop": "trainer"}, 0),
    ("bf16", {"lora": Lora(16)}, 8 * STEP_COUNTERS),
    ("bf16", {"loop": "trainer", "lora": Lora(16, base="nf4"), "checkpoint": "block"}, 0),
    (None, {"loop": "sft", "lora": Lora(16)}, 0),
    (None, {"loop": "dpo"} | HALF, 0),
    pytest.param(None, {"loop": "grpo"} | HALF, 0, marks=DEEP),
    pytest.param(None, {"lora": Lora(16, base="nf4")}, 8 * STEP_COUNTERS, marks=DEEP),
    pytest.param("bf16", {"loop": "trainer", "devices": FSDP}, 0, marks=DEEP),
    pytest.param("bf16", {"loop": "trainer", "devices": FSDP, "lora": Lora(16)}, 0, marks=DEEP),
    pytest.param(None, {"loop": "sft", "devices": DDP}, 0, marks=DEEP),
    pytest.param(None, {"loop": "sft", "lora": Lora(16, base="nf4")}, 0, marks=DEEP),
    pytest.param("bf16", {"loop": "trainer", "eval_batch": 4}, 0, marks=DEEP),
]


@linux
@quiet
@pytest.mark.parametrize(("recipe", "run", "less"), DESCRIBED, ids=str)
def test_a_script_holds_what_is_described(recipe, run, less):
    found, described = peak_of(recipe, **run)
    assert described - found.peak == less


@linux
@quiet
def test_scales_of_scales_and_codes_of_eight_bits():
    """By hand: test_rehearse has the same formula for a program of its own."""
    run = {"loop": "trainer", "checkpoint": "block"}
    peaks = {}
    for base in ("nf4", "nf4-dq", "int8"):
        found, described = peak_of("bf16", lora=Lora(16, base=base), **run)
        assert (described is None) == (base != "nf4")
        peaks[base] = found.contents()["weights"]
    linear = 2 * [256 * 256, 256 * 128, 256 * 128, 256 * 256, *3 * [256 * 512]]
    scales = [size // 64 for size in linear]
    less = sum(4 * count - count - 4 * -(-count // 256) - 4 - 4 * 256 for count in scales)
    assert peaks["nf4"] - peaks["nf4-dq"] == less
    adapters = 2 * 16 * (256 + 256 + 256 + 128) * 4
    assert peaks["int8"] == sum(linear) + 2 * (2 * 304 * 256 + 5 * 256) + adapters


@linux
@quiet
def test_codes_that_fsdp2_divides():
    """bnb_4bit_quant_storage: of codes, embedding, head and norms a rank has a quarter."""
    pytest.importorskip("bitsandbytes")
    found, described = peak_of("bf16", lora=Lora(16, base="nf4"), devices=FSDP)
    codes = 2 * (2 * 256 * 256 + 2 * 256 * 128 + 3 * 256 * 512) // 2
    whole = codes + 2 * (2 * 304 * 256 + 5 * 256) + 2 * 16 * (256 + 256 + 256 + 128) * 4
    assert described is None and found.contents()["weights"] == whole // 4


NEIGHBOURS = [
    # an evaluation of few texts leaves the peak of the step, and of many has more
    ({"loop": "trainer", "lora": Lora(16), "eval_batch": 1}, {"eval_batch": None}, "same"),
    ({"loop": "trainer", "lora": Lora(16), "eval_batch": 32}, {"eval_batch": None}, "more"),
    # full texts: flash-attn's kernel keeps what SDPA's flash kernel keeps
    ({"loop": "dpo", "attention": "flash_attention_2"} | HALF, {"attention": None}, "near"),
    ({"loop": "grpo", "attention": "flash_attention_2"} | HALF, {"attention": None}, "near"),
    # parts of four, with what a card alone holds whole
    ({"loop": "dpo", "devices": FSDP} | HALF, {"devices": Sharding()}, "less"),
    ({"loop": "grpo", "devices": FSDP} | HALF, {"devices": Sharding()}, "less"),
    ({"loop": "sft", "devices": FSDP, "lora": Lora(16, base="nf4")}, {"devices": DDP}, "less"),
    # inputs of layers wait on the host
    ({"loop": "sft", "offload": ("saved",), "tokens": 512}, {"offload": ()}, "no more"),
]


@pytest.mark.deep
@linux
@quiet
@pytest.mark.parametrize(("run", "other", "how"), NEIGHBOURS, ids=str)
def test_its_neighbour_that_is_described(run, other, how):
    recipe = "bf16" if run["loop"] == "trainer" else None
    found, described = peak_of(recipe, **run)
    assert described is None
    beside = Run(**{"batch": 2, "tokens": 64} | run | other)
    known = estimate(LLAMA, recipe_for(LLAMA, recipe, beside), beside).total()
    kept = {"same": found.peak == known, "more": found.peak > known, "less": found.peak < known}
    kept |= {"no more": found.peak <= known, "near": abs(found.peak - known) < known // 100}
    assert kept[how], (found.peak, known)


@pytest.mark.deep
@linux
@quiet
@pytest.mark.parametrize("loop", ["reward", "rloo", "kto", "orpo"])
@pytest.mark.parametrize("lora", [None, Lora(16)], ids=["full", "lora"])
def test_trainers_that_are_no_loop_of_a_run(loop, lora):
    more = {} if loop == "reward" else HALF
    found, _ = peak_of(None, loop, loop=TRAINERS[loop].like, lora=lora, **more)
    assert len(found.steps) == 2
    head = 1 if loop == "reward" else 304
    trained = LLAMA.parameter_count + (head - 304) * 256
    weights = 4 * trained + (0 if lora is None else 4 * 2 * 16 * (256 + 256 + 256 + 128))
    twice = loop == "kto" and lora is None  # with its reference
    assert found.contents()["weights"] == weights * (1 + twice)


@pytest.mark.deep
@linux
@quiet
@pytest.mark.parametrize("zero", [2, 3])
def test_adapters_under_deepspeed(zero):
    """It is installed nowhere by default: pip install deepspeed==0.19.8"""
    devices = Sharding.of(data=4, zero=zero, library="deepspeed")
    whole, described = peak_of("zero", loop="trainer", devices=devices)
    assert whole.peak == described
    found, described = peak_of("zero", loop="trainer", devices=devices, lora=Lora(16))
    assert described is None and found.peak < whole.peak


# Without a library.


def test_each_field_is_said_or_refused_by_its_name():
    known = {*SAID, *OF_TRAINERS, *(name for names in OF.values() for name in names)}
    assert known <= {field.name for field in TABLE}
    assert {n for names in DIVIDED.values() for n in names} <= set(Sharding().words())
    for run, words in (
        ({"window": 8, "loop": "trainer"}, "window=8"),
        ({"holds": ("output",)}, "holds="),
        ({"frozen": ("embedding",)}, "frozen="),
        ({"loss": "liger"}, "loss='liger'"),
        ({"compile": "inductor"}, "compile='inductor'"),
        ({"loop": "gkd"}, "loop='gkd'"),
        ({"dropout": 0.1}, "dropout=0.1"),
        ({"devices": Sharding(pipeline=2), "micro_batches": 2}, "devices=pipeline 2"),
        ({"devices": Sharding.of(data=4, zero=3, replicas=2)}, "replicas=2"),
    ):
        with pytest.raises(ValueError, match=words):
            said("bf16", **run)


@pytest.mark.parametrize(
    ("recipe", "other", "run", "words"),
    [
        (None, None, {"loop": "sft", "texts": "packed"}, "padding_free=True"),
        (None, None, {"loop": "dpo", "reference": "precomputed"}, "precompute_ref_log_probs=True"),
        (None, None, {"loop": "sft", "micro_batches": 4}, "gradient_accumulation_steps=4"),
        (None, "reward", {"loop": "sft"}, "AutoModelForSequenceClassification"),
        ("bnb_adamw8bit", None, {"loop": "trainer"}, 'optim="adamw_bnb_8bit"'),
        ("bf16", None, {"devices": DDP}, "DistributedDataParallel"),
        ("bf16", None, {"devices": FSDP}, "fully_shard(layer)"),
        ("fp32", None, {"devices": Sharding.of(data=4, zero=3, param_dtype="bf16")}, "mp_policy="),
        ("zero", None, {"devices": Sharding(data=4, zero=2), "loop": "trainer"}, "'stage': 2"),
        (None, None, {"lora": Lora(8, base="nf4-dq")}, "bnb_4bit_use_double_quant=True"),
        ("bf16", None, {"lora": Lora(8, dora=True, saved=("lm_head",))}, "use_dora=True"),
        ("bf16", None, {"lora": Lora(8, ("q",), ranks=(("q", 4),))}, "rank_pattern="),
    ],
)
def test_a_field_stands_in_the_script(recipe, other, run, words):
    made, how = said(recipe, other, **run)
    assert words in made.text
    compile(made.text, "train.py", "exec")
    assert made.command[0] == ("python" if how.devices.ranks == 1 else "torchrun")


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    return tmp_path


def asked(capsys, *words):
    status = main([*words])
    out = capsys.readouterr()
    return status, out.out, out.err


DQ = "c.json --lora-rank 16 --lora-base nf4-dq --batch 2 --tokens 64".split()


@linux
@quiet
def test_the_answer_says_that_it_was_rehearsed(config, capsys):
    pytest.importorskip("bitsandbytes")
    status, out, err = asked(capsys, "estimate", *DQ, "--script", "own.py")
    assert status == 0 and "memlab: rehearsing the script of its trainer" in err
    first, *_, last = out.strip().split("\n")
    assert first.startswith("rehearsed, as no description has it: base='nf4-dq' is not described")
    assert last == "again: memlab rehearse -- python own.py" and "bitsandbytes 0." in out
    status, out, _ = asked(capsys, "fit", *DQ, "--on", "24 GB", "--json")
    told = json.loads(out)
    assert status == 0 and told["rehearsed"] is True and told["verdict"] == "fits"
    assert told["script"] == (config / "own.py").read_text(encoding="utf-8")
    assert {each.name for each in config.iterdir()} == {"c.json", "own.py"}
    again = asked(capsys, "rehearse", "--json", "--", "python", "own.py")[1]
    assert json.loads(again)["peak"]["bytes"] == told["peak"]["bytes"]


def test_what_is_missing_is_one_line(config, capsys, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setattr(rehearsed, "_there", lambda name: name == "torch")
    status, out, err = asked(capsys, "estimate", *DQ)
    assert (status, out) == (2, "") and err.count("\n") == 1
    assert "is rehearsed where the libraries are: pip install accelerate bitsandbytes peft" in err


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("--lora-rank 16 --lora-base int4 --tokens 64", "--lora-base int4 is not described"),
        ("--loop rewards --tokens 64", "did you mean reward?"),
        ("--loop sft --tokens 64 --eval-logits 2", "--eval-logits 2 without eval_batch"),
        ("--lora-rank 0 --tokens 64", "rank=0; at least 1 is needed"),
    ],
)
def test_a_slip_is_never_rehearsed(config, capsys, monkeypatch, words, line):
    monkeypatch.setattr(rehearsed, "answer", None)
    with contextlib.suppress(SystemExit):
        assert main(["estimate", "c.json", *words.split()]) == 2
    assert line in capsys.readouterr().err


def test_what_a_script_cannot_say_ends_in_both_reasons(config, capsys):
    pytest.importorskip("torch")
    words = "--fsdp 4 --replicas 2 --tokens 64 --loop trainer --lora-rank 4 --lora-base nf4"
    status, _, err = asked(capsys, "estimate", "c.json", *words.split())
    assert status == 2 and "nor is it rehearsed: --replicas 2" in err
    status, _, err = asked(capsys, "fit", *DQ[:-2], "--on", "24 GB")
    assert status == 2 and "with --batch and --tokens the step itself is rehearsed" in err


def test_a_script_of_what_is_described(config, capsys):
    pytest.importorskip("torch")
    status, out, err = asked(capsys, *"estimate c.json --batch 2 --tokens 64 --script t.py".split())
    assert status == 0 and "rehearsing" not in err
    assert "t.py is its script; memlab rehearse -- python t.py runs it" in out


def test_a_colocated_vllm_has_its_share(config, capsys):
    words = "fit c.json --on".split()
    loop = "--loop grpo --batch 2 --tokens 64 --json".split()
    alone, beside = (
        json.loads(asked(capsys, *words, "H100 80GB", *loop, *more)[1])
        for more in ([], ["--engine", "vllm", "--gpu-memory-utilization", "0.3"])
    )
    from memlab.devices import card

    less = int(0.3 * card("H100 80GB").limit) * 1000 // 1132
    assert abs(alone["limit"] - beside["limit"] - less) <= 1
    assert "less 0.3 of it for vLLM" in beside["device"]
    for more, line in (
        ("--loop grpo --gpu-memory-utilization 0.3", "is of --engine vllm; say it too"),
        ("--loop grpo --engine vllm --gpu-memory-utilization 1.3", "between 0 and 1"),
        ("--loop sft --engine vllm", "generates for --loop grpo and rloo"),
    ):
        status, _, err = asked(capsys, *words, "H100", "--batch", "2", *more.split())
        assert status == 2 and line in err
