"""One question, one answer: every door gives the same bytes for the same model, recipe and run."""

import contextlib
import io
import json
import random

import pytest

from memlab import Model, Run
from memlab.cli import main
from memlab.estimate import estimate
from memlab.explain.explanation import explain
from memlab.fit import cheapest_change, largest_batch, longest_sequence
from memlab.step import Lora, simulate

PRESETS = ("tiny-gpt", "tiny-llama", "gpt2", "qwen3-0.6b", "llama-3-8b")
PRECISIONS = ("fp32", "bf16", "fp16", "autocast-bf16", "autocast-fp16")
LLAMA = {
    "model_type": "llama",
    "num_hidden_layers": 3,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 300,
}
OPT = {
    "model_type": "opt",
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "ffn_dim": 160,
    "num_attention_heads": 4,
    "vocab_size": 500,
}
NEOX = {
    "model_type": "gpt_neox",
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "intermediate_size": 80,
    "num_attention_heads": 4,
    "vocab_size": 300,
}
CONFIGS = (LLAMA, OPT, NEOX)


def question(rng):
    """A preset's name or a config, a precision's name, and a run."""
    model = rng.choice([*PRESETS, *CONFIGS])
    family = model["model_type"] if isinstance(model, dict) else Model.preset(model).family
    said = {"batch": rng.randint(1, 4), "tokens": rng.choice([2, 17, 64, 200])}
    choices = {
        "backend": ["cpu"],
        "optimizer_impl": ["forloop", "foreach", "fused"],
        "checkpoint": ["block"],
        "micro_batches": [2],
        "attention": ["sdpa", "eager"],
        "dropout": [0.0] if family == "opt" else [0.0, 0.1],
        "step_in_backward": [True],
    }
    if family in ("llama", "qwen3"):
        wide = Lora(8, ("up", "down"), dtype="fp32")
        choices |= {"lora": [Lora(4), wide], "implementation": ["memlab"]}
    said |= {name: rng.choice(those) for name, those in choices.items() if rng.random() < 0.35}
    if rng.random() < 0.3:
        said |= {"loss": "chunked"} | ({"loss_chunks": 2} if rng.random() < 0.5 else {})
    return model, rng.choice(PRECISIONS), said


def model_of(model):
    return Model.from_config(model) if isinstance(model, dict) else Model.preset(model)


def questions(count):
    """Seeded ones, of which each has an answer; an error is one answer, too, and comes later."""
    rng, found = random.Random("one answer"), []
    while len(found) < count:
        model, precision, said = question(rng)
        try:
            run = Run(**said)
            simulate(model_of(model), precision, run)
        except ValueError:
            continue
        found.append((model, precision, run))
    return found


ASKED = questions(40)


def words_of(model, precision, run, folder):
    """The same question as the shell takes it, one flag for each field that is said."""
    if isinstance(model, dict):
        (folder / "config.json").write_text(json.dumps(model))
        model = str(folder)
    words = [model, "--precision", precision]
    for name, value in run.said().items():
        if isinstance(value, Lora):
            words += ["--lora-rank", str(value.rank), "--lora-targets", ",".join(value.targets)]
            words += ["--lora-dtype", value.dtype] if value.dtype else []
        elif value is True:
            words.append("--" + name.replace("_", "-"))
        else:
            words += ["--" + name.replace("_", "-"), str(value)]
    return words


