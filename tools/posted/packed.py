"""Weights as inference libraries store them: bytes of each tensor, and what the allocator gives.

Only the linear layers of the blocks are packed; embeddings, norms and the head stay in 16 bits. A
packed layer [R, C] (R outputs, C inputs, groups of 128 inputs) is
    GPTQ    codes of b bits in int32, a scale in fp16 and a zero point of b bits for each group and
            output, and the group of each input in int32 (g_idx)
    AWQ     the same codes, scales and zero points of 4 bits, without g_idx
    FP8     a code of 8 bits, and a scale for each block of 128 x 128
Source      auto_gptq 0.5 and GPTQModel 2.2, QuantLinear.__init__: qweight, qzeros, scales, g_idx;
            AutoAWQ 0.2.9, WQLinear_GEMM.__init__; transformers 4.51, integrations/finegrained_fp8:
            FP8Linear.__init__
"""

from functools import lru_cache

from memlab.terms.allocator import CachingAllocator

GROUP = 128  # quantize_config.json of the repositories that were run
BLOCK = 128  # weight_block_size of the FP8 checkpoints


def layer(kind, rows, columns):
    """The tensors of one packed layer, in bytes.

    Raises      ValueError for another kind
    """
    groups = -(-columns // GROUP)
    if kind in ("gptq4", "gptq8", "awq4"):
        bits = int(kind[-1])
        codes = [rows * columns * bits // 8, groups * rows * bits // 8, 2 * groups * rows]
        return codes + ([4 * columns] if kind.startswith("gptq") else [])
    if kind == "fp8":
        return [rows * columns, 4 * -(-rows // BLOCK) * -(-columns // BLOCK)]
    raise ValueError(f"kind={kind!r}; known: gptq4, gptq8, awq4, fp8")


def weights(model, kind=None, value=2):
    """Bytes of every weight, tensor by tensor, layer by layer.

    kind        of the packed layers; None: everything in `value` bytes
    """
    once, inside = [], []
    for tensor in model.tensors():
        packs = kind and tensor.linear and tensor.component in ("attention", "feed_forward")
        experts = kind and len(tensor.shape) == 3
        if experts:
            many, rows, columns = tensor.shape
            halves = 2 if tensor.name.endswith("experts_up") else 1
            sizes = layer(kind, rows // halves, columns) * many * halves
        elif packs:
            sizes = layer(kind, *tensor.shape)
        else:
            sizes = [value * tensor.numel]
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
