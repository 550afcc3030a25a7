"""The real steps themselves: reproducible, complete, and counted the same by two methods."""

import json
import random
import statistics

import pytest
from real_steps import FAMILIES, Question, deep, random_configs, real_step, simulated

from memlab import Run
from memlab.cli import main

CLASSIC = ("gpt2", "opt", "gpt_neox")  # of the eight: dropout is not in attention alone
WINDOWED = ("mistral", "qwen2", "llama", "qwen3", "gemma")
# Every family, without dropout and with it; other seeds than those of test_step.
DRAWN = [
    *random_configs(deep(9), 61, dropouts=(0.0,)),
    *random_configs(deep(6), 62, dropouts=(0.1,), checkpoints=("none", "block")),
    *random_configs(deep(5), 67, checkpoints=("none", "block"), families=WINDOWED, windows=True),
]

LLAMA = Question(
    {
        "model_type": "llama",
        "num_hidden_layers": 2,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 61,
    },
    "fp32",
    Run.cpu(batch=2, tokens=16),
)


@pytest.mark.sample(3)
@pytest.mark.parametrize("family", FAMILIES)
def test_two_runs_of_one_step_are_the_same(family):
    layers = "n_layer" if family == "gpt2" else "num_hidden_layers"
    (step,) = random_configs(1, seed=5, families=(family,))
    step = step.replace(config=step.config | {layers: 2}, batch=2, tokens=9)
    first, again = real_step(step), real_step(step)
    slim = [{**run.to_json(), "seconds": 0} for run in (first, again)]
    assert slim[0] == slim[1]
    # Storages that go at the same time may go in any order.
    totals = [[e.total for e in run.events if e.kind != "free"] for run in (first, again)]
    assert totals[0] == totals[1]


def test_a_step_adds_up():
    run = real_step(LLAMA)
    ids = 8 * LLAMA.run.batch * LLAMA.run.tokens
    # Autograd keeps the ids for the embedding, and the hooks count them; here they are inputs.
    assert run.saved == run.activations + run.logits + ids
    stay = run.resident
    between = stay["weights"] + stay["buffers"] + stay["optimizer"] + ids
    assert run.held["between_steps"] == between
    assert run.held["after_backward"] == between + stay["gradients"]
    # The loss is alive after forward, and autograd does not keep it.
    assert run.held["after_forward"] == between + run.activations + run.logits + 4
    assert stay["weights"] == stay["gradients"] == 4 * run.parameters
    assert sum(run.peak.contents.values()) == run.peak.bytes == run.events[run.peak.index].total
    # The states are born in the first step's last phase, and are there in all of the second.
    assert run.first_peak.index < run.second <= run.peak.index
    assert run.first_peak.bytes <= run.peak.bytes


def allocations(found):
    """(bytes, total after it) of each allocation of the second step."""
    log = found.log
    events = log.events[log.marks["second.forward"] : log.marks["second.end"]]
    return [(size, total) for record, size, total in events if size > 0]


def share(found, real):
    """The error as a share of the real figure."""
    return abs(found - real) / max(real, 1)


def test_estimates_meet_the_promise():
    """The goals of the project: activations 0.1 %, peaks 1 % at worst and 0.1 % at the median."""
    peaks = []
    for step in DRAWN:
        real, found = real_step(step), simulated(step)
        for name, size in real.resident.items():
            assert found.rows[name] == size, f"{name} of {step}"
        assert share(found.rows["activations"], real.activations) <= 1e-3, step
        assert share(found.rows["logits"], real.logits) <= 1e-3, step
        for moment, size in real.held.items():
            assert share(found.held[moment], size) <= 1e-3, f"{moment} of {step}"
        peaks.append(share(found.peak.bytes, real.peak.bytes))
        peaks.append(share(found.peak.first_step_bytes, real.first_peak.bytes))
        assert max(peaks[-2:]) <= 1e-2, step
    assert statistics.median(peaks) <= 1e-3


