"""The loss of a loop of one's own: cross-entropy of the logits as they are, in real steps."""

import pytest
import torch
from compare import allocates_as_real, is_real
from real_steps import deep, random_configs

from memlab import Model, Run, Sharding, estimate, trace
from memlab.adapters import Ia3, Lora
from memlab.cli import main
from memlab.lab.subject import loss_of, subject
from memlab.step import simulate

DRAWN = [
    *random_configs(deep(6), 91, checkpoints=("none", "block"), dropouts=(0.0,)),
    *random_configs(
        deep(3), 92, families=("gpt2", "llama"), implementations=("memlab",), dropouts=(0.0,)
    ),
]
STEPS = [s.replace(loss="cross_entropy", micro_batches=1 + i % 2) for i, s in enumerate(DRAWN)]
GPT2 = Model.preset("gpt2")


@pytest.mark.sample(5)
@pytest.mark.parametrize("step", STEPS, ids=str)
def test_every_figure_is_the_real_one(step):
    real, _ = is_real(step)


@pytest.mark.parametrize("step", STEPS[::3], ids=str)
def test_every_allocation_is_the_real_one(step):
    allocates_as_real(step)


@pytest.mark.sample(1)
@pytest.mark.parametrize("precision", ["bf16", "autocast-bf16"])
def test_beside_adapters_it_is_the_real_one(precision):
    llama = next(s for s in STEPS if s.family == "llama")
    step = llama.replace(precision=precision, lora=Lora(4), implementation="transformers")
    is_real(step)


def test_a_trace_sees_the_same_step():
    model = Model.preset("tiny-llama")
    for implementation in ("transformers", "memlab"):
        run = Run.cpu(tokens=32, loss="cross_entropy", implementation=implementation)
        assert trace(model, "bf16", run).peak == simulate(model, "bf16", run).peak.bytes
        run = run.replace(backend="cuda")
        assert trace(model, "bf16", run).peak == simulate(model, "bf16", run).peak.bytes


def test_in_narrow_formats_eight_bytes_a_logit_are_spared_and_in_fp32_none():
    """bf16: logits, their log-softmax and its gradient, 2 bytes each; fp32: 4 each, both ways."""

    def peak(recipe, loss):
        run = Run(batch=4, tokens=1024, implementation="memlab", loss=loss)
        return estimate(GPT2, recipe, run).total()

    logits = 4 * 1024 * GPT2.vocab
    assert peak("bf16", "plain") - peak("bf16", "cross_entropy") == pytest.approx(
        6 * logits, rel=0.01
    )
    assert abs(peak("fp32", "plain") - peak("fp32", "cross_entropy")) < logits / 100
    assert abs(peak("autocast", "plain") - peak("autocast", "cross_entropy")) < logits / 100


def test_it_is_the_mean_loss_of_labels_that_are_shifted():
    model = Model.preset("tiny-llama")
    torch.manual_seed(0)
    for implementation in ("transformers", "memlab"):
        own = Run.cpu(tokens=16, loss="cross_entropy", implementation=implementation)
        with torch.device("cpu"):
            module = subject(model, "fp32", own)
        ids = torch.randint(model.vocab, (2, 16))
        labels = torch.nn.functional.pad(ids[:, 1:], (0, 1), value=-100)
        plain = loss_of(module, ids, own.replace(loss="plain"))
        assert loss_of(module, ids, own, labels).item() == pytest.approx(plain.item(), rel=1e-5)


@pytest.mark.parametrize(
    "said",
    [
        {"loop": "keeps-outputs"},
        {"texts": "padded"},
        {"devices": Sharding(data=2, zero=3)},
        {"adapter": Ia3()},
    ],
)
def test_what_is_not_described_is_refused(said):
    with pytest.raises(ValueError, match="loss='cross_entropy' is described with loop='plain'"):
        Run(tokens=8, loss="cross_entropy", **said)


def test_the_shell_knows_it(capsys):
    assert main("estimate gpt2 --precision bf16 --tokens 64 --loss cross_entropy".split()) == 0
    plain = capsys.readouterr().out
    assert main("estimate gpt2 --precision bf16 --tokens 64".split()) == 0
    assert plain != capsys.readouterr().out
