"""The highest moments of a step as sums of products of letters, for the page's calculator.

    python tools/peaks.py     write book/calculator/peaks/*.json for every family, unless they stand

`memlab.step` lives on CPython's reference counts, which MicroPython does not have, so the page
cannot simulate a step. But as long as nothing but sizes changes, a step allocates and frees the
same tensors in the same order, and what is held at each moment is one and the same sum of products
of B, T, D, ... This tool runs each kind of step once, on sizes that are prime numbers: dividing the
size of a tensor by them says which letters are in it, and how often. Of the moments it keeps those
that no other one covers whatever the sizes (tools/layer_peaks.py); the largest of them is the
peak, to the byte, and tests/test_calculator.py holds it against `memlab.step`. Long, because every
kind of step that the page asks for is spelled here once.
"""

import json
import os
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from typing import Any

import layer_peaks
import peaks_seal
from peaks_seal import KEY, TARGET, kept, key, stands
from products import interned

from memlab.families import record_of, tabled
from memlab.model import Model
from memlab.model.latent import Latent
from memlab.page.layer_forms import FORMS, FORMS_OF, PLAIN, THREE, TURNS, form_of
from memlab.page.peak import CACHE, EVERY, dropped, letters
from memlab.run import Run
from memlab.step.core.storage_log import SIZES
from memlab.step.simulate import log_of, term

# What changes the order of a step's allocations; memlab.page.peak.kind_of names a kind by these.
PRECISIONS = ("fp32", "bf16", "autocast")  # fp16 is bf16 by another name
ATTENTIONS = ("sdpa", "eager")
WINDOWED = ("windowed", "padded")  # SDPA with a mask, and with one of rows padded to 8
CHECKPOINTS = ("none", "block")
LOSSES = ("plain", "chunked")
BATCHES = ("one", "many")
HEADS = ("all", "shared", "single")
TIES = ("untied", "tied")
PASSES = ("once", "again")

# Layers of two kinds, or more: below and above one of each there are enough of both.
ORDERS = {"0-1": "0000001000010011", "0-0": "0000001000010010", "1-0": "111111000000"}
ORDERS["alike"] = 7 * "0"
ORDERS[THREE] = 4 * TURNS

PRIMES = {"B": 7, "T": 997, "D": 1009, "F": 1013, "V": 1019, "K": 103, "G": 107, "h": 31}
PRIMES |= {"P": 2003, "X": 151, "k": 13, "m": 1021, "s": 1031}
PRIMES["Q"] = PRIMES["G"] + 2  # a prime, too
# Of latent attention, where a head is what passes and what turns: h and e are twice a prime.
LATENT = {"c": 463, "q": 491, "p": 5, "r": 17, "u": 41, "h": 22, "e": 46, "w": 599}
GROUPS = {"g": 37, "b": 29}
NAMED = {"(T+1)": "U", "⌈T⌉": "W", "⌈T⌉8": "Y", "C": "C"}  # sizes that are no product of others
# What a config, or a model, says to have a form of a family that is not the plain one.
LONG: dict[str, Any] = {"rope_scaling": {"rope_type": "longrope"}}
FORMED: dict[tuple[str, str], dict[str, Any]] = {
    ("phi3", "long"): {"config": LONG},
    ("phi3", "long-part"): {"config": LONG | {"partial_rotary_factor": 0.75}},
    ("glm4_moe", PLAIN): {"qkv_bias": True},
    ("glm4_moe", "normed"): {"qkv_bias": True, "qk_norm": True},
}
FORMED["glm4", "unbiased"] = {"qkv_bias": False}
FORMED["qwen3_moe", "adds-to-one"] = {"config": {"norm_topk_prob": True}}
FORMED["olmo", "cut"] = {"config": {"clip_qkv": 8.0}}
FORMED["llama4_text", "unnormed"] = {"config": {"use_qk_norm": False}}
_MANY = {"n_group": GROUPS["g"], "topk_group": GROUPS["b"]}
FORMED["deepseek_v3", PLAIN] = {"config": _MANY}
FORMED |= dict.fromkeys(
    (("deepseek_v3", "one-group"), ("deepseek_v3", "one-group-direct")),
    {"config": {"n_group": 1, "topk_group": 1}},
)
FORMED["deepseek_v2", PLAIN] = {"config": _MANY | {"topk_method": "group_limited_greedy"}}
# A model of a family, whatever its sizes.
ANY: dict[str, Any] = {"layers": 1, "d_model": 64, "d_ff": 64, "heads": 1, "vocab": 64}
ANY |= {"positions": 64}
ANY_MIXTURE: dict[str, Any] = {"experts": 2, "experts_per_token": 1, "expert_ff": 64}
ANY_LATENT = Latent(kv_rank=8, nope=8, rope=8, value=8)


