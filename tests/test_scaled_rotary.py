"""Every scaling of the rotary base, inside the trained length and beyond it, against real steps."""

import itertools

import pytest
from real_steps import Question, real_step, simulated
from test_step_cuda import traced

from memlab import Run

SHAPE = {
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "intermediate_size": 80,
    "vocab_size": 61,
    "max_position_embeddings": 20,
}
FAMILIES = {
    "llama": SHAPE | {"num_key_value_heads": 2, "head_dim": 8},
    "gpt_neox": SHAPE,  # heads of 16, half of which turn
}
FACTORS = {"short_factor": [1.0] * 4, "long_factor": [2.0] * 4}
SCALINGS = {
    "linear": {"factor": 2.0},
    "llama3": {
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 10,
    },
    "yarn": {"factor": 2.0, "original_max_position_embeddings": 10},
    "proportional": {},
    "dynamic": {"factor": 2.0},
    "longrope": {"factor": 2.0, "original_max_position_embeddings": 10, **FACTORS},
}


def scaled(family, kind, tokens):
    rope = {"rope_type": kind, "rope_theta": 10000.0, **SCALINGS[kind]}
    if family == "gpt_neox":
        rope["partial_rotary_factor"] = 0.5
    config = {"model_type": family, **FAMILIES[family], "rope_parameters": rope}
    return Question(config, "bf16", Run.cpu(batch=2, tokens=tokens))


@pytest.mark.sample(11)
@pytest.mark.parametrize("family, kind", [*itertools.product(FAMILIES, SCALINGS)])
@pytest.mark.parametrize("tokens", [9, 21])
def test_every_allocation_is_the_real_one(family, kind, tokens):
    step = scaled(family, kind, tokens)
    real, found = real_step(step, in_place=False), simulated(step, in_place=False)
    log = found.log
    events = log.events[log.marks["second.forward"] : log.marks["second.end"]]
    assert [(size, total) for _, size, total in events if size > 0] == [
        (e.bytes, e.total) for e in real.events[real.second :] if e.kind == "alloc" and e.bytes
    ]
    assert found.held == real.held
    assert found.peak.first_step_bytes == real.first_peak.bytes
    for name, size in real.resident.items():
        assert found.rows[name] == size, name


@pytest.mark.sample(5)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kind", [kind for kind in SCALINGS if kind != "dynamic"])
def test_scaled_bases_on_cuda_are_the_traced_ones(family, kind):
    step = scaled(family, kind, 70)
    real, found = traced(step), simulated(step.replace(backend="cuda"))
    assert found.held == real.held
    assert (found.peak.bytes, found.peak.moment) == (real.peak, real.moment)


def test_what_the_scalings_add():
    """Nothing; longrope keeps a second set of frequencies, dynamic the length it has grown to."""
    plain = simulated(scaled("llama", "linear", 21)).held["between_steps"]
    added = {
        kind: simulated(scaled("llama", kind, 21)).held["between_steps"] - plain
        for kind in SCALINGS
    }
    assert added == dict.fromkeys(SCALINGS, 0) | {"dynamic": 8, "longrope": 4 * 8 // 2}
