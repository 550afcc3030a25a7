"""The highest moments of steps of one rank under FSDP2, for the page's calculator.

    python tools/sharded_peaks.py             write every file, unless they stand
    python tools/sharded_peaks.py FAMILY ...  write those of some families, and leave the key alone

What tools/peaks.py does for one device, with sizes of which each, and each part that one of eleven
ranks has of it, has a prime factor of its own. FSDP2's buffers are flat: as long as the parts of a
layer's weights together, or of the root's.
"""

import json
from itertools import product

import layer_peaks
import peaks
import products
from peaks_seal import Tables

from memlab.families import record_of, tabled
from memlab.page import fsdp_tables
from memlab.page.fsdp_tables import file_of
from memlab.page.peak import LEAST, SHARDED, TERMS, value
from memlab.sharding import Sharding
from memlab.step.core.storage_log import SIZES
from memlab.step.simulate import log_of
from memlab.terms.sharding import row_shard

OWN = {"K": 173, "G": 197, "Q": 199, "h": 23, "D": 1093, "F": 1061, "V": 1279, "A": 11}
LOSS, HEADS = 3, 5  # of the parts of a kind's name

LEAST.update(dict.fromkeys("vdfnoE", 1) | {"A": 2})
_WHOLE = {"v": "V", "d": "D", "f": "F"}
for _number, _sizes in enumerate(layer_peaks.SAMPLES):
    _sizes["A"] = (2, 8, 64)[_number % 3]
    _rows = {_part: _sizes[_letter] for _part, _letter in _WHOLE.items()}
    _rows |= {"E": 8 * _sizes["h"], "o": 8 * _sizes["h"] * _sizes["K"]}
    _rows["n"] = _rows["o"] * _sizes["G"]
    _sizes |= {_part: -(-_size // _sizes["A"]) for _part, _size in _rows.items()}


def files():
    """What there is a file of: family, precision."""
    return product(tabled("fsdp"), peaks.PRECISIONS)


def model_of(family, kind):
    """The model of tools/peaks.py, of these sizes."""
    kv_heads = OWN["K"]
    heads = kv_heads * (OWN["G"] if kind[HEADS] == "shared" else 1)
    model = peaks.model_of(family, kind)
    return model.replace(
        name=model.name,
        d_model=OWN["D"],
        d_ff=OWN["F"],
        vocab=OWN["V"],
        kv_heads=kv_heads,
        heads=heads,
        head_dim=8 * OWN["h"],
    )


def sizes_of(model, family, kind):
    """The number for each letter, those of parts first; of products of others, the longest."""
    rows = fsdp_tables.rows_of(model)
    parts = {letter: -(-rows[letter] // OWN["A"]) for letter in rows}
    if model.heads == model.kv_heads:  # the same rows: one letter of them
        del parts["n"]
    plain = {n: v for n, v in peaks.sizes_of(family, kind).items() if n not in "Xkms"}
    return parts | plain | OWN


def sums(model, sizes):
    """{values in one flat buffer: sum of products}: a layer's parts, the root's, and of all ranks.

    A tied table is one weight, and the root's.
    """
    groups: dict[bool, dict[str, int]] = {True: {}, False: {}}
    for tensor in model.tensors():
        word, number = word_of(row_shard(tensor.shape, ranks=OWN["A"]), sizes)
        products.add(groups[tensor.name.startswith("layers.")], {word: number})
    made = {}
    for group in groups.values():
        values = value(group, sizes)
        made[values] = group
        made[values * OWN["A"]] = {"".join(sorted(word + "A")): n for word, n in group.items()}
    return made


def word_of(shape, sizes):
    """The letters of a shape, and the number that is left."""
    word, number = "", 1
    for size in shape:
        letters, left = peaks.letters_of(size, sizes)
        word, number = word + letters, number * left
    return "".join(sorted(word)), number


def moments_of(family, kind):
    """The moments of one kind of step, as those of tools/peaks.py."""
    model = model_of(family, kind)
    run = peaks.asked(family, kind)[1].replace(devices=Sharding(data=OWN["A"], zero=3))
    log, sizes = log_of(model, kind[0], run), sizes_of(model, family, kind)
    flat = sums(model, sizes)

    def bytes_of(record, sizes):
        if len(record.shape) == 1 and record.bytes and record.shape[0] in flat:
            width = SIZES[record.dtype]
            return {word: width * n for word, n in flat[record.shape[0]].items()}
        return peaks.bytes_of(record, sizes)

    changes = peaks.changes_of(log, sizes, bytes_of)
    kinds = [int(each) for each in peaks.ORDERS[kind[9]]]
    letters = peaks.letters(model, run) | fsdp_tables.letters_of(model, run)
    return layer_peaks.moments_of(log, kinds, changes, letters)


def kinds_of(family, precision):
    """The kinds of steps under FSDP2."""
    for kind in peaks.kinds_of(family, precision):
        eager = kind[1] == "eager" and not record_of(family).eager_alone
        if kind[LOSS] == "plain" and kind[HEADS] != "single" and not eager:
            yield kind


def text_of(family, precision):
    """The text of one file."""
    made = {".".join(kind): moments_of(family, kind) for kind in kinds_of(family, precision)}
    return json.dumps(products.interned(made, TERMS + SHARDED), separators=(",", ":"))


def path_of(family, precision):
    return peaks.TARGET / f"{file_of(f'{family}.{precision}')}.json"


TABLES = Tables(__file__, "sharded.key", files, path_of, text_of)
key, stands = TABLES.key, TABLES.stands

if __name__ == "__main__":
    TABLES.main()