def model_of(family, kind):
    """A model of prime sizes, for a kind of step."""
    _, attention, _, _, _, heads, tied, _, _, layers, form = kind
    primes = sizes_of(family, kind)
    known = record_of(family)
    shared, grouped = {"all": ("K", ""), "shared": ("K", "G"), "single": ("", "G")}[heads]
    kv_heads = PRIMES[shared] if shared else 1
    told: dict[str, Any] = {
        "layers": len(ORDERS[layers]),
        "d_model": kv_heads * 8 * PRIMES["h"] if fixed_heads(family) else PRIMES["D"],
        "d_ff": PRIMES["F"],
        "vocab": PRIMES["V"],
        "heads": kv_heads * (PRIMES[grouped] if grouped else 1),
        "kv_heads": kv_heads,
        "head_dim": 8 * primes["h"],
        "positions": PRIMES["P"] - (2 if family == "opt" else 0),
        "tied": tied == "tied",
    }
    if known.mixture:
        told |= {"experts": PRIMES["X"], "experts_per_token": PRIMES["k"]}
        told |= {"expert_ff": PRIMES["m"]}
    if family == "llama4_text":  # whose shared expert is as wide as the others
        told |= {"experts_per_token": 1, "shared_ff": PRIMES["m"]}
    if family == "qwen2_moe" or known.groups:
        told["shared_ff"] = PRIMES["s"]
    if known.latent:
        widths = {"nope": "p", "rope": "r", "value": "u"}
        latent = {name: 8 * primes[letter] for name, letter in widths.items()}
        latent["q_rank"] = 0 if form.endswith("direct") else primes["q"]
        told["latent"] = Latent(kv_rank=primes["c"], **latent)
    if known.groups and layers != "alike":
        told["dense_layers"] = tuple(n for n, k in enumerate(ORDERS[layers]) if k == "1")
    if layers == THREE:
        told["dense_layers"] = tuple(n for n, k in enumerate(ORDERS[layers]) if k == "2")
    formed = FORMED.get((family, form), {})
    config = (
        {"model_type": family} | config_of(family, attention, layers) | formed.get("config", {})
    )
    model = Model(
        family=family, config=config, **(told | {k: v for k, v in formed.items() if k != "config"})
    )
    assert form_of(model) == form, (form_of(model), form)
    return model


def fixed_heads(family):
    """Whether N = K, and D = N · H."""
    return "kv_heads" not in record_of(family).shape


def config_of(family, attention, layers):
    """What a config says of windows, and of layers of two kinds."""
    kinds = ORDERS[layers]
    if family in ("smollm3", "llama4_text"):
        made: dict[str, Any] = {"no_rope_layers": [int(kind != "1") for kind in kinds]}
        chunk = 16 if attention in WINDOWED else 4096
        return made | ({"attention_chunk_size": chunk} if family == "llama4_text" else {})
    if family in ("gemma3_text", "cohere2"):
        window = 16 if attention in WINDOWED else 4096
        names = {"0": "sliding_attention", "1": "full_attention"}
        return {"sliding_window": window, "layer_types": [names[kind] for kind in kinds]}
    if attention in WINDOWED:
        return {"sliding_window": 16}
    return {}


def sizes_of(family, kind):
    """The number for each letter: primes, but for tokens whose masks are not padded."""
    known = record_of(family)
    made = PRIMES | (GROUPS if known.groups else {}) | (LATENT if known.latent else {})
    return made | {"T": 8 * 127} if kind[1] == "windowed" else made


def letters_of(size, sizes):
    """The letters in one size of a shape, and the number that is left."""
    named = NAMED.get(getattr(size, "letters", ""))
    own = (sizes.get("c"), sizes.get("z"))  # the latent's width is a C, too, and a completion
    if named is not None and size not in own:
        return named, 1
    if size == sizes["T"] + 1:
        return "U", 1
    word, left = "", int(size)
    for letter, prime in sizes.items():
        while left % prime == 0 and left:
            word, left = word + letter, left // prime
    rest = left
    for small in (2, 3):
        while rest and rest % small == 0:
            rest //= small
    if rest > 1:
        raise ValueError(f"{size!r} is no product of letters and small numbers")
    return word, left


def bytes_of(record, sizes):
    """The bytes of a tensor as {letters: number}; nothing where it was taken back."""
    if not record.bytes:
        return {}
    word, number = "", SIZES[record.dtype]
    for size in record.shape:
        letters, left = letters_of(size, sizes)
        word, number = word + letters, number * left
    return {"".join(sorted(word)): number}


