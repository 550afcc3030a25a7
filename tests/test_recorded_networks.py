"""Recorded networks, played on the engine, beside the hand-written ones and beside real steps.

Nothing is played at the sizes that it was recorded with.
"""

import json
import random
from pathlib import Path

import pytest
from compare import is_real
from depth import few
from mixtures import random_mixtures
from more_families import drawn
from real_steps import random_configs

from memlab import Model, Run, Sharding, families
from memlab.adapters import Lora
from memlab.step import simulate
from memlab.step.loops import programs
from memlab.step.networks import network, recorded

HERE = Path(recorded.__file__).parents[2] / "data" / "networks"
CLASSES = {
    path.stem: recorded.of_recording(json.loads(path.read_text(encoding="utf-8")))
    for path in HERE.glob("*.json")
    if path.stem in families.NAMES
}
PRESETS = ("llama-3-8b", "llama-2-7b", "llama-3.2-1b", "qwen3-30b-a3b", "gemma-3-1b")
EIGHT = Sharding(data=8, zero=3)
QV = Lora(8, ("q", "v"))
FEATURES = {
    "plain": {},
    "checkpoint": {"checkpoint": "block"},
    "adapters": {"lora": QV},
    "adapters and checkpoint": {"lora": QV, "checkpoint": "block"},
    "embedding frozen": {"frozen": ("embedding",)},
    "feed-forward frozen": {"frozen": ("embedding", "feed_forward")},
    "norms frozen": {"frozen": ("norm",)},
    "micro-batches": {"micro_batches": 2},
    "micro-batches and checkpoint": {"micro_batches": 3, "checkpoint": "block"},
    "FSDP2": {"devices": EIGHT},
    "FSDP2 and checkpoint": {"devices": EIGHT, "checkpoint": "block"},
}


def played(monkeypatch, *arguments, **how):
    """A step whose network is played from its recording."""
    monkeypatch.setattr(programs, "network", lambda _, family: CLASSES[family])
    found = simulate(*arguments, **how)
    monkeypatch.setattr(programs, "network", network)
    return found


def events(step):
    """Allocations and frees of both steps; frees that follow each other have no order."""
    found, freed = [], []
    for _, change, _ in step.log.events[min(step.log.marks.values()) :]:
        if change < 0:
            freed.append(change)
        elif change:
            found += [*sorted(freed), change]
            freed = []
    return found + sorted(freed)


def asked():
    """Each preset with each feature; precision, attention, batch and tokens take turns."""
    rng = random.Random(37)
    for preset in PRESETS:
        for feature in FEATURES:
            how = {
                "attention": rng.choice(("sdpa", "eager")),
                "batch": rng.choice((1, 2, 3)),
                "tokens": rng.choice((77, 500, 513, 1024)),
            }
            yield preset, rng.choice(("bf16", "fp32", "autocast")), feature, how


@pytest.mark.parametrize(
    ("preset", "recipe", "feature", "how"), list(asked()), ids=lambda value: str(value)
)
def test_every_event_is_that_of_the_hand_written_network(monkeypatch, preset, recipe, feature, how):
    model, run = Model.preset(preset), Run(**how, **FEATURES[feature])
    written = simulate(model, recipe, run)
    found = played(monkeypatch, model, recipe, run)
    assert events(found) == events(written)
    assert (found.peak.bytes, found.held, found.rows) == (
        written.peak.bytes,
        written.held,
        written.rows,
    )


REAL = [
    *random_configs(9, 371, families=("llama",), checkpoints=("none", "block"), dropouts=(0.0,)),
    *random_mixtures(6, 372, families=("qwen3_moe",), dropouts=(0.0,)),
    *drawn(6, 373, ("gemma3_text",), dropouts=(0.0,)),
]


def recorded_kind(step):
    """Whether a recording has what this step needs."""
    try:
        with pytest.MonkeyPatch.context() as patch:
            played(patch, step.model, step.recipe, step.run)
    except ValueError as error:
        assert "not recorded" in str(error)
        return False
    return True


@pytest.mark.parametrize("step", few(9, [s for s in REAL if recorded_kind(s)]), ids=str)
def test_a_real_step_on_this_machine_is_the_played_one(monkeypatch, step):
    monkeypatch.setattr(programs, "network", lambda _, family: CLASSES[family])
    is_real(step)