def shell(*words):
    """What a command prints with --json."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main([*words, "--json"]) in (0, 1)
    return json.loads(out.getvalue())


WRONG = {
    "simulate": simulate,
    "estimate": estimate,
    "explain": lambda model, recipe, run: explain(model, recipe, run, seen="9 GB"),
    "largest_batch": lambda model, recipe, run: largest_batch(model, recipe, run, on="H100"),
    "longest_sequence": lambda model, recipe, run: longest_sequence(model, recipe, run, on="H100"),
    "cheapest_change": lambda model, recipe, run: cheapest_change(model, recipe, run, on="H100"),
}


@pytest.mark.parametrize("door", WRONG.values(), ids=WRONG)
def test_a_name_in_the_place_of_a_value_is_refused_at_every_door(door):
    """It was an AttributeError about whatever was looked at first."""
    with pytest.raises(TypeError, match=r"model='gpt2' is a str; Model.preset\(...\) makes one"):
        door("gpt2", "fp32", Run(tokens=8))
    with pytest.raises(TypeError, match=r"run=\{'tokens': 8\} is a dict; a memlab.Run is needed"):
        door(Model.preset("gpt2"), "fp32", {"tokens": 8})


# A door: (name of the model or its config, precision, run, an empty folder) -> bytes of the peak.
# The page's calculator is one more; whoever asks it in a test adds a line here.
DOORS = {
    "simulate": lambda model, precision, run, folder: (
        simulate(model_of(model), precision, run).peak.bytes
    ),
    "estimate": lambda model, precision, run, folder: estimate(
        model_of(model), precision, run
    ).total(),
    "memlab estimate": lambda model, precision, run, folder: shell(
        "estimate", *words_of(model, precision, run, folder)
    )["peak"]["bytes"],
    "explain": lambda model, precision, run, folder: explain(
        model_of(model), precision, run, seen=1
    ).predicted.total(),
    "memlab explain": lambda model, precision, run, folder: shell(
        "explain", *words_of(model, precision, run, folder), "--seen", "1B"
    )["predicted_bytes"],
}


@pytest.mark.sample(9)
@pytest.mark.parametrize("asked", ASKED, ids=lambda q: f"{q[0]} {q[1]} {q[2].said()}")
def test_every_door_gives_one_answer(asked, tmp_path):
    answers = {name: door(*asked, tmp_path) for name, door in DOORS.items()}
    assert len(set(answers.values())) == 1, answers


@pytest.mark.sample(7)
@pytest.mark.parametrize("asked", ASKED[::3], ids=lambda q: f"{q[0]} {q[1]} {q[2].said()}")
def test_what_fits_is_what_estimate_says(asked, tmp_path):
    """With just the bytes of its peak free a batch fits, and with a byte less it does not."""
    model, precision, run = asked
    shape = model_of(model)
    peak = estimate(shape, precision, run).total()
    fit = largest_batch(shape, precision, run, on=peak, spare=0)
    assert fit.value >= run.batch  # one step may take no more than a smaller one
    assert estimate(shape, precision, run.replace(batch=fit.value)).total() == fit.peak <= peak
    assert estimate(shape, precision, run.replace(batch=fit.value + 1)).total() > peak
    words = words_of(model, precision, run, tmp_path)
    words += ["--batch", str(run.batch), "--spare", "0", "--on"]
    assert shell("fit", *words, f"{peak}B")["fits"] is True
    assert shell("fit", *words, f"{peak - 1}B")["fits"] is False


def test_the_questions_reach_what_they_should():
    runs = [run for _, _, run in ASKED]
    assert {precision for _, precision, _ in ASKED} == set(PRECISIONS)
    assert len({str(model) for model, _, _ in ASKED}) == len(PRESETS) + len(CONFIGS)
    for name in ("backend", "optimizer_impl", "checkpoint", "attention", "dropout", "lora", "loss"):
        assert len({getattr(run, name) for run in runs}) > 1, name
    for name in ("micro_batches", "implementation", "step_in_backward"):
        assert len({getattr(run, name) for run in runs}) > 1, name


# Few, for a trace takes seconds; on a CPU every byte is real, so these are equal to the byte.
TRACED = [
    ("tiny-llama", "bf16", Run(batch=2, tokens=48)),
    ("tiny-llama", "fp32", Run(batch=3, tokens=32, implementation="memlab")),
    ("tiny-gpt", "autocast-bf16", Run(batch=2, tokens=32)),
    (LLAMA, "fp32", Run.cpu(batch=2, tokens=40, checkpoint="block", attention="eager")),
    (LLAMA, "bf16", Run(batch=2, tokens=64, lora=Lora(4), loss="chunked", loss_chunks=3)),
    (NEOX, "bf16", Run(batch=2, tokens=33, optimizer_impl="fused", dropout=0.1)),
    (OPT, "fp32", Run.cpu(batch=2, tokens=33, dropout=0.1)),
]


@pytest.mark.sample(4)
@pytest.mark.parametrize("asked", TRACED, ids=str)
def test_a_trace_gives_the_same_answer(asked, tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from memlab.lab.trace_run import trace_run

    model, precision, run = asked
    derived = estimate(model_of(model), precision, run).total()
    assert trace_run(model_of(model), precision, run).peak == derived
    assert shell("trace", *words_of(*asked, tmp_path))["peak"]["bytes"] == derived
