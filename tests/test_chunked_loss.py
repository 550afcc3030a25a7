"""A chunked loss inside the step, simulated against real steps: to the byte, in every family."""

import pytest
import torch
from compare import allocates_as_real, is_real
from real_steps import deep, random_configs, simulated
from test_step import LLAMAS
from test_step_cuda import on_cuda, traced

from memlab import Model, Run
from memlab.cli import main
from memlab.lab.models import TinyGPT, TinyLlama
from memlab.step import simulate
from memlab.terms.logits import chunked_peak

TINY = [
    *random_configs(4, 81, families=LLAMAS, implementations=("memlab",), dropouts=(0.0,)),
    *random_configs(3, 82, families=("gpt2",), implementations=("memlab",)),
]
STEPS = [*TINY, *random_configs(deep(5), 83), *random_configs(deep(3), 84, checkpoints=("block",))]
STEPS = [
    s.replace(loss="chunked", loss_chunks=(1, 3, 5)[i % 3], micro_batches=1 + i % 2)
    for i, s in enumerate(STEPS)
]


@pytest.mark.sample(6)
@pytest.mark.parametrize("step", STEPS, ids=str)
def test_every_figure_is_the_real_one(step):
    real, _ = is_real(step)


@pytest.mark.sample(2)
@pytest.mark.parametrize("step", STEPS[::3], ids=str)
def test_every_allocation_is_the_real_one(step):
    allocates_as_real(step)


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "step", [*on_cuda(s.replace(micro_batches=1) for s in STEPS[: len(TINY)])], ids=str
)
def test_the_cuda_graph_is_the_traced_one(step):
    real, found = traced(step), simulated(step.replace(backend="cuda"))
    assert real.peak == found.peak.bytes
    assert {moment: real.held[moment] for moment in found.held} == found.held


@pytest.mark.parametrize("recipe, format", [("fp32", "fp32"), ("bf16", "bf16")])
def test_the_loss_peaks_as_its_term_says(recipe, format):
    """A step whose largest moment is the loss: what is held before it, and the term."""
    model = Model(layers=1, d_model=32, d_ff=32, heads=2, vocab=6000)
    how = dict(batch=4, tokens=64, implementation="memlab", optimizer_impl="fused")
    plain, cut = (
        simulate(model, recipe, Run.cpu(**how, **loss))
        for loss in ({}, {"loss": "chunked", "loss_chunks": 4})
    )
    assert cut.peak.moment == "loss" and cut.peak.bytes < plain.peak.bytes
    log = cut.log
    before = log.events[log.marks["second.loss"] - 1][2]
    labels = 8 * 4 * 64  # shifted, and dropped when the loss returns
    assert cut.peak.bytes == before + labels + chunked_peak(
        4 * 64, vocab=6000, d_model=32, chunks=4, format=format
    )
    # After the forward pass two gradients wait, that of x and the head's own; no logits.
    width = {"fp32": 4, "bf16": 2}[format]
    assert cut.rows["logits"] == width * 32 * 4 * 64
    assert cut.held_contents["after_forward"]["gradients"] == width * 32 * 6000


@pytest.mark.parametrize("kind, family", [(TinyLlama, "llama"), (TinyGPT, "gpt2")])
def test_the_loss_is_the_plain_one(kind, family):
    model = Model(family=family, layers=1, d_model=16, d_ff=32, heads=2, vocab=50, positions=16)
    ids = torch.randint(50, (3, 9), generator=torch.Generator().manual_seed(0))
    losses, gradients = [], []
    for chunks in (0, 4):
        torch.manual_seed(0)
        module = kind(model, loss_chunks=chunks)
        loss = module(ids, ids)
        loss.backward()
        losses.append(loss)
        gradients.append([parameter.grad for parameter in module.parameters()])
        assert module(ids).shape == (3, 9, 50)
    torch.testing.assert_close(*losses)
    for plain, cut in zip(*gradients, strict=True):
        torch.testing.assert_close(plain, cut)


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"loss": "fused"}, "loss='fused' is not described; known: plain, cross_entropy, chunked"),
        ({"loss": "chunked", "loss_chunks": 0}, "loss_chunks=0; at least 1 is needed"),
        ({"loss": "chunked", "loss_chunks": 17}, "loss_chunks=17; between 1 and 16"),
    ],
)
def test_what_is_not_described_is_named(changes, words):
    with pytest.raises(ValueError, match=words):
        simulate(Model.preset("tiny-llama"), "fp32", Run.cpu(batch=2, tokens=8, **changes))


def test_the_shell_says_the_same(capsys):
    words = "estimate gpt2 --batch 3 --tokens 128 --loss chunked --loss-chunks 6"
    words += " --optimizer-impl fused"  # else its temporaries are the peak, and no loss lowers it
    assert main(words.split()) == 0
    model, how = Model.preset("gpt2"), dict(batch=3, tokens=128, optimizer_impl="fused")
    cut = simulate(model, "fp32", Run(loss="chunked", loss_chunks=6, **how))
    assert cut.peak.bytes < simulate(model, "fp32", Run(**how)).peak.bytes
    from memlab.units import text

    assert text(cut.peak.bytes) in capsys.readouterr().out
