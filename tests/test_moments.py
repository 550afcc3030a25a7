"""The hills of a step: the same derived, traced and measured, and the peak is the highest."""

import pytest
import torch

from memlab import Model, Run
from memlab.lab.subject import subject
from memlab.lab.text import batches
from memlab.lab.tracked_steps import watch
from memlab.measure import Tracker, trace
from memlab.plot import timeline
from memlab.step import simulate
from memlab.step.core.moments import HILLS, Moments, hills

TINY = Model.preset("tiny-llama")
HOW = {"batch": 4, "tokens": 32}
FOUR = HILLS[:4]  # of a step beside which nothing is evaluated


def small(implementation="memlab", again=False):
    torch.manual_seed(0)
    return subject(
        TINY,
        "fp32",
        Run(implementation=implementation, checkpoint="block" if again else "none"),
    )


def totals(found):
    return {name: hill.total(hill.columns[0]) for name, hill in found.items()}


def gaps(derived, seen):
    """Every row of every hill that differs."""
    assert list(derived) == list(seen) == list(FOUR)
    rows = [row for name, hill in derived.items() for row in hill.beside(seen[name]).rows]
    return [row for row in rows if row.difference != 0]


@pytest.mark.parametrize(
    ("phase", "run"),
    [
        ("loss", {"tokens": 8192}),
        ("optimizer", {"tokens": 8192, "checkpoint": "block"}),
        ("backward", {"tokens": 8192, "loss": "linear_cross_entropy"}),
    ],
)
def test_a_peak_has_the_name_of_its_phase(phase, run):
    step = simulate(Model.preset("llama-3-8b"), "bf16", Run(batch=1, **run))
    found = totals(hills(step))
    assert step.peak.moment == max(found, key=found.get) == phase


def test_a_traced_peak_has_the_name_of_its_phase():
    ids = torch.zeros(1, 8, dtype=torch.long)
    wide = Model.preset("tiny-llama").replace(layers=1, vocab=4096, positions=2048)
    own = Run(implementation="memlab")
    traced = trace(lambda: subject(wide, "fp32", own), (ids.repeat(64, 16),) * 2)
    found = totals(hills(traced))
    assert traced.moment == max(found, key=found.get) == "loss"


@pytest.mark.parametrize("optimizer", ["forloop", "foreach", "fused"])
@pytest.mark.parametrize("implementation", ["memlab", "transformers"])
def test_real_steps_have_the_derived_hills(implementation, optimizer):
    run = watch(
        small(implementation),
        batches(4, 32, steps=3),
        foreach=optimizer == "foreach",
        fused=optimizer == "fused",
    )
    step = simulate(
        TINY, "fp32", Run.cpu(**HOW, implementation=implementation, optimizer_impl=optimizer)
    )
    assert gaps(hills(step), run.hills()) == []
    assert run.peaks == [step.peak.first_step_bytes, step.peak.bytes, step.peak.bytes]
    assert max(totals(hills(step)).values()) == step.peak.bytes
    # In the first step the states come with its last line: every hill before it lacks them.
    first, later = totals(run.hills(0)), totals(run.hills())
    states = step.rows["optimizer"]
    assert [later[name] - first[name] for name in FOUR] == [states, states, states, 0]


@pytest.mark.parametrize(("backend", "optimizer"), [("cpu", "forloop"), ("cuda", "foreach")])
def test_traced_steps_have_the_derived_hills(backend, optimizer):
    def build():
        return small().to(torch.bfloat16)

    ids = torch.zeros(4, 32, dtype=torch.long)
    seen = trace(build, (ids, ids), Run(backend=backend))
    how = HOW | {"implementation": "memlab", "backend": backend, "optimizer_impl": optimizer}
    step = simulate(TINY, "bf16", Run.cpu(**how))
    assert gaps(hills(step), hills(seen)) == []
    assert max(totals(hills(seen)).values()) == seen.peak == step.peak.bytes


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("parts", [2, 4])
def test_micro_batches_put_gradients_under_the_loss(parts, again):
    program, checkpoint = ("transformers", "block") if again else ("memlab", "none")
    run = watch(
        small(program, again), batches(4 // parts, 32, steps=2 * parts), micro_batches=parts
    )
    how = {"batch": 4 // parts, "tokens": 32, "implementation": program, "checkpoint": checkpoint}
    step = simulate(TINY, "fp32", Run.cpu(**how, micro_batches=parts))
    assert gaps(hills(step), run.hills()) == []
    assert run.peaks == [step.peak.first_step_bytes, step.peak.bytes]
    alone = totals(hills(simulate(TINY, "fp32", Run.cpu(**how))))
    assert totals(run.hills())["loss"] - alone["loss"] == step.rows["gradients"]


def test_zeros_for_gradients_cost_what_gradients_cost():
    kept = watch(small(), batches(4, 32, steps=2), set_to_none=False)
    dropped = watch(small(), batches(4, 32, steps=2))
    gradients = dropped.hills()["optimizer"]["gradients"].measured
    for name, more in {"forward": gradients, "loss": gradients, "optimizer": 0}.items():
        assert totals(kept.hills())[name] - totals(dropped.hills())[name] == more
    assert kept.peaks[0] == dropped.peaks[0]
    assert kept.losses == dropped.losses


def test_moments_are_what_a_timeline_draws():
    step = simulate(TINY, "fp32", Run.cpu(**HOW, implementation="memlab"), every_layer=True)
    moments = Moments(step)
    assert all(sum(moments.contents(m.index).values()) == m.total for m in moments.timeline)
    assert max(m.total for m in moments.timeline) == step.peak.bytes
    tops = {name: max(m.total for m in moments.timeline if m.phase == name) for name in FOUR}
    assert tops == totals(hills(step))
    assert "peak" in timeline(moments)._repr_svg_()
    # Layers that are not simulated one by one change no hill.
    deep = [
        simulate(
            TINY.replace(layers=9),
            "fp32",
            Run.cpu(**HOW, implementation="memlab"),
            every_layer=each,
        )
        for each in (False, True)
    ]
    assert deep[0].log.repeats and not deep[1].log.repeats
    assert str(hills(deep[0])) == str(hills(deep[1]))


def test_what_cannot_be_drawn_says_so():
    step = simulate(TINY.replace(layers=9), "fp32", Run.cpu(**HOW, implementation="memlab"))
    with pytest.raises(ValueError, match="every_layer=True"):
        Moments(step)
    with Tracker() as tracker:
        pass
    with pytest.raises(ValueError, match="no event from 0 on"):
        hills(tracker)
    with pytest.raises(ValueError, match="4 passages make no whole steps of 3"):
        watch(small(), batches(4, 32, steps=4), micro_batches=3)
