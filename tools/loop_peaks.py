"""The highest moments of steps of named loops, for the page's calculator.

    python tools/loop_peaks.py             write every file, unless they stand
    python tools/loop_peaks.py LOOP ...    write those of some loops, and leave the key alone

What tools/peaks.py and tools/adapter_peaks.py do for a loop of one's own. Loops that keep outputs
make two steps; of TRL's tiles there are one or three along each side, each of a prime size. What
transformers' Trainer holds beside a plain step is a sum: memlab.page.looped has it, and no file.
"""

import json
import os
import sys
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import adapter_peaks
import code_key
import layered
import peaks
import products

from memlab.page import looped
from memlab.page.adapted import kind_of
from memlab.page.adapted import letters_of as adapted_letters
from memlab.page.forms import EAGER_ALONE
from memlab.page.looped import FAMILIES, MANY, ONE, PAIRS, TABLED, TRL, table_of, tiled
from memlab.page.peak import BATCH, LEAST
from memlab.programs import TRAINERS
from memlab.step import fused_tiles
from memlab.step.simulate import log_of
from memlab.terms.lora import Lora

KEY = "loops.key"  # beside the files of tools/peaks.py
COMPLETION = 571
SMALL = ("llama",)  # families of which some have a vocabulary of one tile
STEPS = {True: ("second",), False: ("first", "second")}  # of trainers, and of other loops
TILES = {"n": {"i": 211, "a": 223, "l": 227}, "c": {"j": 229, "x": 233, "y": 239}}
ATTENTION, LOSS, HEADS = 1, 3, 5  # of the parts of a kind's name

peaks.NAMED["n"] = "i"  # the first tile's rows again
peaks.NAMED.update({f"tile {letter}": letter for side in TILES.values() for letter in side})
LEAST.update({"t": 1, "z": 1, "Z": 1, "i": 1, "a": 0, "l": 1, "j": 64, "x": 0, "y": 1})
products.AT_LEAST |= {"z": "tTU", "t": "TU", "Z": "TU"}
for _number, _sizes in enumerate(layered.SAMPLES):
    _sizes["t"] = _sizes["T"] - 1
    _sizes["z"] = (1, max(1, _sizes["t"] // 3), _sizes["t"])[_number % 3]
    _sizes["Z"] = _sizes["T"] - _sizes["z"]
    for _names, _most in (("ial", looped.ROWS), ("jxy", looped.WORDS)):
        _first = (LEAST[_names[0]], _most)[_number % 2]
        _between = (0, _first)[_number // 2 % 2]
        _sizes |= dict(zip(_names, (_first, _between, (1, _first)[_number // 4 % 2]), strict=True))


def files():
    """What there is a file of: loop, family, precision, format of the base, which layers.

    None for the last two: all weights are trained.
    """
    for loop in TABLED:
        for family, precision in product(FAMILIES, peaks.PRECISIONS):
            yield loop, family, precision, None, None
        if loop in looped.ADAPTED:
            for family, precision, base, which in adapter_peaks.files():
                if family in FAMILIES and precision in looped.PRECISIONS:
                    yield loop, family, precision, base, which


@contextmanager
def tiles(kind):
    """TRL's head in tiles of known sizes: one along each side, or three."""
    most, parts = fused_tiles.TOKENS, fused_tiles.parts
    many = dict(zip("nc", kind[-1].split("-"), strict=True)) if "-" in kind[-1] else {}

    def of(size, most, letter):
        known = TILES[letter].items()
        made = [fused_tiles.Dim(f"tile {name}", length) for name, length in known]
        return made if many.get(letter) == MANY else made[:1]

    first = TILES["n"]["i"]
    fused_tiles.TOKENS, fused_tiles.parts = fused_tiles.Dim("tile i", first), of
    try:
        yield
    finally:
        fused_tiles.TOKENS, fused_tiles.parts = most, parts


def sizes_of(family, kind, base):
    """The number for each letter; those of composite numbers come first."""
    plain = adapter_peaks.sizes_of(family, kind, base) | peaks.sizes_of(family, kind)
    plain |= adapter_peaks.WIDE if base else {}
    tokens = plain["T"]
    made = {"t": tokens - 1, "Z": tokens - COMPLETION, "z": COMPLETION}
    return made | {n: v for n, v in plain.items() if n not in "Xkm"}


def moments_of(loop, family, kind, base, which):
    """The moments of one kind of step of a loop, as those of tools/peaks.py."""
    inner = kind[:11]
    model, run = adapter_peaks.model_of(family, inner, base), peaks.asked(family, inner)[1]
    if which:
        lora = Lora(adapter_peaks.RANK, adapter_peaks.targets_of(model, which), base)
        run = run.replace(lora=lora)
    run = run.replace(loop=loop, completion=COMPLETION if loop in TRL else None)
    with tiles(kind):
        log = log_of(model, kind[0], run, steps=STEPS[loop in TRAINERS])
    sizes = sizes_of(family, inner, base)
    changes = peaks.changes_of(log, sizes)
    letters = adapted_letters(model, run)
    if loop in TRL:
        letters |= {name: sizes[name] for name in "tzZ"}
        letters |= {letter: n for side in TILES.values() for letter, n in side.items()}
    kinds = [int(each) for each in peaks.ORDERS[kind[9]]]
    return layered.moments_of(log, kinds, changes, letters)


def kinds_of(loop, family, precision, which):
    """The kinds of steps of a loop."""
    made = adapter_peaks.kinds_of(family, precision) if which else peaks.kinds_of(family, precision)
    for kind in made:
        if kind[LOSS] != "plain" or (kind[ATTENTION] == "eager" and family not in EAGER_ALONE):
            continue
        if kind[HEADS] == "single" and family not in adapter_peaks.ONE_HEAD:
            continue
        if loop == PAIRS and kind[BATCH] != MANY:
            continue
        if tiled(loop, precision):
            for rows, words in product((ONE, MANY), (ONE, MANY) if family in SMALL else (MANY,)):
                yield (*kind, f"{rows}-{words}")
        else:
            yield kind


def text_of(loop, family, precision, base, which):
    """The text of one file."""
    made = {}
    for kind in kinds_of(loop, family, precision, which):
        name = ".".join(kind)
        made[kind_of(name) if which else name] = moments_of(loop, family, kind, base, which)
    return json.dumps(products.interned(made), separators=(",", ":"))


def path_of(loop, family, precision, base, which):
    name = f"{family}.{precision}"
    if which:
        name = adapter_peaks.table_of(family, precision, base, which)
    return peaks.TARGET / f"{table_of(name, loop)}.json"


def key():
    """A hash over what the moments are made from."""
    return code_key.key(Path(__file__).resolve())


def stands():
    """Whether the files were made by the code as it is."""
    stamp = peaks.TARGET / KEY
    return stamp.exists() and stamp.read_text().strip() == key()


def build(loops=()):
    """Write the files of these loops; of all, with the key, where none is named."""
    if not loops and stands():
        return
    made_by = key()
    for each in files():
        if not loops or each[0] in loops:
            path_of(*each).write_text(text_of(*each), encoding="utf-8")
    if not loops:
        (peaks.TARGET / KEY).write_text(made_by + "\n")


if __name__ == "__main__":
    build(sys.argv[1:])
    print(os.path.relpath(peaks.TARGET))
