"""One question at two doors: what estimate derives is what a trace of the real code finds.

Peak and held are equal to the byte. The allocator is fed by two logs that free what goes at one
moment in another order, so it may need a segment or two more or less, as both doors say.
A larger draw: MEMLAB_DEPTH=20.
"""

import os

import pytest
from real_steps import random_configs

from memlab import Model, Run
from memlab.adapters import Prompt
from memlab.lab.trace_run import trace_run
from memlab.step import calls
from memlab.step.core.allocator_replay import replayed
from memlab.step.simulate import simulate
from memlab.terms.allocator import LARGE_SEGMENT, SMALL_SEGMENT, segment_for

DEPTH = int(os.environ.get("MEMLAB_DEPTH", "1"))
FAMILIES = ("llama", "gpt2", "mistral", "qwen3", "gemma")
DRAWN = [
    step.replace(backend="cuda")
    for step in random_configs(
        5 * DEPTH, 33, families=FAMILIES, checkpoints=("none", "block"), windows=True
    )
]


def near(trace, done):
    """Whether both replays are one up to two segments of the size that the step takes."""
    segment = SMALL_SEGMENT if done.requested < LARGE_SEGMENT else LARGE_SEGMENT
    assert segment_for(1) == SMALL_SEGMENT
    return abs(trace.reserved() - done.reserved) <= 2 * segment


@pytest.mark.sample(3)
@pytest.mark.parametrize("step", DRAWN, ids=str)
def test_a_step_is_one_at_both_doors(step):
    traced = trace_run(step.model, step.recipe, step.run)
    derived = simulate(step.model, step.recipe, step.run)
    assert (traced.peak, traced.held) == (derived.peak.bytes, derived.held)
    assert traced.first_step_peak == derived.peak.first_step_bytes
    assert near(traced, replayed(step.model, step.recipe, step.run))


@pytest.mark.sample(3)
@pytest.mark.filterwarnings("ignore")  # of what TRL imports
@pytest.mark.parametrize("recipe", ["fp32", "bf16", "autocast"])
@pytest.mark.parametrize("name", ["tiny-llama", "tiny-gpt"])
def test_the_fused_head_is_one_at_both_doors(name, recipe):
    """A trace took the plain loss in its place, whatever was said."""
    model, run = Model.preset(name), Run.cpu(batch=2, tokens=64, loss="fused_head")
    traced, derived = trace_run(model, recipe, run), simulate(model, recipe, run)
    assert (traced.peak, traced.held) == (derived.peak.bytes, derived.held)
    with pytest.raises(ValueError, match="loss='fused_head' cannot be traced for backend='cuda'"):
        trace_run(model, recipe, run.replace(backend="cuda"))


@pytest.mark.parametrize("batch", [1, 3])
def test_a_prompt_is_one_at_both_doors(batch):
    """Its numbers stay on the host; a card has the copies of one call (peft's get_prompt)."""
    model, run = Model.preset("tiny-llama"), Run(batch=batch, tokens=24, adapter=Prompt(5))
    traced, derived = trace_run(model, "fp32", run), simulate(model, "fp32", run)
    assert (traced.peak, traced.held) == (derived.peak.bytes, derived.held)


WINDOWS = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 128,
    "sliding_window": 16,
}


@pytest.mark.parametrize("family", ["gemma2", "mistral"])
def test_a_window_holds_one_at_both_doors(family):
    """After a prompt that is longer than the window, and one token that was read alone."""
    model = Model.from_config({"model_type": family, **WINDOWS})
    run = Run(phase="decode", batch=2, tokens=40)
    traced, derived = trace_run(model, "bf16", run), calls.decode(model, "bf16", run)
    assert traced.held == derived.held and traced.peak == derived.peak.bytes
