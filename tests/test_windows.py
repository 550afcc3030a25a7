"""Sliding windows: the masks that transformers makes, and what they cost, against real steps."""

import itertools

import pytest
from compare import apart
from real_steps import Question, real_step, simulated
from test_step_cuda import traced

from memlab import Model, Run
from memlab.step import simulate
from memlab.step.windows import first_apart

MISTRAL = {
    "model_type": "mistral",
    "num_hidden_layers": 2,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "vocab_size": 61,
    "sliding_window": 8,
}
QWEN = MISTRAL | {
    "model_type": "qwen3",
    "num_hidden_layers": 3,
    "use_sliding_window": True,
    "max_window_layers": 1,
}
ALTERNATING = ["sliding_attention", "full_attention", "sliding_attention"]

# Shared heads, dropout, precision, attention, batch: every pair of them at least once.
PLANS = [
    (4, 0.0, "fp32", "sdpa", 3),
    (2, 0.0, "autocast-bf16", "sdpa", 1),
    (1, 0.1, "fp32", "sdpa", 3),
    (2, 0.1, "bf16", "sdpa", 1),
    (1, 0.0, "bf16", "sdpa", 3),
    (4, 0.1, "autocast-bf16", "sdpa", 3),
    (2, 0.0, "fp32", "eager", 3),
    (1, 0.1, "autocast-bf16", "eager", 1),
]


def planned(config, plan):
    kv_heads, dropout, precision, attention, batch = plan
    return Question(
        config | {"num_key_value_heads": kv_heads},
        precision,
        Run.cpu(dropout=dropout, attention=attention, batch=batch, tokens=11),
    )


CONFIGS = {
    "mistral": MISTRAL,
    "as long as the window": MISTRAL | {"sliding_window": 11},
    "one token inside": MISTRAL | {"sliding_window": 12},
    "qwen3": QWEN,
    "qwen2": QWEN | {"model_type": "qwen2", "hidden_size": 32},
    "all slide": QWEN | {"max_window_layers": 0},
    "none slides": QWEN | {"max_window_layers": 28},
    "alternating": QWEN | {"layer_types": ALTERNATING},
}
CASES = [(name, PLANS[i % len(PLANS)]) for i, name in enumerate([*CONFIGS] * 2)]


@pytest.mark.sample(11)
@pytest.mark.parametrize("name, plan", [*CASES, *(("mistral", plan) for plan in PLANS)])
def test_every_allocation_is_the_real_one(name, plan):
    step = planned(CONFIGS[name], plan)
    if plan in PLANS[::3]:
        step = step.replace(checkpoint="block")
    real, found = real_step(step, in_place=False), simulated(step, in_place=False)
    log = found.log
    events = log.events[log.marks["second.forward"] : log.marks["second.end"]]
    there = [e for e in real.events[real.second :] if e.kind == "alloc" and e.bytes]
    assert [(size, total) for _, size, total in events if size > 0] == [
        (event.bytes, event.total) for event in there
    ]
    assert apart(real, found) == {}


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    "name, plan",
    [*itertools.product(("mistral",), PLANS), ("alternating", PLANS[1]), ("qwen2", PLANS[3])],
)
def test_windows_on_cuda_are_the_traced_ones(name, plan):
    step = planned(CONFIGS[name], plan).replace(tokens=70)  # long: the peak is not the optimizer's
    real, found = traced(step), simulated(step.replace(backend="cuda"))
    assert found.held == real.held
    assert (found.peak.bytes, found.peak.moment) == (real.peak, real.moment)


def test_a_window_costs_a_mask_of_numbers_in_each_layer():
    """Once the window is full, each layer keeps 2·B·T² bytes in bf16, and heads repeated."""
    L, B, T = 4, 2, 4096
    sizes = dict(layers=L, d_model=4096, d_ff=14336, heads=32, kv_heads=8, vocab=32000)
    model = Model(family="mistral", **sizes)
    inside, filled = (
        simulate(model, "bf16", Run.cpu(batch=B, tokens=T, window=size)).rows["activations"]
        for size in (T + 1, T)
    )
    repeated = 2 * 2 * B * T * model.head_dim * (model.heads - model.kv_heads)  # k and v
    assert filled - inside == L * (2 * B * T * T + repeated)


def test_layers_of_two_kinds_are_all_simulated():
    few, many = (
        simulated(planned(QWEN | {"num_hidden_layers": n, "max_window_layers": 2}, PLANS[0]))
        for n in (6, 12)
    )
    assert len(many.log.events) > 1.5 * len(few.log.events)


@pytest.mark.parametrize("texts", ["full", "padded"])
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("checkpoint", ["none", "block"])
def test_layers_that_take_turns_are_alike_where_the_window_is_longer(texts, attention, checkpoint):
    config = QWEN | {"num_hidden_layers": 9, "layer_types": (4 * ALTERNATING[:2] + ALTERNATING)[:9]}
    model = Model.from_config(config)
    run = Run(batch=2, attention=attention, checkpoint=checkpoint, texts=texts, micro_batches=2)
    for tokens, fewer in ((7, True), (8, False)):
        here = run.replace(tokens=tokens)
        some, every = (simulate(model, "bf16", here, every_layer=way) for way in (False, True))
        assert (some.peak.bytes, some.peak.moment) == (every.peak.bytes, every.peak.moment)
        assert some.peak.contents == every.peak.contents
        assert (some.held_contents, some.rows) == (every.held_contents, every.rows)
        assert bool(some.log.repeats) == fewer


def test_layers_in_groups_are_simulated_one_by_one():
    config = QWEN | {"num_hidden_layers": 9, "layer_types": 3 * (ALTERNATING[:1] + ALTERNATING[:2])}
    assert first_apart(Model.from_config(config), tokens=7) is None
