"""What a mapping says of a reading: a model, a recipe and a run, or why there is none."""

from dataclasses import dataclass
from functools import lru_cache

from memlab import Model, Recipe, Run
from memlab.cli.simulated import simulated
from memlab.estimate import estimate
from memlab.step.replayed import replayed


class Refused(ValueError):
    """memlab cannot say what this run holds; the message is the reason, one for many rows."""


@dataclass(frozen=True)
class Described:
    """A run in memlab's words, and which of its figures the counter read.

    figure      peak: of the tensors in a step or a call; allocated, reserved: of the allocator's
                blocks and segments; resident: what stays, without a step; step: the same of a step
                whose activations are in `more`; cache: what a call leaves in it; a term's name:
                that row; nothing: `more` has all
    stage       of a pipeline, whose last rank is the one that logs
    more        (name, bytes) of what the run holds and memlab.Run has no word for
    traced      bytes that a trace of the real code has at its peak, in the place of a figure of
                the model's own
    """

    model: Model
    recipe: Recipe
    run: Run
    figure: str = "peak"
    stage: int | None = None
    more: tuple = ()
    traced: int | None = None

    def bytes(self):
        """What memlab predicts for the counter.

        Raises      ValueError for a run that is not described
        """
        return self.own() + sum(size for _, size in self.more)

    def own(self):
        """The same without `more`."""
        if self.traced is not None:
            return self.traced
        return _own(self.model, self.recipe, self.run, self.figure, self.stage)


@lru_cache(maxsize=512)
def _own(model, recipe, run, figure, stage):
    if figure in ("allocated", "reserved"):
        return getattr(replayed(model, recipe, run), figure)
    if figure == "cache":
        return simulated(model, recipe, run).held_contents["after_call"]["kv_cache"]
    if figure == "nothing":
        return 0
    if figure == "step":
        run = Run(devices=run.devices)
    ledger = estimate(model, recipe, run, stage=stage)
    if figure in ("peak", "resident", "step"):
        return ledger.total()
    return ledger[figure].derived


def capability(device):
    """The major number of a card's compute capability, by the name that a source gives it.

    Raises      Refused for a card of another maker
    """
    known = {
        "A100": 8, "A10G": 8, "L40S": 8, "4090": 8, "3090": 8, "A6000": 8,
        "H100": 9, "H200": 9, "H20": 9, "B200": 10,
    }  # fmt: skip
    for name, number in known.items():
        if name in device:
            return number
    raise Refused("the card is not named, or not NVIDIA's")