# What the configs above leave to chance, each to the byte.
CORNERS = {
    "one head": ("gpt2", {"n_head": 1}, {}),
    "one sequence": ("opt", {}, {"batch": 1}),
    "one head, one sequence": ("gpt_neox", {"num_attention_heads": 1}, {"batch": 1}),
    "no layer between": ("gpt2", {"n_layer": 1}, {}),
    "norm after": ("opt", {"do_layer_norm_before": False, "word_embed_proj_dim": 24}, {}),
    "no final norm": ("opt", {"_remove_final_layer_norm": True}, {}),
    "sequential": ("gpt_neox", {"use_parallel_residual": False}, {}),
    "all of a head turns": (
        "gpt_neox",
        {
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 10000.0,
                "partial_rotary_factor": 1.0,
            }
        },
        {},
    ),
    "scaled rotary": ("gpt_neox", {"rope_scaling": {"rope_type": "linear", "factor": 2.0}}, {}),
    "rotary_pct": ("gpt_neox", {"rotary_pct": 0.5}, {}),
    "exact gelu": ("gpt2", {"activation_function": "gelu"}, {}),
    "gelu by tanh": ("gpt2", {"activation_function": "gelu_pytorch_tanh"}, {}),
    "relu": ("gpt2", {"activation_function": "relu"}, {}),
    "silu": ("gpt_neox", {"hidden_act": "silu"}, {}),
    "gelu": ("opt", {"activation_function": "gelu"}, {}),
}


# Each corner is tried in two of these.
VARIANTS = [("eager", "autocast-bf16", 0.1), ("sdpa", "bf16", 0.1), ("sdpa", "fp32", 0.0)]


@pytest.mark.sample(8)
@pytest.mark.parametrize("corner", CORNERS)
def test_corners_are_exact(corner):
    family, keys, more = CORNERS[corner]
    sizes = ("num_hidden_layers", 2), ("hidden_size", 48), ("num_attention_heads", 4)
    names = ("n_layer", "n_embd", "n_head") if family == "gpt2" else [name for name, _ in sizes]
    shape = {name: size for name, (_, size) in zip(names, sizes, strict=True)}
    wide = {"gpt2": "n_inner", "opt": "ffn_dim", "gpt_neox": "intermediate_size"}[family]
    config = {"model_type": family, **shape, wide: 80, "vocab_size": 61, **keys}
    step = Question(config, "fp32", Run.cpu(**{"batch": 3, "tokens": 11, **more}))
    first = list(CORNERS).index(corner)
    for attention, precision, dropout in (VARIANTS[first % 3], VARIANTS[(first + 1) % 3]):
        drawn = step.replace(attention=attention, precision=precision, dropout=dropout)
        real, found = real_step(drawn, in_place=False), simulated(drawn, in_place=False)
        assert allocations(found) == [
            (e.bytes, e.total) for e in real.events[real.second :] if e.kind == "alloc" and e.bytes
        ], drawn


@pytest.mark.parametrize("family", CLASSIC)
def test_many_layers_are_exact_though_four_are_simulated(family):
    (step,) = random_configs(1, 63, families=(family,), dropouts=(0.1,))
    layers = "n_layer" if family == "gpt2" else "num_hidden_layers"
    step = step.replace(config=step.config | {layers: 9}, precision="autocast-bf16")
    real, found = real_step(step), simulated(step)
    assert found.held == real.held
    assert found.peak.bytes == real.peak.bytes
    assert found.peak.first_step_bytes == real.first_peak.bytes


@pytest.mark.parametrize(
    "family, keys, message",
    [
        ("gpt2", {"activation_function": "mish"}, "activation_function='mish' is not described"),
        ("opt", {"activation_function": "tanh"}, "known: relu, gelu, silu"),
        ("opt", {"layerdrop": 0.1}, "layerdrop=0.1 is not described"),
        ("gpt_neox", {"hidden_act": "relu2"}, "hidden_act='relu2' is not described"),
        (
            "gpt_neox",
            {"rope_parameters": {"rope_type": "axial"}},
            "rope_type='axial' is not described",
        ),
        ("gpt2", {"add_cross_attention": True}, "add_cross_attention"),
        ("gpt2", {"reorder_and_upcast_attn": True}, "reorder_and_upcast_attn=True is not"),
    ],
)
def test_what_is_not_described_is_named(family, keys, message):
    (step,) = random_configs(1, 9, families=(family,))
    with pytest.raises(ValueError, match=message):
        simulated(step.replace(config=step.config | keys))


