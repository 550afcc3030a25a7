"""What a step of Megatron-LM holds at its peak beside what stays: activations and logits.

s tokens of one rank · b sequences · h width · a heads · t tensor ranks · V rows of the vocabulary

Layer       34 · s · b · h bytes without any split: ten for what each tensor rank holds whole (the
            inputs of two norms and two products, two masks of dropout), 24 for what it holds a part
            of (queries, keys, values, what they gave, and 16 in a feed-forward layer of 4 · h).
            Sequence parallelism divides the ten too; attention that is not fused adds
            5 · a · s² · b
Moment      the loss on the last rank. Logits stand there in 16 bits and in fp32, which becomes
            their exponential in place: six bytes each; --cross-entropy-loss-fusion makes the
            exponential anew: ten
Pipeline    the last rank goes backward at once, so one micro-batch is in flight; with v chunks of
            layers a rank has (v - 1) · group + 1 of them in flight, group being as many as there
            are stages unless --microbatch-group-size-per-virtual-pipeline-stage says another
Source      Korthikanti et al. 2022, arXiv:2205.05198, sections 4 and 5; megatron/core at the
            readings' commit: tensor_parallel/cross_entropy.py, fusions/fused_cross_entropy.py,
            pipeline_parallel/schedules.py
"""


def beside(what):
    """(name, bytes) of what the last rank holds in the loss, beside what stays."""
    whole, held = values(what, whole=True), values(what)
    logits = whole // what["d_model"] * what["vocab_padded"] // what["tp"]
    # Inputs of the last norm and of the head; without a pipeline the embedding's mask as well.
    ends = (4 + (what["pp"] == 1 and _masks(what))) * held
    each = 2 * held if what.get("recompute_full") else layer(what, whole)
    return [
        ("activations", int(each * in_flight(what)) + ends),
        ("logits", (10 if what.get("loss_fusion") else 6) * logits),
    ]


def values(what, *, whole=False):
    """Of the residual stream, of one micro-batch on one rank; `whole` before ranks divide it."""
    size = int(what["mbs"]) * (int(what["seq"]) // what["cp"]) * what["d_model"]
    return size if whole or not what.get("sequence_parallel") else size // what["tp"]


def layer(what, values):
    """Bytes that one layer keeps for backward on one tensor rank."""
    ratio, ranks = what["ffn"] / what["d_model"], what["tp"]
    shared = what["kv"] / what["heads"]
    whole = 8 + 2 * _masks(what)
    parts = 2 + 2 + 2 * 2 * shared + (6 if what["swiglu"] else 4) * ratio
    held = values * (whole / (ranks if what.get("sequence_parallel") else 1) + parts / ranks)
    if what["attention"] == "unfused" or what["impl"] == "local":
        scores = values // what["d_model"] * (int(what["seq"]) // what["cp"]) * what["heads"]
        held += (5 if _masks(what) else 2) * scores // ranks
    return held


def in_flight(what):
    """Layers whose activations the last rank holds when it takes the loss."""
    *before, end = last(what)
    turns = min(what.get("group", what["pp"]), micro_batches(what)) if before else 0
    return turns * sum(before) + end


def last(what):
    """Layers of each chunk of the last rank: one chunk, or one for each virtual stage."""
    if "last" in what:
        return what["last"]
    each = what["layers"] // what["pp"]
    return [int(what["vp"])] * (each // int(what["vp"])) if what["vp"] else [each]


def stage(what):
    """Layers of the last rank."""
    return sum(last(what))


def chunks(what):
    """Of layers, on the last rank."""
    return len(last(what))


def micro_batches(what):
    """Of one data-parallel rank in one step."""
    data = what["gpus"] // (what["tp"] * what["pp"] * what["cp"])
    return int(what["gbs"]) // (int(what["mbs"]) * data)


def _masks(what):
    """1 where dropout keeps masks, as Megatron has it unless it is told not to."""
    return 0 if what.get("dropout") == 0 else 1
