"""The highest moments of a step as sums of products of letters, for the page's calculator.

    python tools/peaks.py     write book/calculator/peaks/*.json for every family, unless they stand

`memlab.step` lives on CPython's reference counts, which MicroPython does not have, so the page
cannot simulate a step. But as long as nothing but sizes changes, a step allocates and frees the
same tensors in the same order, and what is held at each moment is one and the same sum of products
of B, T, D, ... This tool runs each kind of step once, on sizes that are prime numbers: dividing the
size of a tensor by them says which letters are in it, and how often. Of the moments it keeps those
that no other one covers whatever the sizes; the largest of them is the peak, to the byte, and
tests/test_calculator.py holds it against `memlab.step`. Long, because it is one search, told step
by step.
"""

import json
import os
import random
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import code_key
from products import above, add, copied, covers, interned

from memlab.model import Model
from memlab.page.peak import LEAST, SHOWN, TERMS, dropped, value
from memlab.run import Run
from memlab.step import simulate
from memlab.step.simulate import term
from memlab.step.storage_log import SIZES

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "book" / "calculator" / "peaks"

# Below its window a mistral is a llama.
FAMILIES = ("gpt2", "llama", "qwen2", "qwen3", "gemma", "opt", "gpt_neox")
FIXED_HEADS = ("gpt2", "opt", "gpt_neox")  # N = K, and D = N · H
ALWAYS_TIED = ("gpt2", "opt")

# What changes the order of a step's allocations; memlab.page.peak.kind_of names a kind by these.
PRECISIONS = ("fp32", "bf16", "autocast")  # fp16 is bf16 by another name
ATTENTIONS = ("sdpa", "eager")
CHECKPOINTS = ("none", "block")
LOSSES = ("plain", "chunked")
BATCHES = ("one", "many")
HEADS = ("all", "shared", "single")
TIES = ("untied", "tied")
PASSES = ("once", "again")

PRIMES = {"B": 7, "T": 997, "D": 1009, "F": 1013, "V": 1019, "K": 103, "G": 107, "h": 31}
PRIMES["P"] = 2003
LAYERS = SHOWN + 3
NAMED = {"(T+1)": "U", "⌈T⌉": "W", "C": "C"}  # sizes that are no product of others


def model_of(family, heads, tied):
    """A model of prime sizes."""
    shared, groups = {"all": ("K", ""), "shared": ("K", "G"), "single": ("", "G")}[heads]
    kv_heads = PRIMES[shared] if shared else 1
    shape: dict[str, Any] = {
        "layers": LAYERS,
        "d_model": kv_heads * 8 * PRIMES["h"] if family in FIXED_HEADS else PRIMES["D"],
        "d_ff": PRIMES["F"],
        "vocab": PRIMES["V"],
        "heads": kv_heads * (PRIMES[groups] if groups else 1),
        "kv_heads": kv_heads,
        "head_dim": 8 * PRIMES["h"],
    }
    made = Model(family=family, tied=tied == "tied", positions=PRIMES["P"], **shape)
    return made.replace(positions=PRIMES["P"] - made.position_offset)


def letters_of(size):
    """The letters in one size of a shape, and the number that is left."""
    if (named := NAMED.get(getattr(size, "letters", ""))) is not None:
        return named, 1
    word, left = "", int(size)
    for letter, prime in PRIMES.items():
        while left % prime == 0 and left:
            word, left = word + letter, left // prime
    rest = left
    for small in (2, 3):
        while rest and rest % small == 0:
            rest //= small
    if rest > 1:
        raise ValueError(f"{size!r} is no product of letters and small numbers")
    return word, left


def bytes_of(record):
    """The bytes of a tensor as {letters: number}; nothing where it was taken back."""
    if not record.bytes:
        return {}
    word, number = "", SIZES[record.dtype]
    for size in record.shape:
        letters, left = letters_of(size)
        word, number = word + letters, number * left
    return {"".join(sorted(word)): number}


def changes_of(log):
    """Of each event what it adds, as {term: {letters: number}}."""
    found: list[dict[str, dict[str, int]]] = []
    known: dict = {}
    for at, (record, change, _) in enumerate(log.events):
        made = {}
        if record is not None:
            if record not in known:
                known[record] = (place(record), bytes_of(record))
            where, products = known[record]
            if where is not None and change:
                made[where] = {w: n if change > 0 else -n for w, n in products.items()}
        else:
            first, last, times = log.repeats[at]
            if abs(times) != LAYERS - SHOWN:
                raise ValueError(f"{times} repeats at event {at}")
            for one in found[first:last]:
                for where, products in one.items():
                    add(made.setdefault(where, {}), products, 1 if times > 0 else -1, "M")
        found.append(made)
    return found


