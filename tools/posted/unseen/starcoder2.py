"""StarCoder2's model cards: `model.get_memory_footprint()`, the bytes of parameters and buffers.

Recipe      as loaded: fp32, bf16, or the linear layers of the blocks in int8 or 4 bits by
            bitsandbytes and all else in fp16. Scales are attributes, no parameters, and not counted
Tables      before its release, 4.39 of transformers had angles of 16,384 positions in each layer,
            in the format of the weights (fp16 where they are packed)
"""

from typing import Any

from memlab import Model, Recipe, Run

from ..described import Described

POSITIONS = 16384
FORMATS = {
    "fp32": (Recipe(weights="fp32"), 4),
    "bf16": (Recipe(weights="bf16"), 2),
    "int8": (Recipe(weights="int8", other="fp16", head="fp16"), 2),
    "4bit": (Recipe(weights="int4", other="fp16", head="fp16"), 2),
}


def describe(reading):
    """See the module."""
    model = shape(reading.what["model"])
    recipe, value = FORMATS[reading.what["precision"]]
    tables = model.layers * 2 * value * POSITIONS * model.head_dim
    return Described(model, recipe, Run(), "weights", more=(("tables", tables),))


def shape(name):
    """The model of a card."""
    small = Model.preset("starcoder2-3b")
    if name == "StarCoder2-3b":
        return small
    told: dict[str, Any] = {
        "layers": 40,
        "d_model": 6144,
        "d_ff": 24576,
        "heads": 48,
        "kv_heads": 4,
    }
    return Model(family="starcoder2", name=name, vocab=49152, tied=False, **told)
