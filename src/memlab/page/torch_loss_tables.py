"""Steps whose loss is torch's own in chunks: which are counted for the page, and their files.

C rows of a chunk, as torch chooses them; the other letters are those of memlab.page.peak
"""

from __future__ import annotations

from ..base.message import Message
from ..families import record_of
from ..step import keys
from ..terms.chunk_rows import chunk_rows
from . import words as say

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from ..model import Model
    from ..recipe import Recipe
    from ..run import Run

TORCHS = "linear_cross_entropy"
PRECISIONS = ("bf16", "fp32")  # of autocast, head and input have two formats


def file_of(name: str) -> str:
    """The name of a file of moments with this loss, of the same step with another."""
    return f"torch.{name}"


def rows_of(model: Model, run: Run) -> int:
    """The rows of a chunk."""
    return chunk_rows(run.rows, vocab=model.vocab, d_model=model.d_model, backend="cuda")


def refused(model: Model, recipe: Recipe, run: Run) -> str:
    """Why there are no moments of this loss; or nothing.

    Of fp16 chunks are not described, though its other moments are those of bf16.
    """
    if recipe.autocast:
        return say.NO_TORCH_LOSS
    if recipe.weights not in PRECISIONS:
        return say.NO_KIND
    if keys.scales_logits(model):
        return Message(say.CHUNKED, family=model.family)
    few = 2 * rows_of(model, run) > run.rows or model.vocab < model.d_model
    return say.NO_KIND if few or not record_of(model.family).names_body else ""
