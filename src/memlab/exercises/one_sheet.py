"""Exercises of the anatomy on one sheet."""

from ..model import Model
from ..run import Run
from ..step import simulate
from . import exercise

# The rows that the page's formulas give: not the ids, the rotary tables and the loss itself.
ROWS = ("weights", "optimizer", "activations", "logits")


def _loss(tokens: int = 4096, rows: tuple[str, ...] = ROWS) -> int:
    step = simulate(Model.preset("llama-3-8b"), "bf16", Run(batch=1, tokens=tokens))
    return sum(step.peak.contents[row] for row in rows)


exercise(
    "ex-one-sheet-1",
    answer=_loss,
    hint="Set T to 4096 in the cell with the formulas and run it again; then add the four rows.",
    wrong={
        lambda: _loss(8192): "That is the run with 8,192 tokens.",
        lambda: _loss(8192) // 2: "Weights and optimizer states do not depend on the tokens.",
        lambda: _loss(rows=ROWS[:3]): "The logits are in memory as well.",
        lambda: _loss() + 2 * Model.preset("llama-3-8b").parameter_count: "No gradient exists yet "
        "at the loss: zero_grad() freed those of the last step.",
    },
)