def changes_of(log, sizes, bytes_of=bytes_of):
    """Of each event the layer that its tensor was made in, its term, its bytes, and +1 or -1."""
    found: list[tuple | None] = []
    owners = [
        layer for start, end, layer, _ in layer_peaks.parts_of(log) for _ in range(start, end)
    ]
    owners = [None] * (len(log.events) - len(owners)) + owners
    known: dict = {}
    shapes: dict = {}
    for owner, (record, change, _) in zip(owners, log.events, strict=True):
        if record not in known:
            where, shape = place(record), (record.shape, record.dtype, bool(record.bytes))
            shape += tuple(getattr(size, "letters", "") for size in record.shape)
            if where is not None and shape not in shapes:
                shapes[shape] = bytes_of(record, sizes)
            known[record] = None if where is None else (owner, where, shapes[shape])
        told = known[record]
        empty = told is None or not change
        found.append(None if empty else (*told, 1 if change > 0 else -1))
    return found


def place(record):
    """The term of the page that a tensor belongs to; None for weights and states.

    A second model, which is not trained, is no more of it than the first one's weights.
    """
    name = term(record)
    if name in ("weights", "optimizer", "reference"):
        return None
    name = {"kv_cache": CACHE}.get(name, name)
    return name if name in EVERY else "other"


def kinds_of(family, precision):
    """All kinds of steps that a family has in a precision."""
    counted = record_of(family).counted
    for attention in counted("attentions", ATTENTIONS):
        for kind in product(
            [precision],
            [attention],
            CHECKPOINTS,
            counted("losses", LOSSES),
            BATCHES,
            counted("heads", HEADS[:2]),
            counted("ties", TIES),
            PASSES,
            dropouts_of(family),
            counted("layers", ("alike",)),
            FORMS[family].values() if family in FORMS else [PLAIN],
        ):
            rare = attention in WINDOWED and kind[-1] != PLAIN
            if rare if family not in FORMS_OF else kind[-1] not in FORMS_OF[family][kind[-2]]:
                continue
            yield kind


def dropouts_of(family):
    """Where a step drops values, as the page names it, and what a run says to get that.

    What the class does by itself; of families whose configs often say another, none and all too.
    """
    made: dict[str, float | None] = {}
    known = record_of(family)
    more = ANY_MIXTURE if known.mixture else {}
    more = more | ({"latent": ANY_LATENT, "head_dim": 16} if known.latent else {})
    model = Model(family=family, **ANY, **more)
    for p in known.counted("dropouts", (None,)):
        made.setdefault(dropped(model, Run(dropout=p)), p)
    return made


def moments_for(family, precision):
    """Every kind of step of a family in a precision."""
    return {".".join(kind): moments_of(family, kind) for kind in kinds_of(family, precision)}


def moments_of(family, kind):
    """The moments of one kind of step: [(hill, place, {term: {letters: number}})], in order."""
    model, run = asked(family, kind)
    log = log_of(model, kind[0], run)
    kinds = [int(each) for each in ORDERS[kind[-2]]]
    return layer_peaks.moments_of(
        log, kinds, changes_of(log, sizes_of(family, kind)), letters(model, run)
    )


def asked(family, kind):
    """The model and the run of one kind of step, of prime sizes."""
    _, attention, checkpoint, loss, batch, _, _, passes, drops, _, _ = kind
    sizes = sizes_of(family, kind)
    run = Run(
        batch=1 if batch == "one" else sizes["B"],
        tokens=sizes["T"],
        attention="eager" if attention == "eager" else "sdpa",
        dropout=dropouts_of(family)[drops],
        checkpoint=checkpoint,
        loss=loss,
        optimizer_impl="fused",
        micro_batches=1 if passes == "once" else 2,
    )
    return model_of(family, kind), run


def text_of(family, precision):
    """The file of a family in a precision."""
    return json.dumps(interned(moments_for(family, precision)), separators=(",", ":"))


def one(pair):
    """Write the file of a family in a precision."""
    (TARGET / "{}.{}.json".format(*pair)).write_text(text_of(*pair), encoding="utf-8")


def build():
    """Write what is missing; returns the folder."""
    stamp, made_by = TARGET / KEY, key()
    if not stands():
        TARGET.mkdir(parents=True, exist_ok=True)
        stamp.unlink(missing_ok=True)
        pairs = list(product(tabled(), PRECISIONS))
        with ProcessPoolExecutor() as pool:
            list(pool.map(one, pairs))
        stamp.write_text(made_by + "\n")
        peaks_seal.seal(TARGET)
    return kept()


if __name__ == "__main__":
    print(os.path.relpath(build()))
