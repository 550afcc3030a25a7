"""A watched run: lines, categories, growth, and three broken scripts that the gap is found in."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

import memlab
from memlab import Model, Run
from memlab.lab import broken
from memlab.lab.train import one_thread
from memlab.measure.live import STEP, LineTracker, Live

TINY = Model.preset("tiny-llama")
ATTEND = TINY.replace(name="attend", positions=256)
OWN = Run.cpu(batch=8, tokens=64, implementation="memlab")
THEIRS = Run.cpu(batch=4, tokens=128, checkpoint="block")
# Script: what was believed of it, what accounts for the gap, the mend.
FOUND = {
    "validate": (
        (TINY, "fp32", OWN),
        ("4 × losses kept with their graphs",),
        ("", [("history.append(validate(net))", "history.append(validate(net).item())")]),
    ),
    "resume": (
        (TINY, "bf16", OWN),
        ("everything in fp32", "the checkpoint's state dict kept"),
        ("--dtype bf16", [("net.load_state_dict(state)", "net.load_state_dict(state); del state")]),
    ),
    "attend": (
        (ATTEND, "fp32", THEIRS),
        ("no checkpointing", "eager attention"),
        ("--checkpoint", [('"eager"', '"sdpa"')]),
    ),
}


def watched(name, arguments="", mends=()):
    with one_thread(), memlab.explain(*FOUND[name][0]) as live:
        losses = broken.run(name, arguments, mends)
    return live, losses


@pytest.mark.parametrize("name", broken.SCRIPTS)
def test_the_fault_is_found_and_the_mend_closes_the_ledger(name):
    _, causes, mend = FOUND[name]
    live, losses = watched(name)
    first = live.explanation().sums[0]
    assert first.names == causes and first.left == 0
    assert live.ledger().difference() == first.bytes > 0
    after, same = watched(name, *mend)
    # No tolerance: on a CPU the tracker and the derivation count the same storages.
    assert {row.difference for row in after.ledger().rows} == {0}
    assert same == pytest.approx(losses, abs=0.02)  # the same training, in another format perhaps


def test_growth_names_the_line_that_leaks():
    live, _ = watched("validate")
    grown = live.tracker.growth()
    assert grown[0].code == "return net(ids, ids)" and grown[0].where.startswith("validate.py:")
    predicted = live.explanation().causes[0]
    assert 4 * sum(row.bytes for row in grown) == predicted.bytes
    assert watched("resume")[0].tracker.growth() == []


def test_lines_are_those_of_the_program():
    live, _ = watched("resume")
    where = {row.code: row for row in live.held()}
    assert where["return torch.load(path)"].bytes == 2 * TINY.parameter_count
    assert sum(row.bytes for row in live.held()) == live.peak
    assert all(row.where.startswith("resume.py:") for row in live.held())
    assert "torch.load" in str(live) and "torch.load" in live._repr_html_()


def test_without_a_model_it_only_watches():
    net, ids = torch.nn.Linear(8, 8, bias=False), torch.ones(4, 8)
    with memlab.explain() as live:
        optimizer = torch.optim.SGD(net.parameters(), momentum=0.9)
        for _ in range(3):
            net(ids).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    contents = live.tracker.contents()
    assert contents["weights"] == contents["optimizer"] == 256
    assert live.tracker.growth() == [] and len(live.tracker.steps) == 3
    assert live.ledger().columns == ("measured",) and live.ledger().total() == live.peak
    assert STEP in list(live.ledger())
    assert live.counters is None or live.counters.peak > 0
    with pytest.raises(ValueError, match="nothing was predicted"):
        live.explanation()
    here = [row.where for row in live.held() if row.where.startswith("test_live.py:")]
    assert here, "lines of this file"


def trained(net, steps=3):
    optimizer = torch.optim.SGD(net.parameters())
    for _ in range(steps):
        net(torch.ones(4, 64)).sum().backward()
        optimizer.step()


def test_what_was_made_before_the_block_and_only_held_is_said():
    net = torch.nn.Linear(64, 64)
    kept = {name: value.clone() for name, value in net.state_dict().items()}
    with memlab.explain() as clean:
        trained(net)
    # Other tests of this process may have left something alive; this is what ours adds.
    size = sum(value.nbytes for value in kept.values())
    assert clean.idle.bytes >= size and clean.idle.storages >= 2
    assert "made before the block and are still alive" in str(clean)
    assert "made before the block" in clean._repr_html_()
    before = clean.idle
    del kept
    with memlab.explain() as after:
        trained(net)
    assert (before.bytes - after.idle.bytes, before.storages - after.idle.storages) == (size, 2)
    assert after.peak == clean.peak  # what only lay there was in neither peak


def test_a_model_that_the_block_uses_is_in_its_peak_and_not_beside_it():
    net = torch.nn.Linear(64, 64)
    with memlab.explain() as one:
        trained(net)
    del net
    net = torch.nn.Linear(64, 64)
    unused = torch.nn.Linear(64, 64)
    with memlab.explain() as two:
        trained(net)
    assert two.idle.bytes - one.idle.bytes == sum(p.nbytes for p in unused.parameters())


def test_print_says_what_each_step_leaves_behind():
    live, _ = watched("validate")
    assert "left behind by each step" in str(live)
    assert "left behind by each step" in live._repr_html_()
    assert "left behind" not in str(watched("resume")[0])


def test_an_explanation_says_in_which_term_the_gap_is():
    live, _ = watched("resume")
    rows = {row.term: row.difference for row in live.ledger().rows if row.difference}
    (note,) = [note for note in live.explanation().notes if note.startswith("The tracker sees")]
    assert rows and all(f"{term} {size:+,} B" in note for term, size in rows.items())
    assert any("as predicted" in n for n in watched("attend")[0].explanation().notes)
    mended, _ = watched("resume", *FOUND["resume"][2])
    assert not any(note.startswith("The tracker sees") for note in mended.explanation().notes)


def test_another_thread_has_the_line_that_waits_for_it():
    """Autograd's threads on a GPU run no line of the program: the one that waits is it."""
    code = "def note(tracker, found, sys): found.append(tracker._line(sys._getframe()))"
    space = {}
    exec(compile(code, "<string>", "exec"), space)  # a frame that is in no file
    found = []
    with LineTracker() as tracker, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(space["note"], tracker, found, sys)
        waiting.result()
        note = threading.Thread(target=space["note"], args=(tracker, found, sys))
        note.start()
        note.join()
    assert all(line.where.startswith("test_live.py:") for line in found) and len(found) == 2


def test_hooks_are_gone_afterwards():
    from torch.nn.modules import module
    from torch.optim.optimizer import _global_optimizer_post_hooks as steps

    before = len(module._global_forward_pre_hooks)
    with pytest.raises(KeyError), Live():
        assert len(module._global_forward_pre_hooks) == before + 1
        raise KeyError
    assert len(module._global_forward_pre_hooks) == before
    assert not steps


def test_what_makes_no_sense_is_said_before_anything_runs():
    with pytest.raises(ValueError, match="run without a model"):
        memlab.explain(run=Run(batch=3))
    with pytest.raises(ValueError, match="kernel='math' is not described"):
        memlab.explain(TINY, "fp32", Run(batch=1, tokens=8, kernel="math"))
    with LineTracker() as tracker:
        pass
    with pytest.raises(ValueError, match="three tell a trend"):
        tracker.growth()


def test_scripts_and_their_mends(tmp_path):
    for name in broken.SCRIPTS:
        assert f"python -m memlab.lab.broken.{name}" in broken.source(name)
    with pytest.raises(ValueError, match="known: validate, resume, attend"):
        broken.source("other")
    with pytest.raises(ValueError, match="0 times in resume.py"):
        broken.mended("resume", ("no such line", ""))
