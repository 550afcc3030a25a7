"""What a rank of torchtitan reserves beside its part of weights, gradients and states: FSDP2.

R rows (tokens of a micro-batch on a rank) · D width · F feed-forward width · A, E widths of all
queries and of all keys · N heads · V vocabulary · L layers. Bytes of a row, or it says otherwise

Moment      the loss: after `del pred` the backward pass of cross_entropy begins
Layer       full checkpointing keeps its input, 2 · D ("input"). Selective by operator ("products")
            keeps what the policy names besides: every second matrix product from the first one on
            (queries, values, the gate, the last one) and the result of attention with its
            log-sum-exp, 2 · (D + A + E + F + D + A) + 4 · N. The compiler leaves out the last
            product, which backward never reads: 2 · D less. A float8 product is aten.mm of two
            Float8Tensors, which the policy counts and keeps in bf16 as any other. Without any
            ("all") two norms keep 8 · D + 4 each, attention queries, keys and values of all heads
            and its result, 8 · A + 4 · N, and the gated layer four of 2 · F
Last norm   not compiled: its input in fp32, its result before and after the weight, 8 · D
Logits      14 · V. The log-softmax and two gradients in fp32 are 12. The bf16 logits and their fp32
            copy are free then, six bytes side by side: the first gradient takes four of them, the
            second does not fit into two, and so these two stay reserved and empty
Streams     a block belongs to the stream that it was made on. FSDP2 gathers on a stream of its own
            (the root's buffer and that of the first layer, both alive at once) and makes the parts
            of gradients on another one, so neither shares memory with the loss: all 16 bytes of a
            parameter's part count, though the gradients come later
Gathered    the root (embedding, last norm, head) in bf16 until the end of backward; the last layer,
            which is not let go (reshard_after_forward)
Left out    blocks that a layer's passing tensors leave behind, the scales of float8, and that its
            weights may be gathered in one byte
Source      torchtitan at 9dec370 and 99f73969: train.py, parallelisms/parallelize_llama.py
            (apply_ac, apply_compile, apply_fsdp), models/norms.py, run_llama_train.sh
            (expandable_segments:True); torchao at eab345c, float8/float8_linear.py; torch,
            _fsdp_collectives.py and c10/cuda/CUDACachingAllocator.cpp
"""


def beside(model, rows, *, kept, compiled=False):
    """(name, bytes) of what a rank holds and reserves in the loss.

    kept        of the layers in turn: ("input",), ("all", "input") where every second one is
                checkpointed
    """
    root = sum(t.count for t in model.tensors() if not t.name.startswith("layers."))
    layer = (model.parameter_count - root) // model.layers
    each = sum(row(model, what, compiled=compiled) for what in kept)
    return [
        ("activations", rows * model.layers // len(kept) * each),
        ("last norm", 8 * rows * model.d_model),
        ("logits", 14 * rows * model.vocab),
        ("gathered", 2 * (root + layer)),
        ("buffers of FSDP2's stream", 2 * (root + layer)),
    ]


def row(model, kept, *, compiled=False):
    """Bytes of one row that a layer keeps for backward."""
    D, F = model.d_model, model.d_ff
    if kept == "input":
        return 2 * D
    A, E = model.heads * model.head_dim, model.kv_heads * model.head_dim
    if kept == "all":
        return 2 * (8 * D + 4) + 8 * A + 4 * model.heads + 8 * F
    last = 0 if compiled else D
    return 2 * (D + A + E + F + last + A) + 4 * model.heads
