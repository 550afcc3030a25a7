"""What a step of LitGPT holds at its peak beside its weights: activations, logits, adapters.

R rows (tokens of a micro-batch) · D width · F feed-forward width · A, E widths of all queries and
of all keys · V vocabulary · r rank of an adapter. Bytes of one row, unless it says otherwise

Norm        RMSNorm is written out in fp32 and keeps its input there, 4 · D, and with a trained
            weight its result too, 8 · D; LayerNorm keeps its input, 2 · D, and two of them beside
            each other, as in StableLM, have one input
Attention   keys and values of fewer heads are repeated for every query head: 8 · A of queries,
            keys, values and result. With as many heads the values are a part of the fused result,
            which stays whole: 2 · (A + 2 · E) + 6 · A. Gemma 2 caps its scores, so they are written
            out: 2 after tanh, 4 after softmax in fp32 and 2 after the cast, a head and a key
Feed-forward    6 · F with a gate (one part, its activation, the other part), 2 · F without
Adapter     its input after dropout and the mask, 3 bytes a value; A's result; and where an adapter
            of fused queries, keys and values leaves one of them out, index_copy_ keeps its source
Input       of a linear layer: kept where its weight is trained, and by bitsandbytes 0.42, whose
            MatMul4Bit keeps it in `ctx.tensors`. That is an attribute and no saved tensor, so it
            lives as long as the graph: `loss` holds that of the last pass until it has its next
            value, and in forward all these inputs are there twice
Logits      Lightning hands on every output in fp32 (HalfPrecision.convert_output), and the loop
            holds `logits` until it has new ones. Where the new ones are cast there are the old ones
            in fp32, 2 bytes and 4 bytes of the new: 10 · V. A full fine-tune does not cut its head
            into chunks, and its loss has 12 · V: the logits, a copy of those that are shifted, and
            their log-softmax
NF4         the head is written out in fp16, in which Lightning quantizes, and cast: 4 · V · D bytes
            at the last chunk of 128 tokens, when old logits and all but that chunk are there
Source      litgpt at the readings' commit and at 2b195c7f: model.py, lora.py, finetune/lora.py,
            finetune/full.py, utils.py (chunked_cross_entropy); lightning 2.3, fabric/wrappers.py
            and fabric/plugins/precision/bitsandbytes.py; bitsandbytes 0.42, autograd/_functions.py
            (mended by pull request 1270, in 0.43.2)
"""

CHUNK = 128  # tokens whose logits are made at once


def beside(model, what, tokens):
    """(name, bytes) of what a step holds at its peak, beside the weights and what they train."""
    rows = what["micro_batch"] * tokens
    lora, nf4 = on(what), bool(what["quantize"])
    saved = model.layers * layer(model, lora, nf4, tokens)
    norm = _norm(model, lora)
    saved += norm + _input(model.d_model, lora, nf4, ("head",))  # the last norm, and the head
    if lora:
        saved -= norm  # nothing before the first adapter needs a gradient
    first = 2 * model.d_model if nf4 else 0
    again = model.layers * inputs(model) + 2 * model.d_model - first if nf4 else 0
    return [
        ("adapters", 8 * adapters(model, lora)),
        ("activations", rows * (saved - first)),
        ("activations of the last pass", rows * again),
        ("logits", logits(model, rows, tokens, lora, nf4)),
    ]


def on(what):
    """What has adapters, by short names, their rank and their dropout; nothing without adapters."""
    said = what["lora"]
    if not said:
        return {}
    names = {"query": "q", "key": "k", "value": "v", "projection": "out", "mlp": "mlp"}
    found = {short: said[f"lora_{name}"] == "true" for name, short in names.items()}
    found |= {"head": said["lora_head"] == "true", "r": int(said["lora_r"])}
    return found | {"dropout": float(said["lora_dropout"])}


def adapters(model, lora):
    """Parameters of all adapters: r · (inputs + outputs) each."""
    if not lora:
        return 0
    D, F, r = model.d_model, model.d_ff, lora["r"]
    A, E = model.heads * model.head_dim, model.kv_heads * model.head_dim
    each = sum(D + width for name, width in (("q", A), ("k", E), ("v", E)) if lora[name])
    each += (A + D) * lora["out"] + (2 + model.gated) * (D + F) * lora["mlp"]
    return r * (model.layers * each + (D + model.vocab) * lora["head"])


def layer(model, lora, nf4, tokens):
    """Bytes of one row that a layer keeps for backward."""
    D, F, shared = model.d_model, model.d_ff, model.block_norms == 1
    A, E = model.heads * model.head_dim, model.kv_heads * model.head_dim
    held = (1 if model.norm == "layernorm" else model.block_norms) * _norm(model, lora)
    held += _input(D, lora, nf4, ("q", "k", "v"))
    parts = [width for name, width in (("q", A), ("k", E), ("v", E)) if lora and lora[name]]
    held += 2 * len(parts) * lora["r"] if parts else 0
    held += 2 * sum(parts) if 0 < len(parts) < 3 else 0
    if model.family == "gemma2":
        held += 6 * A + 8 * model.heads * tokens
        held += _input(A, lora, nf4, ("out",))
    else:
        held += 8 * A if model.kv_heads < model.heads else 2 * (A + 2 * E) + 6 * A
        held += 4 * model.heads  # log-sum-exp of each head
        held += _input(A, lora, False, ("out",)) if lora else 0  # its result is kept anyway
    wide = 2 if model.gated else 1
    held += _input(D, lora, nf4 and not shared, ("mlp",), wide)
    held += (6 if model.gated else 2) * F + _input(F, lora, nf4, ("mlp",))
    held += 2 * lora["r"] * (lora["out"] + (wide + 1) * lora["mlp"]) if lora else 0
    return held


def inputs(model):
    """Bytes of one row of all that goes into a layer's linear layers, each tensor once."""
    A = model.heads * model.head_dim
    return 2 * ((1 if model.block_norms == 1 else 2) * model.d_model + A + model.d_ff)


def logits(model, rows, tokens, lora, nf4):
    """Bytes of the logits where they are most, or of the widened head beside fewer of them."""
    if not lora:
        return 12 * rows * model.vocab
    cast = 10 * rows * model.vocab
    before = 4 * rows + 2 * rows * (tokens - CHUNK) // tokens
    widened = before * model.vocab + 4 * model.vocab * model.d_model
    return max(cast, widened) if nf4 else cast


def _norm(model, lora):
    if model.norm == "layernorm":
        return 2 * model.d_model
    return (4 if lora else 8) * model.d_model


def _input(width, lora, nf4, names, times=1):
    """Bytes of one row of a linear layer's input: where its weight is trained, or codes are."""
    kept = 2 * width if nf4 or not lora else 0
    if lora and any(lora[name] for name in names):
        kept += times * (3 if lora["dropout"] else 2) * width
    return kept
