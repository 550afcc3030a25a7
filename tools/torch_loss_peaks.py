"""The highest moments of steps whose loss is torch's own in chunks, for the page's calculator.

    python tools/torch_loss_peaks.py             write every file, unless they stand
    python tools/torch_loss_peaks.py FAMILY ...  write those of some, and leave the key alone

What tools/peaks.py and tools/adapter_peaks.py do for other losses. How many rows a chunk has is
told by the sizes, and so is how many chunks there are; from the second full one on each is like the
one before, and of fewer the page gives no peak. It gives none either where the vocabulary is
smaller than the model's width, so that here it is the larger one.
"""

import json

import adapter_peaks
import layer_peaks
import peaks
from peaks_seal import Tables
from products import interned

from memlab.adapters import Lora
from memlab.families import record_of, tabled
from memlab.page.adapter_tables import kind_of
from memlab.page.adapter_tables import letters_of as adapted_letters
from memlab.page.adapter_tables import table_of as adapted_table
from memlab.page.torch_loss_tables import PRECISIONS, TORCHS, file_of
from memlab.step.simulate import log_of

LOSS = 3  # of the parts of a kind's name
CHUNKED = "chunked"
FAMILIES = tuple(f for f in tabled() if CHUNKED in record_of(f).counted("losses", peaks.LOSSES))


def files():
    """What there is a file of: family, precision, format of the base, which layers.

    None for the last two: all weights are trained.
    """
    for family in FAMILIES:
        for precision in PRECISIONS:
            yield family, precision, None, None
    for each in adapter_peaks.files():
        if each[0] in FAMILIES and each[1] in PRECISIONS:
            yield each


def moments_of(family, kind, base, which):
    """The moments of one kind of step, as those of tools/peaks.py."""
    inner = (*kind[:LOSS], CHUNKED, *kind[LOSS + 1 :])
    model, run = adapter_peaks.model_of(family, inner, base), peaks.asked(family, inner)[1]
    model = model.replace(vocab=prime_above(2 * model.d_model), name=model.name)
    sizes = adapter_peaks.sizes_of(family, inner, base) if which else peaks.sizes_of(family, inner)
    run = run.replace(loss=TORCHS)
    if which:
        lora = Lora(adapter_peaks.RANK, adapter_peaks.targets_of(model, which), base)
        run = run.replace(lora=lora)
    log = log_of(model, kind[0], run)
    changes = peaks.changes_of(log, sizes | {"V": model.vocab})
    kinds = [int(each) for each in peaks.ORDERS[kind[-2]]]
    return layer_peaks.moments_of(log, kinds, changes, adapted_letters(model, run))


def prime_above(least):
    """The first prime number above another number."""
    while True:
        least += 1
        if all(least % factor for factor in range(2, int(least**0.5) + 1)):
            return least


def kinds_of(family, precision, which):
    """The kinds of steps: those that another loss in chunks has."""
    made = adapter_peaks.kinds_of(family, precision) if which else peaks.kinds_of(family, precision)
    for kind in made:
        if kind[LOSS] == CHUNKED:
            yield (*kind[:LOSS], TORCHS, *kind[LOSS + 1 :])


def text_of(family, precision, base, which):
    """The text of one file."""
    made = {}
    for kind in kinds_of(family, precision, which):
        name = ".".join(kind)
        made[kind_of(name) if which else name] = moments_of(family, kind, base, which)
    return json.dumps(interned(made), separators=(",", ":"))


def path_of(family, precision, base, which):
    plain = f"{family}.{precision}"
    name = adapted_table(family, precision, base, which) if which else plain
    return peaks.TARGET / f"{file_of(name)}.json"


TABLES = Tables(__file__, "torch.key", files, path_of, text_of)
key, stands = TABLES.key, TABLES.stands

if __name__ == "__main__":
    TABLES.main()
