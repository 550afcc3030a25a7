"""The highest moments of a step from sums of products of letters, as tools/peaks.py wrote them.

B batch · T tokens · D model width · F feed-forward width · V vocabulary · K key/value heads ·
G query heads of each of them, N / K · h an eighth of the head width · P rows of positions ·
M layers beyond the four that were counted one by one, L - 4 · U tokens and one more ·
W tokens rounded up to a multiple of 32 · C rows of a chunk of the loss

A step of one kind allocates and frees the same tensors in the same order whatever its sizes, so
each moment of it is one sum. Weights and optimizer states are in none of them: they never change.
"""

from __future__ import annotations

from ..formats import bytes_per_value
from ..model.fields import dropouts
from ..run import CHUNKS, Run
from ..step import keys

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from ..model import Model
    from ..recipe import Recipe

    Products = dict[str, int]

SHOWN = 4  # layers that memlab.step.engine simulates one by one
# Of smaller models the page gives no peak: each letter's least value.
LEAST = {"D": 64, "F": 64, "V": 64, "T": 2, "U": 3, "W": 32}
for _letter in "BKGhPC":
    LEAST[_letter] = 1
LEAST["M"] = 0
TERMS = ("gradients", "activations", "logits", "other")


def letters(model: Model, run: Run) -> dict[str, int]:
    """The value of each letter."""
    tokens = run.tokens or 0
    rows = model.positions + model.position_offset if model.learned_positions else model.positions
    return {
        "B": run.batch,
        "T": tokens,
        "D": model.d_model,
        "F": model.d_ff,
        "V": model.vocab,
        "K": model.kv_heads,
        "G": model.heads // model.kv_heads,
        "h": model.head_dim // 8,
        "P": rows,
        "M": model.layers - SHOWN,
        "U": tokens + 1,
        "W": -(-tokens // 32) * 32,
        "C": -(-run.rows // CHUNKS),
    }


def value(products: Products, sizes: dict[str, int]) -> int:
    """The sum of bytes times letters: value({"BTD": 4}, sizes) is 4 · B · T · D."""
    total = 0
    for word, count in products.items():
        for letter in word:
            count *= sizes[letter]
        total += count
    return total


def kind_of(model: Model, recipe: Recipe, run: Run) -> str:
    """The name of the kind of step: all that changes the order in which it allocates and frees.

    Example     "bf16.sdpa.none.plain.many.shared.untied.once.kept"
    """
    shared = "single" if model.kv_heads == 1 else "shared"
    return ".".join(
        (
            precision_of(recipe),
            keys.attention(model.config, run.attention),
            run.checkpoint,
            run.loss,
            "one" if run.batch == 1 else "many",
            "all" if model.kv_heads == model.heads else shared,
            "tied" if model.tied else "untied",
            "once" if run.micro_batches == 1 else "again",
            dropped(model, run),
        )
    )


def precision_of(recipe: Recipe) -> str:
    """The precision whose moments a recipe has; its resident bytes are its own.

    Formula     that of memlab.step.loop.nearest
    """
    if recipe.autocast:
        return "autocast"
    return "bf16" if bytes_per_value(recipe.weights) <= 2 else "fp32"


def dropped(model: Model, run: Run) -> str:
    """Where the step drops values: "attention+residual", or "kept" where it keeps all of them.

    With what probability does not matter: a mask is as large for any.
    """
    found = dropouts(model.family, model.config, run.dropout)
    return "+".join([part for part in sorted(found) if found[part]]) or "kept"
