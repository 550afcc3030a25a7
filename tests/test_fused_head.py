"""TRL's fused output head against real steps: bytes on a CPU, and what CUDA's tiles leave out."""

import pytest
from real_steps import random_configs, real_step, simulated

from memlab import Model, Run
from memlab.step import simulate

FAMILIES = ("llama", "gpt2", "opt", "gemma")
DRAWN = [
    step.replace(loss="fused_head")
    for step in random_configs(
        6, 31, families=FAMILIES, dropouts=(0.0,), checkpoints=("none", "block")
    )
]
# With a vocabulary of more than one tile.
WIDE = [
    step.replace(config=step.config | {"vocab_size": 33000 + 7 * number}, batch=1)
    for number, step in enumerate(DRAWN[::2])
]


@pytest.mark.sample(6)
@pytest.mark.filterwarnings("ignore")  # of what TRL imports
@pytest.mark.parametrize("step", [*DRAWN, *WIDE], ids=str)
def test_the_step_is_the_real_one(step):
    real, derived = real_step(step), simulated(step)
    assert derived.peak.bytes == real.peak.bytes
    assert derived.held == real.held


def test_on_cuda_a_step_holds_one_tile_and_the_heads_gradient_in_fp32():
    model = Model.preset("Llama-3.2-1B")
    run = Run(batch=8, tokens=1024, loss="fused_head", optimizer_impl="fused")
    step = simulate(model, "bf16", run)
    rows, tile = 8 * 1023, 4096 * 32768 * 2
    sums = 4 * (rows + model.vocab) * model.d_model
    at_head = step.log.contents(_top(step), lambda record: record.op)
    assert at_head["zeros"] == sums and at_head["empty"] == tile
    plain = simulate(model, "bf16", run.replace(loss="plain"))
    logits = 8 * 1024 * model.vocab
    assert plain.peak.bytes - step.peak.bytes > 2 * logits  # of its 4, 4 and 2 bytes a logit


def _top(step):
    """Behind the event in backward that made the sums and the tile."""
    events = step.log.events
    start = step.log.marks["second.backward"]
    names = [None if record is None else record.op for record, _, _ in events[start:]]
    return start + names.index("empty") + 1


def test_what_has_no_such_head_is_refused_by_name():
    with pytest.raises(ValueError, match="loss='fused_head' is TRL's, for models of transformers"):
        Run(tokens=8, loss="fused_head", implementation="memlab")
    with pytest.raises(ValueError, match="loss_chunks=4 without loss='chunked'"):
        Run(tokens=8, loss="fused_head", loss_chunks=4)
    gemma2 = Model.preset("gemma-2-2b")
    assert simulate(gemma2, "bf16", Run(tokens=64, loss="fused_head")).peak.bytes > 0
    with pytest.raises(ValueError, match="the soft cap of gemma2's logits"):
        simulate(gemma2, "bf16", Run.cpu(tokens=64, loss="fused_head"))
