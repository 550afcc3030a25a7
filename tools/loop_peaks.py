"""The highest moments of steps of named loops, for the page's calculator.

    python tools/loop_peaks.py             write every file, unless they stand
    python tools/loop_peaks.py LOOP ...    write those of some loops, and leave the key alone

What tools/peaks.py and tools/adapter_peaks.py do for a loop of one's own. Loops that keep outputs
make two steps; of TRL's tiles there are one or three along each side, each of a prime size. What
transformers' Trainer holds beside a plain step is a sum: memlab.page.loop_tables has it, and no
file.
"""

import json
from contextlib import contextmanager
from itertools import product

import adapter_peaks
import layer_peaks
import peaks
import products
from peaks_seal import Tables

from memlab.adapters import Lora
from memlab.families import record_of, tabled
from memlab.page import loop_tables
from memlab.page.adapter_tables import kind_of
from memlab.page.adapter_tables import letters_of as adapted_letters
from memlab.page.loop_tables import KEPT, MANY, ONE, PAIRS, TABLED, table_of, tiled
from memlab.page.peak import BATCH, CACHE, LEAST, TERMS
from memlab.run.loops import HEADED, TRAINERS
from memlab.step.loops import fused_tiles
from memlab.step.simulate import log_of

COMPLETION = 571
SMALL = ("llama",)  # families of which some have a vocabulary of one tile
STEPS = {True: ("second",), False: ("first", "second")}  # of trainers, and of other loops
TILES = {"n": {"i": 211, "a": 223, "l": 227}, "c": {"j": 229, "x": 233, "y": 239}}
ATTENTION, LOSS, HEADS = 1, 3, 5  # of the parts of a kind's name

peaks.NAMED["n"] = "i"  # the first tile's rows again
peaks.NAMED.update({f"tile {letter}": letter for side in TILES.values() for letter in side})
LEAST.update({"t": 1, "z": 1, "Z": 1, "i": 1, "a": 0, "l": 1, "j": 64, "x": 0, "y": 1})
products.AT_LEAST |= {"z": "tTU", "t": "TU", "Z": "TU"}
for _number, _sizes in enumerate(layer_peaks.SAMPLES):
    _sizes["t"] = _sizes["T"] - 1
    _sizes["z"] = (1, max(1, _sizes["t"] // 3), _sizes["t"])[_number % 3]
    _sizes["Z"] = _sizes["T"] - _sizes["z"]
    for _names, _most in (("ial", loop_tables.ROWS), ("jxy", loop_tables.WORDS)):
        _first = (LEAST[_names[0]], _most)[_number % 2]
        _between = (0, _first)[_number // 2 % 2]
        _sizes |= dict(zip(_names, (_first, _between, (1, _first)[_number // 4 % 2]), strict=True))


def files():
    """What there is a file of: loop, family, precision, format of the base, which layers.

    None for the last two: all weights are trained.
    """
    for loop in TABLED:
        for family, precision in product(tabled("loops"), peaks.PRECISIONS):
            yield loop, family, precision, None, None
        if loop in TRAINERS:
            for family, precision, base, which in adapter_peaks.files():
                if family in tabled("loops") and precision in loop_tables.PRECISIONS:
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
    run = run.replace(loop=loop, completion=COMPLETION if loop in HEADED else None)
    with tiles(kind):
        log = log_of(model, kind[0], run, steps=STEPS[loop in TRAINERS])
    sizes = sizes_of(family, inner, base)
    changes = peaks.changes_of(log, sizes)
    letters = adapted_letters(model, run)
    if loop in HEADED:
        letters |= {name: sizes[name] for name in "tzZ"}
        letters |= {letter: n for side in TILES.values() for letter, n in side.items()}
    kinds = [int(each) for each in peaks.ORDERS[kind[9]]]
    return layer_peaks.moments_of(log, kinds, changes, letters)


def kinds_of(loop, family, precision, which):
    """The kinds of steps of a loop."""
    made = adapter_peaks.kinds_of(family, precision) if which else peaks.kinds_of(family, precision)
    for kind in made:
        eager = kind[ATTENTION] == "eager" and not record_of(family).eager_alone
        if kind[LOSS] != "plain" or eager:
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
    terms = TERMS + (CACHE,) * (loop == KEPT)
    return json.dumps(products.interned(made, terms), separators=(",", ":"))


def path_of(loop, family, precision, base, which):
    name = f"{family}.{precision}"
    if which:
        name = adapter_peaks.table_of(family, precision, base, which)
    return peaks.TARGET / f"{table_of(name, loop)}.json"


TABLES = Tables(__file__, "loops.key", files, path_of, text_of)
key, stands = TABLES.key, TABLES.stands

if __name__ == "__main__":
    TABLES.main()
