"""The highest moments of a step from sums of products of letters, as tools/peaks.py wrote them.

B batch · T tokens · D model width · F feed-forward width · V vocabulary · K key/value heads ·
G query heads of each of them, N / K · h an eighth of the head width · P rows of positions ·
X experts · k of them for each token · m the width of one · s the width of those that are shared ·
U tokens and one more · W tokens rounded up to a multiple of 32 · Y to one of 8 ·
Q query heads of each key/value head and two more · C rows of a chunk of the loss ·
g groups of experts · b those that a token may choose from ·
c the latent's width · q that of the queries · p, r, u eighths of what of a head positions pass and
turn, and of the width of its values · w c and 8 · r · e p and u ·
1, 2, 5 layers of each kind below the one that is computed · 3, 4, 6 layers of each kind above it

A step of one kind allocates and frees the same tensors in the same order whatever its sizes, so
each moment of it is one sum. Weights and optimizer states are in none of them: they never change.
"""

from __future__ import annotations

from ..families import record_of
from ..formats import bytes_per_value
from ..model.dropouts import dropouts
from ..model.mixtures import groups
from ..run import Run
from ..run.fields import CHUNKS
from .layer_forms import attention_of, form_of, layers_of, pattern
from .torch_loss_tables import rows_of

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from ..model import Model
    from ..recipe import Recipe

    Products = dict[str, int]
    Counts = list[int]  # of layers below and above, each of all kinds

# Of smaller models the page gives no peak: each letter's least value.
LEAST = {"D": 64, "F": 64, "V": 64, "T": 2, "U": 3, "W": 32, "Y": 8, "Q": 3, "X": 2, "k": 2}
for _letter in "BKGhPCmsgbcqpruwe":
    LEAST[_letter] = 1
for _letter in "123456":
    LEAST[_letter] = 0
LEAST_LAYERS = 4
# Where a moment may be: outside of all layers, in the first, in one between of each kind, in the
# last; where there are two kinds, in one below all that are of the other kind than the first, in
# the first that is of the other; where there are three, in those of each kind below which one of
# the kinds is missing. A moment's number adds its places.
OUTSIDE, FIRST, INNER, LAST, EARLY, OTHER, THIRD = 1, 2, (4, 8, 128), 16, 32, 64, 256
KINDS, NEAREST = 3, 4  # of layers; as far as a middle is looked for
LAYERS = "125346"  # below, and above, of each kind
BATCH = 4  # of the parts of a kind's name
TERMS = ("gradients", "activations", "logits", "other")
# Of steps under FSDP2, which have files of their own.
SHARDED = ("gathered weights", "all-gather buffers", "whole gradients", "reduce-scatter buffers")
# Of loops that keep a model's output, with the keys and values in it.
CACHE = "KV cache"
EVERY = TERMS + SHARDED + (CACHE,)


def letters(model: Model, run: Run) -> dict[str, int]:
    """The value of each letter."""
    tokens = run.tokens or 0
    rows = model.positions + model.position_offset if model.learned_positions else model.positions
    made = {
        "B": run.batch,
        "T": tokens,
        "D": model.d_model,
        "F": model.d_ff,
        "V": model.vocab,
        "K": model.kv_heads,
        "G": model.heads // model.kv_heads,
        "h": model.head_dim // 8,
        "P": rows,
        "X": model.experts,
        "k": model.experts_per_token,
        "m": model.expert_ff,
        "s": model.shared_ff,
        "U": tokens + 1,
        "W": -(-tokens // 32) * 32,
        "Y": -(-tokens // 8) * 8,
        "Q": model.heads // model.kv_heads + 2,
        "C": rows_of(model, run) if run.library_loss else -(-run.rows // CHUNKS),
    }
    if record_of(model.family).groups:
        made["g"], made["b"] = groups(model.family, model.config)
    latent = model.latent
    if latent is not None:
        made |= {"c": latent.kv_rank, "q": latent.q_rank, "w": latent.kv_rank + latent.rope}
        made |= {"p": latent.nope // 8, "r": latent.rope // 8, "u": latent.value // 8}
        made["e"] = (latent.nope + latent.value) // 8
    return made


def places(kinds: list[int]) -> dict[int, list[Counts]]:
    """Of each place the layers below and above, wherever in the model it may be the highest.

    What is held is a number for each layer below, and for each above, so that of one place no
    position is higher than all corners of what its positions count.
    """
    total = tally(kinds)
    made: dict[int, list[Counts]] = {}
    seen = [0] * KINDS
    for layer in range(len(kinds)):
        kind = kinds[layer]
        above = [total[each] - seen[each] for each in range(KINDS)]
        above[kind] -= 1
        place = place_of(kinds, layer, seen, total)
        if place not in made:
            made[place] = []
        made[place].append(seen + above)
        seen[kind] += 1
    for place in made:
        made[place] = ends(made[place]) if total[2] else corners(made[place])
    made[OUTSIDE] = [total + [0] * KINDS]
    return made


def tally(kinds: list[int]) -> Counts:
    """How many layers there are of each kind."""
    made = [0] * KINDS
    for kind in kinds:
        made[kind] += 1
    return made


def corners(points: list[Counts]) -> list[Counts]:
    """The corners of all points, which go upwards in both of their first two numbers."""
    made: list[Counts] = []
    for sign in (1, -1):
        chain: list[Counts] = []
        for point in points:
            while len(chain) > 1 and sign * _turn(chain[-2], chain[-1], point) <= 0:
                chain.pop()
            chain.append(point)
        made += [point for point in chain if point not in made]
    return made


def ends(points: list[Counts]) -> list[Counts]:
    """All points but those in the middle between two others, of which one is at least as high."""
    made: list[Counts] = []
    for at in range(len(points)):
        for apart in range(1, min(NEAREST, at, len(points) - 1 - at) + 1):
            before, after = points[at - apart], points[at + apart]
            if [before[n] + after[n] for n in range(KINDS)] == [2 * n for n in points[at][:KINDS]]:
                break
        else:
            made.append(points[at])
    return made


def _turn(a: Counts, b: Counts, c: Counts) -> int:
    """Above zero where the way from a over b to c turns to the left."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def place_of(kinds: list[int], layer: int, below: Counts, total: Counts) -> int:
    """Where a layer stands, with so many layers of each kind below it, and in the model."""
    if layer == 0:
        return FIRST
    if layer == len(kinds) - 1:
        return LAST
    if total[2]:
        return INNER[kinds[layer]] if min(below) else (EARLY, OTHER, THIRD)[kinds[layer]]
    if not below[1 - kinds[0]] and 0 < total[1] < len(kinds):
        return EARLY if kinds[layer] == kinds[0] else OTHER
    return INNER[kinds[layer]]


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

    Example     "bf16.sdpa.none.plain.many.shared.untied.once.kept.alike.plain"
    """
    shared = "single" if model.kv_heads == 1 else "shared"
    return ".".join(
        (
            precision_of(recipe),
            attention_of(model, run),
            run.checkpointing,
            run.loss,
            "one" if run.batch == 1 else "many",
            "all" if model.kv_heads == model.heads else shared,
            "tied" if model.tied else "untied",
            "once" if run.micro_batches == 1 else "again",
            dropped(model, run),
            pattern(layers_of(model, run)),
            form_of(model),
        )
    )


def precision_of(recipe: Recipe) -> str:
    """The precision whose moments a recipe has; its resident bytes are its own.

    Formula     that of memlab.step.loops.loop.nearest
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
