"""Muon beside Lion, in fp32, in 8 bits, and in 8 bits on a host: bytes, and the same losses."""

import pytest
import torch

from memlab import Model, Run
from memlab.cases import muon_lion
from memlab.lab import text as alice
from memlab.lab.host import File
from memlab.lab.models import TinyLlama
from memlab.lab.train import one_thread
from memlab.measure import Tracker, resident, storage_bytes

TINY = Model(layers=2, d_model=128, d_ff=384, heads=4, vocab=512, positions=64)
WAYS = {"fp32": {}, "8 bits": {"eight": True}, "host": {"eight": True, "host": True}}


def run(way, steps=2):
    torch.manual_seed(0)
    net, host, losses = TinyLlama(TINY), None, []
    if WAYS[way].get("host"):
        host = File()
    opt = muon_lion.optimizer(net.parameters(), TINY.vocab, eight="eight" in WAYS[way], host=host)
    with one_thread(), Tracker() as tracker:
        tracker.label(net)
        for ids in alice.batches(4, 64, steps=steps):
            loss = net(ids, ids)
            loss.backward()
            losses.append(loss.item())
            del loss
            opt.step()
            opt.zero_grad()
    return tracker.peak - storage_bytes(alice.tokens()), losses, resident(net, opt), host


@pytest.mark.parametrize("way", WAYS)
def test_states_and_peak_are_those_derived(way):
    kept = sum(muon_lion.states(TINY, **WAYS[way]).values())
    peak, _, held, host = run(way)
    assert held["optimizer"] == kept
    how = Run.cpu(batch=4, tokens=64, implementation="memlab")
    # All passages are cut before the first step: those of the second are there in the first.
    assert peak - muon_lion.peak(TINY, kept, how)[0] in (0, 4 * 64 * 8)
    if host is not None:  # sent after each step, brought for each but the first
        eight = muon_lion.states(TINY, eight=True)["muon"]
        assert (host.held, host.sent, host.brought) == (eight, 2 * eight, eight)


def test_where_the_codes_are_changes_no_loss():
    here, there = run("8 bits", 4)[1], run("host", 4)[1]
    assert here == there
    wide = run("fp32", 4)[1]
    assert wide != here and wide[-1] == pytest.approx(here[-1], rel=0.01)


def test_full_precision_is_torchs_muon():
    torch.manual_seed(0)
    weight, grad = torch.randn(2, 64, 128)
    found = []
    for make in (
        lambda p: muon_lion.FullMuon(p, lr=1e-2),
        lambda p: torch.optim.Muon(
            p, lr=1e-2, momentum=0.95, weight_decay=0.1, adjust_lr_fn="match_rms_adamw"
        ),
    ):
        p = torch.nn.Parameter(weight.clone())
        opt = make([p])
        for scale in (1.0, 0.5):
            p.grad = grad * scale
            opt.step()
        found.append(p.detach())
    assert torch.allclose(*found, atol=1e-5)


@pytest.mark.parametrize(
    ("model", "millions"),
    [("D20", 18.0), ("TEST_8BIT", 28.4), ("D20_FULL", 282.5), ("MEDIUM_3B", 1629.8)],
)
def test_the_shapes_have_the_sizes_of_the_report_but_one(model, millions):
    assert getattr(muon_lion, model).parameter_count / 1e6 == pytest.approx(millions, abs=0.05)


def test_a_short_step_peaks_where_the_optimizer_begins():
    kept = sum(muon_lion.states(TINY).values())
    size, moment = muon_lion.peak(TINY, kept, Run.cpu(tokens=2, implementation="memlab"))
    assert size >= 2 * 4 * TINY.parameter_count + kept and moment in ("backward", "optimizer")
