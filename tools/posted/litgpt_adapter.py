"""What LitGPT's LLaMA-Adapter keeps for backward in 2023-10, both versions. Bytes of one row.

D width · F feed-forward width · A, E widths of all queries and of all keys · N heads · V vocabulary

Prompts     from the third layer on, ten trained vectors are attended to beside the text: what comes
            of it, 2 · A, with its log-sum-exp, 4 · N, is kept for its gate, and where the output
            matrix is NF4 so is the sum of both results, 2 · A
First       nothing before the third layer needs a gradient, and in that one neither do queries,
            keys and values, nor a feed-forward layer beside attention that reads the layer's input
Second version  each linear layer's result is shifted and scaled by trained vectors, and kept before
            the scale: 2 bytes a value, the head's too. Norms are trained, and so all layers need
            gradients; the first norm of all needs none of its input
Else        as a layer of LoRA whose matrices have no adapter: tools/posted/litgpt_peak.py
Held        LitGPT's own modules keep these bytes on a CPU, but for what is named in the test: the
            CPU's kernel for the prompts, the norms' statistics, and the norms' format
Source      litgpt at 8641822: lit_gpt/adapter.py, adapter_v2.py; finetune/adapter.py, where the
            check before training fills adapter_kv_cache without gradients
"""

from .litgpt_peak import layer

PROMPT, START = 10, 2  # adapter_prompt_length, adapter_start_layer
NONE = dict.fromkeys(("q", "k", "v", "out", "mlp", "head"), False) | {"r": 0, "dropout": 0.0}


def kept(model, nf4, second):
    """All layers, the last norm and the head's input; with `second` the head's results too."""
    D, A = model.d_model, model.heads * model.head_dim
    beside = 2 * A + (2 * A if nf4 else 0)  # the prompts' result, and the sum of both
    prompts = beside + 4 * model.heads
    last = norm(model, second) + (2 * D if nf4 else 0)
    if second:
        every = model.layers * (layer(model, NONE, nf4, 0) + scaled(model) + norms(model))
        first = 4 * D if model.norm == "rmsnorm" else 0
        return every + (model.layers - START) * prompts + last + 2 * model.vocab - first
    later = (model.layers - START - 1) * (layer(model, NONE, nf4, 0) + prompts)
    return later + beside + fed(model, nf4) + last


def trained(model, second):
    """Values of the adapters: prompts and gates, and each linear layer's shift and scale."""
    prompts = (model.layers - START) * (PROMPT * model.d_model + model.heads)
    return prompts + 2 * (model.layers * outputs(model) + model.vocab) * second


def outputs(model):
    """Values of one row that the linear layers of a layer give."""
    wide = 2 if model.gated else 1
    heads = (model.heads + 2 * model.kv_heads) * model.head_dim
    return heads + 2 * model.d_model + wide * model.d_ff


def scaled(model):
    """Their results before the scale."""
    return 2 * outputs(model)


def norm(model, second):
    """What one norm keeps, with a trained weight in the second version."""
    if model.norm == "layernorm":
        return 2 * model.d_model
    return (8 if second else 4) * model.d_model


def norms(model):
    """What the norms of a layer keep more where their weights are trained."""
    return model.block_norms * (norm(model, True) - norm(model, False))


def fed(model, nf4):
    """Of the third layer its feed-forward layer, if that reads what attention gave."""
    if model.norm == "layernorm":  # beside attention
        return 0
    coded = 2 * (model.d_model + model.d_ff) if nf4 else 0
    return norm(model, False) + (6 if model.gated else 2) * model.d_ff + coded