@pytest.mark.parametrize(
    "step",
    random_configs(4, 64, families=CLASSIC) + random_configs(3, 65, checkpoints=("block",)),
    ids=str,
)
def test_the_shell_says_the_same(step, tmp_path, capsys):
    """From a config.json alone, with the keys that change the step but no parameter."""
    (tmp_path / "config.json").write_text(json.dumps(step.config))
    told = {
        "batch": step.run.batch,
        "tokens": step.run.tokens,
        "precision": step.precision,
        "backend": "cpu",
        "optimizer-impl": step.run.optimizer_loop,
        "attention": step.run.attention,
        "dropout": step.run.dropout,
        "checkpoint": step.run.checkpoint,
    }
    words = [word for name, value in told.items() for word in (f"--{name}", str(value))]
    assert main(["estimate", str(tmp_path), *words, "--json"]) == 0
    said, real = json.loads(capsys.readouterr().out), real_step(step)
    assert said["parameters"] == real.parameters
    assert said["held"] == real.held
    assert said["peak"]["bytes"] == real.peak.bytes
    assert said["peak"]["first_step_bytes"] == real.first_peak.bytes
    assert said["rows"]["activations"] == real.activations
    assert said["rows"]["logits"] == real.logits


FROZEN = [
    ("attention",),
    ("feed_forward", "norm"),
    ("embedding", "positions"),
    ("attention", "feed_forward", "norm"),
    ("embedding", "positions", "attention", "feed_forward", "norm"),  # the output head is left
]


@pytest.mark.parametrize("family", CLASSIC)
def test_frozen_weights_are_exact(family):
    steps = random_configs(5, 66, families=(family,))
    again = [step.replace(checkpoint="block") for step in steps]
    for frozen, step in zip(FROZEN * 2, steps + again, strict=True):
        config = step.config | {"tie_word_embeddings": False}
        untied = step.replace(config=config, frozen=frozen)
        real, found = real_step(untied), simulated(untied)
        assert found.held == real.held, untied
        assert found.rows["activations"] == real.activations
        assert found.peak.bytes == real.peak.bytes
        assert found.peak.first_step_bytes == real.first_peak.bytes


def test_dropout_is_a_probability():
    (step,) = random_configs(1, 9, families=("gpt2",))
    with pytest.raises(ValueError, match="dropout=1.0 is not a probability"):
        simulated(step.replace(dropout=1.0))


def test_memlabs_own_models_run_the_same_step():
    theirs, ours = real_step(LLAMA), real_step(LLAMA.replace(implementation="memlab"))
    assert ours.parameters == theirs.parameters
    assert ours.resident["optimizer"] == theirs.resident["optimizer"]
    assert ours.activations != theirs.activations, "another implementation, other activations"


def test_random_configs_are_seeded_and_reach_every_option():
    assert random_configs(9, seed=3) == random_configs(9, seed=3) != random_configs(9, seed=4)
    drawn = random_configs(200, seed=0)
    assert {step.family for step in drawn} == set(FAMILIES)
    assert len({step.precision for step in drawn}) > 1
    for option in ("attention", "optimizer_impl", "dropout"):
        assert len({getattr(step.run, option) for step in drawn}) > 1, option
    rng = random.Random(0)
    assert all(step.replace(batch=1) != step.replace(batch=7) for step in rng.sample(drawn, 5))


def test_what_is_not_followed_is_refused_by_name():
    for name, value in {"step_in_backward": True, "holds": ("graph",)}.items():
        with pytest.raises(ValueError, match=f"{name}=.*: no real step is run so"):
            real_step(LLAMA.replace(**{name: value}))
    with pytest.raises(ValueError, match="backend='cuda': real steps run on this machine's CPU"):
        real_step(LLAMA.replace(backend="cuda"))


def test_a_question_is_json():
    for step in random_configs(8, seed=2):
        assert Question.from_json(json.loads(json.dumps(step.to_json()))) == step


def test_an_unknown_option_is_named():
    with pytest.raises(ValueError, match="unknown precision 'fp8'; known: fp32, bf16"):
        real_step(LLAMA.replace(precision="fp8"))
