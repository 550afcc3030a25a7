"""The highest moments of steps that train adapters alone, for the page's calculator.

    python tools/adapter_peaks.py             write every file, unless they stand
    python tools/adapter_peaks.py FAMILY ...  write those of some families, and leave the key alone

What tools/peaks.py does for whole models, beside linear layers of its prime sizes. Blocks of NF4
hold 64 values, so over a base in NF4 the widths of layers are 64 times a prime.
"""

import json
from itertools import product

import layer_peaks
import peaks
from peaks_seal import Tables
from products import interned

from memlab.adapters import Lora
from memlab.adapters.lora import BLOCK
from memlab.families import record_of, tabled
from memlab.page.adapter_tables import (
    BASES,
    PRECISIONS,
    TARGETS,
    TIED,
    kind_of,
    letters_of,
    table_of,
    targets_of,
)
from memlab.page.peak import LEAST
from memlab.step.simulate import log_of

RANK = 67
ONE_HEAD = ("gemma",)
WIDE = {"D": BLOCK * peaks.PRIMES["D"], "F": BLOCK * peaks.PRIMES["F"], "K": 8 * 103, "G": 8 * 97}
WIDE["Q"] = WIDE["G"] + 2  # twice a prime

LEAST["R"] = 1
for _number, _sizes in enumerate(layer_peaks.SAMPLES):
    _sizes["R"] = LEAST["R"] + (0, 1, 9, 99)[_number % 4]


def files():
    """What there is a file of: family, precision, format of the base, which layers."""
    for base in BASES:
        yield from product(tabled("adapters"), PRECISIONS, [base], TARGETS)


def sizes_of(family, kind, base):
    """The number for each letter."""
    sizes = {name: n for name, n in peaks.sizes_of(family, kind).items() if name not in "Xkm"}
    return sizes | {"R": RANK} | (WIDE if base else {})


def model_of(family, kind, base):
    """The model of tools/peaks.py, or one whose rows fill blocks."""
    model = peaks.model_of(family, kind)
    if base is None:
        return model
    shared, grouped = {"all": ("K", ""), "shared": ("K", "G"), "single": ("", "G")}[kind[5]]
    kv_heads = WIDE[shared] if shared else 1
    heads = kv_heads * (WIDE[grouped] if grouped else 1)
    return model.replace(
        d_model=WIDE["D"], d_ff=WIDE["F"], kv_heads=kv_heads, heads=heads, name=model.name
    )


def moments_of(family, kind, base, which):
    """The moments of one kind of step with adapters, as those of tools/peaks.py."""
    model, run = model_of(family, kind, base), peaks.asked(family, kind)[1]
    run = run.replace(lora=Lora(RANK, targets_of(model, which), base))
    log = log_of(model, kind[0], run)
    changes = peaks.changes_of(log, sizes_of(family, kind, base))
    kinds = [int(each) for each in peaks.ORDERS[kind[-2]]]
    return layer_peaks.moments_of(log, kinds, changes, letters_of(model, run))


def kinds_of(family, precision):
    """The kinds of steps, tied tables or untied ones; one key/value head where that is usual."""
    for kind in peaks.kinds_of(family, precision):
        if kind[TIED] != record_of(family).counted("ties", peaks.TIES)[0]:
            continue
        if kind[5] != "single" or family in ONE_HEAD:
            yield kind


def text_of(family, precision, base, which):
    """The text of one file."""
    made = {
        kind_of(".".join(kind)): moments_of(family, kind, base, which)
        for kind in kinds_of(family, precision)
    }
    return json.dumps(interned(made), separators=(",", ":"))


def path_of(family, precision, base, which):
    return peaks.TARGET / f"{table_of(family, precision, base, which)}.json"


TABLES = Tables(__file__, "adapters.key", files, path_of, text_of)
key, stands = TABLES.key, TABLES.stands

if __name__ == "__main__":
    TABLES.main()
