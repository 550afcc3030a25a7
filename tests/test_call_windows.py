"""Calls beyond a sliding window: what a layer keeps, and the masks that it needs, to the byte."""

import pytest
from mixtures import random_mixtures
from more_families import drawn
from real_inference import PHASES, real_call, traced_call
from real_steps import Question, build, quiet
from test_calls import differences, simulated

from memlab import Run
from memlab.step.keys import scales_logits

DENSE = ("phi3", "starcoder2", "gemma2", "gemma3_text", "cohere2", "ministral", "smollm3")
OTHERS = ("mixtral", "qwen2_moe", "qwen3_moe", "gpt_oss", "llama4_text")
OLDER = ("mistral", "qwen2", "qwen3")  # with a config of ministral's shape
USED = ("smollm3", "qwen2", "qwen3", "qwen2_moe", "qwen3_moe")  # only where a config says so
# What the tracker calls logits is what the model returns; memlab, what
# scaled ones are made from, too.
SCALED = {"logits at the peak", "the rest at the peak"}


def apart(call, module=None):
    """What a call gets wrong beside that name."""
    return set(differences(call, real_call(call, module))) - (
        SCALED if scales_logits(call.model) else set()
    )


def windowed(family, window, seed):
    """A random config of the family whose windows are shorter than its texts."""
    if family in OTHERS:
        step = random_mixtures(1, seed, families=(family,), dropouts=(0.0,))[0]
    else:
        step = drawn(1, seed, ("ministral" if family in OLDER else family,), dropouts=(0.0,))[0]
    config = dict(step.config, model_type=family)
    key = "attention_chunk_size" if family == "llama4_text" else "sliding_window"
    config |= {key: window}
    for rotary in ("rope_scaling", "rope_parameters"):  # longrope: no call is described
        config.pop(rotary, None)
    if family in USED:
        config["use_sliding_window"] = True
    if family in OLDER:
        config.pop("layer_types", None)
    if family in ("qwen2", "qwen3"):
        config["max_window_layers"] = 1
    run = Run.cpu(attention=step.run.attention, batch=step.run.batch, tokens=step.run.tokens)
    return Question(config, step.precision, run)


@pytest.mark.sample(8)
@pytest.mark.parametrize(
    "family, window", [*zip([*DENSE, *OTHERS, *OLDER], [3, 16] * 8, strict=False)]
)
def test_calls_beyond_a_window_are_exact(family, window):
    step = windowed(family, window, 201)
    with quiet():
        module = build(step)
    for phase in PHASES.values():
        call = step.replace(**phase)
        assert not apart(call, module), call
        if family in OTHERS:  # fake tensors have no fp32 kernel of grouped products
            continue
        call = call.replace(backend="cuda")
        try:
            found = simulated(call)
        except ValueError:  # shared heads in fp32, named elsewhere
            continue
        real = traced_call(call, module)
        assert found.held == {"before_call": real.before, "after_call": real.after}, call
        assert found.peak.bytes == real.peak, call


def test_a_prompt_leaves_all_its_keys_and_the_next_token_forgets_them():
    step = windowed("mistral", 4, 201)
    prompt = simulated(step.replace(phase="prefill", tokens=40))
    token = simulated(step.replace(phase="decode", tokens=40))
    lengths = 8 * step.model.layers
    assert (prompt.rows["kv_cache"] - lengths) * 4 == (token.rows["kv_cache"] - lengths) * 40
    assert token.per_token == 0 < simulated(step.replace(phase="decode", tokens=2)).per_token


@pytest.mark.parametrize("kinds", [["full_attention"] * 2, ["sliding_attention"] * 2])
def test_a_mask_for_layers_that_are_not_there_is_as_wide_as_the_other(kinds):
    """transformers asks the first layer of all for its size where a kind has none."""
    config = {"model_type": "cohere2", "num_hidden_layers": 2, "hidden_size": 32}
    config |= {"num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 48}
    config |= {"vocab_size": 61, "layer_types": kinds, "sliding_window": 5, "pad_token_id": None}
    run = Run.cpu(attention="eager", batch=2, tokens=20, phase="decode")
    call = Question(config, "fp32", run)
    assert not apart(call)
