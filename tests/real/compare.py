"""The one comparison of a derived step with the real one: every figure, and every allocation.

A question of several ranks is (model, recipe, run), and what a rank of them held is a dict of its
peaks, its moments and the contents of the peak.
"""

from typing import Any

from real_steps import Question, RealStep, allocations, real_step, simulated

from memlab import Model, Recipe, Run, Sharding
from memlab.run.run import DEVICES
from memlab.step import Step
from memlab.step.core.moments import _events

PARTS = ("weights", "gathered weights", "optimizer")


def is_real(step: Question) -> tuple[RealStep, Step]:
    """The real step and the derived one, between which no figure differs, nor where the peak is.

    A tracker knows no logits, so the phases are those of the program's lines, and a peak in
    `backward()` while logits are alive is in "backward" on both sides.
    """
    real, found = real_step(step), simulated(step)
    differences: dict[str, Any] = apart(real, found)
    _, passing, *_ = max(_events(found), key=lambda event: event[-1])
    if real.peak.phase != passing:
        differences["phase"] = real.peak.phase, passing
    assert not differences, differences
    return real, found


def allocates_as_real(step: Question) -> None:
    """Allocation by allocation of the second step: its bytes, and what is held after it."""
    derived, real = allocations(step)
    wrong = next((pair for pair in zip(derived, real, strict=False) if len(set(pair)) > 1), None)
    assert wrong is None and len(derived) == len(real), (wrong, len(derived), len(real))


def apart(real: RealStep, found: Step) -> dict[str, Any]:
    """Differences, real minus simulated, of every figure that both have."""
    figures = {moment: (real.held[moment], found.held[moment]) for moment in found.held}
    figures |= {name: (real.resident[name], found.rows[name]) for name in real.resident}
    figures["activations"] = (real.activations, found.rows["activations"])
    figures["logits"] = (real.logits, found.rows["logits"])
    figures["peak"] = (real.peak.bytes, found.peak.bytes)
    figures["first peak"] = (real.first_peak.bytes, found.peak.first_step_bytes)
    for name, size in merged(real.peak.contents).items():
        figures[f"{name} at the peak"] = (size, merged(found.peak.contents).get(name, 0))
    for moment, contents in found.held_contents.items():
        for name, size in merged(real.held_contents[moment]).items():
            figures[f"{name} {moment}"] = (size, merged(contents).get(name, 0))
    return {name: there - here for name, (there, here) in figures.items() if there != here}


def merged(contents: dict[str, int]) -> dict[str, int]:
    """What is no weight, gradient or state, as one figure: the tracker knows no logits."""
    rest = ("activations", "logits", "other")
    kept = {name: size for name, size in contents.items() if size and name not in rest}
    return kept | {"rest": sum(contents.get(name, 0) for name in rest)}


def question(
    config: dict[str, Any], recipe: Recipe | str, usual: dict[str, Any], said: dict[str, Any]
) -> tuple[Model, Recipe | str, Run]:
    """A small model on several ranks; what is said of devices goes to them, the rest to the run."""
    devices = usual | {name: said[name] for name in DEVICES if name in said}
    run = {name: value for name, value in said.items() if name not in DEVICES}
    run = {"batch": 2, "tokens": 16} | run
    return Model.from_config(config), recipe, Run.cpu(**run, devices=Sharding.of(**devices))


def holds(derived: Step, measured: dict[str, Any], parts: tuple[str, ...] = PARTS) -> Step:
    """The derived step, which is what a rank held at its peaks and at each moment."""
    wanted = {"peak": derived.peak.bytes, "first_peak": derived.peak.first_step_bytes}
    wanted |= derived.held
    found = {name: measured[name] for name in wanted}
    wanted |= {term: derived.peak.contents.get(term, 0) for term in parts}
    found |= {term: measured["contents"].get(term, 0) for term in parts}
    assert found == wanted, {name: (found[name], wanted[name]) for name in wanted}
    return derived
