"""The highest moments of a step from sums of products of letters, as tools/peaks.py wrote them.

B batch · T tokens · D model width · F feed-forward width · V vocabulary · K key/value heads ·
G query heads of each of them, N / K · h an eighth of the head width · P rows of positions ·
M layers beyond the four that were counted one by one, L - 4 · U tokens and one more ·
W tokens rounded up to a multiple of 32 · C rows of a chunk of the loss

A step of one kind allocates and frees the same tensors in the same order whatever its sizes, so
each moment of it is one sum. Weights and optimizer states are in none of them: they never change.
"""

CHUNKS = 8  # what memlab.step.simulate cuts a chunked loss into by itself
SHOWN = 4  # layers that memlab.step.engine simulates one by one
# Of smaller models the page gives no peak: each letter's least value.
LEAST = {"D": 64, "F": 64, "V": 64, "T": 2, "U": 3, "W": 32}
for _letter in "BKGhPC":
    LEAST[_letter] = 1
LEAST["M"] = 0
TERMS = ("gradients", "activations", "logits", "other")


def letters(model, batch, tokens):
    """The value of each letter.

    Shapes      model: anything with the fields of memlab.Model
    """
    rows = model.positions + model.position_offset if model.learned_positions else model.positions
    return {
        "B": batch,
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
        "C": -(-batch * tokens // CHUNKS),
    }


def value(products, sizes):
    """The sum of bytes times letters: value({"BTD": 4}, sizes) is 4 · B · T · D."""
    total = 0
    for word, count in products.items():
        for letter in word:
            count *= sizes[letter]
        total += count
    return total


def kinds(model, precision, attention, checkpoint, loss, batch, passes):
    """The name of the kind of step, as tools/peaks.py names it.

    Example     "bf16.sdpa.none.plain.many.shared.untied.once"
    """
    heads = (
        "all" if model.kv_heads == model.heads else "single" if model.kv_heads == 1 else "shared"
    )
    return ".".join(
        (
            precision,
            attention,
            checkpoint,
            loss,
            "one" if batch == 1 else "many",
            heads,
            "tied" if model.tied else "untied",
            "once" if passes == 1 else "again",
        )
    )
