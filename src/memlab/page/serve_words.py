"""Sentences about inference: as in memlab.page.words, loaded when it is asked about."""

HEADING_SERVED = "{model} · {engine}, {dtype}: {users} conversations × {each} tokens"
HEADING_OF_ONE = "{model} · {engine}, {dtype}: one conversation × {each} tokens"
SERVES = (
    "✓ {card} with {engine} supports {users} concurrent conversations of {each} tokens: they need "
    "{total} of {limit}, and there is room for {count}."
)
SERVES_ONE = (
    "✓ {card} with {engine} supports a conversation of {each} tokens: it needs {total} of {limit}, "
    "and there is room for {count}."
)
SERVES_SOME = (
    "✗ {card} with {engine} supports {count} of {users} concurrent conversations of {each} tokens: "
    "all of them need {total}, and {limit} are there. The others wait."
)
STARTS_NOT = (
    "✗ {engine} does not start on {card} with weights in {dtype}: {size} are left for the KV "
    "cache, and one conversation of {each} tokens needs more."
)
ROOM = (
    "After the weights, {size} are left for the KV cache: {tokens} tokens, which is "
    "{count} concurrent conversations of {each} tokens."
)
ROOM_FOR_ONE = (
    "After the weights, {size} are left for the KV cache: {tokens} tokens, which is "
    "one conversation of {each} tokens."
)
ROOM_FOR_NONE = (
    "After the weights, {size} are left for the KV cache: {tokens} tokens, and one "
    "conversation of {each} tokens needs more."
)
PUBLISHED = (
    "The weights of {model} are published in {format}, which is smaller, and engines load them as "
    "they are; here every weight is in {dtype}."
)
SHARE = "The dashed line is at {limit}: the part of {card} that {engine} may use."
WEIGHTS_KEPT = "every parameter in the chosen format"
WEIGHTS_PACKED = (
    "codes, scales and zero points of the layers' matrices in {format}; embedding, output head "
    "and norms in 16 bits"
)
CACHE_KEPT = "2 · L · B · T · K · H · b: the keys and values of every token of every conversation"
BLOCKS_KEPT = "the blocks of {tokens} tokens that the conversations need at their full length"
FIRST_STEP = "the peak of the profiling step that the engine runs when it starts"
OUTSIDE = "memory outside PyTorch's allocator, in addition to the CUDA context"
EACH_MAKES_ROOM = "Each of these changes alone is enough:"
NO_ROOM = "No single change that this page knows is enough for all of them at once."
MAKES_ROOM = "{change}; then there is room for {count}"
IN_FP8 = "KV cache in FP8, which rounds keys and values"
WEIGHTS_IN_FP8 = "weights in FP8, converted from 16 bits at load time"
MORE_SHARE = "{share}% of the GPU for the engine, where no other program uses it"
MORE_CARDS = "tensor parallelism over {cards} GPUs"
ONLY_IN_A_CALL = (
    "temporaries of a forward pass: activations, logits, and the copy of one layer's cache while "
    "it grows; memlab estimate --phase decode computes them"
)
BEFORE_THE_POOL = (
    "CUDA graphs, adapters, images and draft models, which take memory before the KV cache does"
)
POSTED_OUTSIDE = (
    "what your own GPU has outside PyTorch's allocator: {size} are assumed, the largest published "
    "figure, because there is no formula"
)
SEQUENCES = (
    "how long some wait: vLLM runs at most {count} sequences in one step, unless --max-num-seqs "
    "is higher"
)
PACKED_OF_TYPE = "{format} is not supported for a {family}; bf16 is"
ENGINE_OF_TYPE = "{engine} is not supported for a {family}; transformers, without an engine, is"
NO_CACHE_HERE = "the KV cache of this model is not supported"
