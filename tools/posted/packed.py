"""Weights as inference libraries store them, and what PyTorch's allocator gives for each tensor.

Only the linear layers of the blocks are packed; embeddings, norms and the head stay in 16 bits.
What a packed layer has is memlab.terms.packed's; here each of its tensors gets a block.
"""

from functools import lru_cache

from memlab.engines.quantized import Quantized, matrices
from memlab.terms.allocator import CachingAllocator
from memlab.terms.packed import parts


def weights(model, kind=None, value=2):
    """Bytes of every weight, tensor by tensor, layer by layer.

    kind        the format of the packed layers; None: everything in `value` bytes
    """
    how = kind and Quantized(format=kind)
    once, inside = [], []
    for tensor in model.tensors():
        sizes = [value * tensor.numel]
        if how and how.packs(tensor):
            many, rows, columns = matrices(model, tensor)
            sizes = [*parts(rows, inputs=columns, format=kind)] * many
        if tensor.name.startswith("layers."):
            inside.append(sizes)
        else:
            once += sizes
    return once + [size for _ in range(model.layers) for sizes in inside for size in sizes]


@lru_cache(maxsize=64)
def held(model, kind=None):
    """What all weights of a model take on a device."""
    return allocated(weights(model, kind))


def allocated(sizes):
    """What PyTorch's caching allocator counts as allocated for tensors of these sizes.

    A block of a segment is cut only where more than 1 MiB is left over, so a weight of 135 MiB has
    one of 136.
    """
    allocator = CachingAllocator()
    for number, size in enumerate(sizes):
        allocator.malloc(number, size)
    return allocator.allocated