def place(record):
    """The term of the page that a tensor belongs to; None for weights and states."""
    name = term(record)
    if name in ("weights", "optimizer"):
        return None
    return name if name in TERMS else "other"


def moments_of(step):
    """What no other moment covers: [(hill, {term: {letters: number}})], in order.

    The last one is where the optimizer begins, whose own room the page adds.
    """
    log = step.log
    start, end = log.marks["second.forward"], log.marks["second.zero_grad"]
    marks = sorted((at, name.split(".")[1]) for name, at in log.marks.items())
    held: dict[str, dict[str, int]] = {name: {} for name in TERMS}
    kept: list[tuple] = []
    before_step = None
    for at, change in enumerate(changes_of(log)):
        if at == log.marks["second.optimizer"]:
            before_step = ("optimizer", copied(held))
        for name, products in change.items():
            add(held[name], products)
        rises = log.events[at][1] > 0 >= log.events[at + 1][1]  # else the next one is higher
        if start <= at < end and rises:
            total: dict[str, int] = {}
            for products in held.values():
                add(total, products)
            seen = tuple(value(total, sizes) for sizes in SAMPLES)
            if any(above(there, seen) and covers(other, total) for other, there, _ in kept):
                continue
            kept = [one for one in kept if not (above(seen, one[1]) and covers(total, one[0]))]
            phase = [name for first, name in marks if first <= at][-1]
            hill = "loss" if held["logits"] else phase  # as memlab.step.moments.hills
            kept.append((total, seen, (hill, copied(held))))
    return [*(moment for _, _, moment in kept), before_step]


# A moment that is lower at one of these sizes is not above another one: a quick look.
_CHANCE = random.Random(0)
SAMPLES = [
    {letter: least + _CHANCE.choice((0, 1, 9, 99, 9999)) for letter, least in LEAST.items()}
    for _ in range(24)
]


def kinds_of(family, precision):
    heads = ("all",) if family in FIXED_HEADS else HEADS
    ties = TIES[1:] if family in ALWAYS_TIED else TIES
    drops = tuple(dropouts_of(family))
    yield from product(
        [precision], ATTENTIONS, CHECKPOINTS, LOSSES, BATCHES, heads, ties, PASSES, drops
    )


def dropouts_of(family):
    """Where a step drops values, as the page names it, and what a run says to get that.

    What the class does by itself; of families whose configs often say another, none and all too.
    """
    made: dict[str, float | None] = {}
    model = model_of(family, "all", "tied")
    for p in (None, 0.0, 0.1) if family in FIXED_HEADS else (None,):
        made.setdefault(dropped(model, Run(dropout=p)), p)
    return made


def moments_for(family, precision):
    """Every kind of step of a family in a precision."""
    kinds = kinds_of(family, precision)
    return {".".join(kind): moments_of(step_of(family, kind)) for kind in kinds}


def step_of(family, kind):
    """A step of one kind, simulated on prime sizes."""
    precision, attention, checkpoint, loss, batch, heads, tied, passes, drops = kind
    run = Run(
        batch=1 if batch == "one" else PRIMES["B"],
        tokens=PRIMES["T"],
        attention=attention,
        dropout=dropouts_of(family)[drops],
        checkpoint=checkpoint,
        loss=loss,
        optimizer_impl="fused",
        micro_batches=1 if passes == "once" else 2,
    )
    return simulate(model_of(family, heads, tied), precision, run)


def text_of(family, precision):
    """The file of a family in a precision."""
    return json.dumps(interned(moments_for(family, precision)), separators=(",", ":"))


def one(pair):
    """Write the file of a family in a precision."""
    (TARGET / "{}.{}.json".format(*pair)).write_text(text_of(*pair), encoding="utf-8")


def key():
    """A hash over what the moments are made from."""
    return code_key.key(Path(__file__).resolve())


def stands():
    """Whether the files were made by the code as it is."""
    stamp = TARGET / "key"
    return stamp.exists() and stamp.read_text().strip() == key()


def kept():
    """The folder, as the repository keeps it.

    A build of the book or a test does not make it anew: what is committed would stay unseen.
    """
    if not stands():
        raise SystemExit("other code made book/calculator/peaks: run python tools/peaks.py")
    return TARGET


def build():
    """Write what is missing; returns the folder."""
    stamp = TARGET / "key"
    if not stands():
        TARGET.mkdir(parents=True, exist_ok=True)
        stamp.unlink(missing_ok=True)
        pairs = list(product(FAMILIES, PRECISIONS))
        with ProcessPoolExecutor() as pool:
            list(pool.map(one, sorted(pairs, key=lambda pair: pair[0] in FIXED_HEADS)))
        stamp.write_text(key() + "\n")
    return TARGET


if __name__ == "__main__":
    print(os.path.relpath(build()))
