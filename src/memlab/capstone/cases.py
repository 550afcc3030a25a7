"""What each case asks for, from data/capstone/cases.toml, and the script that it begins with.

Source      of the script: memlab.rehearse.script, as `memlab fit --script` writes it
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from ..adapters import Lora
from ..base.frozen import dataclass
from ..model import Model
from ..recipe import Recipe
from ..run import Run
from ..run.lower_bound import least

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

FILE = Path(__file__).resolve().parent.parent / "data" / "capstone" / "cases.toml"
LAYERS = ("q", "k", "v", "out", "gate", "up", "down")  # matrices that adapters stand beside
STATED = ("PEAK", "PHASE", "LARGEST")  # what a learner says of the own script, before the run
HEAD = '''"""Case {number} of the capstone: {model} on {gpu}.

    memlab rehearse --on '{gpu}' -- python {name}
    memlab check --capstone {name}
"""
'''
STATEMENTS = """
PEAK = ""  # your prediction, before you rehearse it: "18.2 GiB"
PHASE = ""  # of the peak: forward, backward or optimizer
LARGEST = ""  # there: weights, gradients, optimizer, activations, logits or other
"""


@dataclass(frozen=True)
class Case:
    """One case.

    gpu         on which a script has to fit
    model       a preset, all of whose matrices have to be run
    sequences   of one update, each of `tokens`
    rank        0: all weights are trained; else adapters of this rank, at least, at all matrices
                of the layers
    weights     bits in which a weight is stored, at least
    states      bits of optimizer state for each trained weight, at least
    forwards    the deadline: what an update computes, at most, in forward passes of its batch. A
                plain step takes 3, or 2 where only adapters are trained; a recomputation 1 more
    moved       GiB that may cross between host and GPU in an update
    recipe, base    of the script that it begins with: its formats, and fields of a Run
    phase, largest  where that script has its peak, and the largest term there
    cannot      no script keeps the rules and fits
    """

    number: int
    title: str
    gpu: str
    model: str
    sequences: int
    tokens: int
    forwards: float
    base: dict[str, Any]
    phase: str
    largest: str
    rank: int = 0
    weights: int = 16
    states: int = 32
    moved: int = 0
    recipe: str = "bf16"
    cannot: bool = False

    @property
    def name(self) -> str:
        """The file that a learner hands in."""
        return f"capstone_{self.number:02}.py"

    @property
    def of_model(self) -> Model:
        return Model.preset(self.model)

    @property
    def plain(self) -> int:
        """Forward passes that a plain step takes: the gradients of frozen weights are not made."""
        return 2 if self.rank else 3

    @property
    def again(self) -> bool:
        """Whether the deadline has room for one forward pass more."""
        return self.forwards >= self.plain + 1

    @property
    def trained(self) -> int:
        """Weights that are trained, at least."""
        model = self.of_model
        if not self.rank:
            return model.parameter_count
        return Lora(self.rank, targets=LAYERS).parameter_count(model)

    @property
    def forward(self) -> int:
        """Floating-point operations of the forward passes of an update.

        Formula     2 · B · T · P of all matrices, with the head's, and 4 · B · L · N · H · T² of
                    attention, masked products included
        """
        model = self.of_model
        inside = sum(one.count for one in model.tensors() if one.linear and one.name != "lm_head")
        rows = self.sequences * self.tokens
        wide = model.heads * model.head_dim
        attention = 4 * model.layers * wide * self.tokens * rows
        return 2 * rows * (inside + model.vocab * model.d_model) + attention

    @property
    def matrices(self) -> dict[tuple[int, int], int]:
        """Shape of a matrix -> how many of them, of the layers and of the embedding."""
        found: dict[tuple[int, int], int] = {}
        for one in self.of_model.tensors():
            if one.name == "embedding" or (one.linear and one.name != "lm_head"):
                shape = one.shape[0], one.shape[1]
                found[shape] = found.get(shape, 0) + one.copies
        return found

    @property
    def run(self) -> Run:
        """That of the script that it begins with."""
        fields = dict(self.base)
        rank = fields.pop("rank", 0)
        lora = Lora(rank, targets=LAYERS) if rank else None
        return Run(lora=lora, clip=False, **fields)

    @property
    def least(self) -> dict[str, int]:
        """What stands on the GPU in any script that keeps the rules: no gradient need stand."""
        found = least(self.of_model, Recipe.named(self.recipe), self.run)
        return {term: size for term, size in found.items() if term != "gradients"}


@cache
def cases() -> dict[int, Case]:
    """All of them by number."""
    rows = tomllib.loads(FILE.read_text(encoding="utf-8"))["case"]
    return {number: Case(number=number, **row) for number, row in enumerate(rows, 1)}


def script(case: Case) -> str:
    """The script that a case begins with, which does not fit.

    Raises      ModuleNotFoundError without torch
    """
    from ..lab.subject import settings_of
    from ..rehearse.script import script as written

    model = case.of_model
    text = written(settings_of(model), model, Recipe.named(case.recipe), case.run).text
    head = HEAD.format(number=case.number, model=case.model, gpu=case.gpu, name=case.name)
    imports, config, rest = text.split('"""\n', 1)[1].partition("\nconfig =")
    return head + imports + STATEMENTS + config + rest
