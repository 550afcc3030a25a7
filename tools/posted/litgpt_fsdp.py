"""LitGPT's full fine-tunes on several devices: FSDP with flat parameters, every block checkpointed.

P parameters, R of them at the root: embedding, head and last norm, whose unit is no block's and
stays gathered · n ranks · 2 bytes each · V vocabulary, a row's logits in fp32 held by the loop

Between     of a rank: weights, gradients and AdamW's two states, 8 · P / n
Step        torch's AdamW over lists makes one more copy of what a rank has: 2 · P / n
Backward    its end, at the root: the weights gathered, the gradients of its tables, and the flat
            one that they are put together in, 2 · R each. Before a step's last micro-batch nothing
            is reduced (no_backward_sync), so the gradients of all P wait undivided, 2 · P instead
            of 2 · P / n; with one micro-batch those of the blocks are divided already
Source      litgpt, finetune/full.py: FSDPStrategy(auto_wrap_policy={Block}, ...), fit; torch,
            distributed/fsdp/_runtime_utils.py: _post_backward_hook; the recipes' devices,
            global_batch_size and micro_batch_size
"""


def divided(model, what, tokens, ranks, turns):
    """(name, bytes) of what a rank holds at its peak beside its part of weights and states.

    turns       micro-batches of a step
    """
    P, rows = model.parameter_count, what["micro_batch"] * tokens
    root = sum(t.count for t in model.tensors() if not t.name.startswith("layers."))
    if turns > 1:
        whole = 2 * P - 2 * P // ranks
    else:
        whole = -2 * root // ranks
    backward = [("gradients not divided", whole), ("the root", 3 * 2 * root)]
    step = [("a copy in AdamW", 2 * P // ranks)]
    most = max((backward, step), key=lambda found: sum(size for _, size in found))
    return [*most, ("logits", 4 * rows * model.vocab)]
