"""Sentences about serving: as in memlab.page.words, loaded when it is asked about."""

HEADING_OF_CARDS = (
    "{model} · {engine}, {dtype}: {users} × {each} tokens of conversation, one of {cards} cards"
)
HEADING_SERVED = "{model} · {engine}, {dtype}: {users} × {each} tokens of conversation"
SERVES = (
    "✓ {card} serves them with {engine}: {users} conversations of {each} tokens need {total} of "
    "{limit}, and there is room for {count} at once."
)
SERVES_ONE = (
    "✓ {card} serves it with {engine}: a conversation of {each} tokens needs {total} of {limit}, "
    "and there is room for {count} at once."
)
SERVES_SOME = (
    "✗ {card} does not hold them all at once: with {engine}, {users} conversations of {each} "
    "tokens need {total}, and {limit} are there. There is room for {count}; the others wait."
)
STARTS_NOT = (
    "✗ {engine} does not start on {card} with weights in {dtype}: {size} are left for "
    "conversations, and one of {each} tokens needs more."
)
ROOM = (
    "Beside the weights {size} of a card are left for conversations: room for {tokens} tokens, "
    "which is {count} conversations of {each} tokens at once."
)
ROOM_FOR_ONE = (
    "Beside the weights {size} of a card are left for conversations: room for {tokens} tokens, "
    "which is one conversation of {each} tokens."
)
ROOM_FOR_NONE = (
    "Beside the weights {size} of a card are left for conversations: room for {tokens} tokens, and "
    "one conversation of {each} tokens needs more."
)
PUBLISHED = (
    "The weights of {model} are published in {format}, which is smaller, and engines serve them as "
    "they are; here every weight is counted in {dtype}."
)
SHARE = "The line: {limit}, the part of {card} that {engine} takes when it starts."
WEIGHTS_KEPT = "every parameter in the format that was chosen"
WEIGHTS_PACKED = (
    "codes, scales and zero points of the layers' matrices in {format}; embedding, head and norms "
    "in 16 bits"
)
CACHE_KEPT = "2 · L · B · T · K · H · b: the keys and values of every token of every conversation"
BLOCKS_KEPT = "the blocks of {tokens} tokens that the conversations need at their full length"
FIRST_STEP = "the first step that the engine tries out, at its highest moment"
OUTSIDE = "what lies outside PyTorch's allocator, beside the context"
EACH_MAKES_ROOM = "Each of these alone makes room:"
NO_ROOM = "No single change that this page knows makes room for all of them at once."
MAKES_ROOM = "{change}; then there is room for {count}"
IN_FP8 = "the KV cache in FP8, which rounds keys and values"
WEIGHTS_IN_FP8 = "weights in FP8, made from those of 16 bits when they are loaded"
MORE_SHARE = "{share}% of the card for the engine, where no other program uses it"
MORE_CARDS = "{cards} cards, each with its part of every matrix"
ONLY_IN_A_CALL = (
    "what a call of the model needs for a moment: activations, logits, and the copy of one layer's "
    "cache while it grows; memlab estimate --phase decode counts it"
)
BEFORE_THE_POOL = (
    "CUDA graphs, adapters, images and draft models, which take their part before the cache does"
)
POSTED_OUTSIDE = (
    "what your own card has outside PyTorch's allocator: {size} are counted for it, the largest "
    "that others posted, because there is no formula"
)
SEQUENCES = (
    "how long some wait: vLLM runs at most {count} sequences in one step, unless --max-num-seqs "
    "says more"
)
PACKED_OF_TYPE = "how {format} packs a {family} is not described; in bf16 the page answers"
ENGINE_OF_TYPE = (
    "what {engine} makes of a {family} is not described; without an engine the page answers"
)
NO_CACHE_HERE = "the KV cache of this model is not described"
