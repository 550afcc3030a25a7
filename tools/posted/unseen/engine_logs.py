"""What engines print when they start: weights of a rank, and a cache for so many tokens.

Weights     those that an engine keeps on a rank, with its table of angles (memlab.engines)
Cache       keys and values in 16 bits, of the heads that tensor parallelism leaves a rank
Refused     FP8 checkpoints, where it is not stated which of their layers stay in bf16
"""

from memlab import Model, Recipe, Run
from memlab.engines.kept import kept_weights
from memlab.terms.engine_pool import rank_heads
from memlab.terms.kv_cache import kv_cache

from ..described import Described, Refused


def describe(reading):
    """See the module.

    Raises      Refused
    """
    what = reading.what
    model, ranks = Model.preset(what["model"].lower()), what["tp"]
    if what["part"] == "weights":
        if what["precision"] == "fp8":
            raise Refused("which layers of an FP8 checkpoint stay in bf16 is not stated")
        size = kept_weights(model, ranks, "bf16")
    else:
        size = kv_cache(
            model.layers,
            kv_heads=rank_heads(model.kv_heads, ranks=ranks),
            head_dim=model.head_dim,
            batch=1,
            tokens=what["tokens"],
        )
        size //= 1 if what["part"] == "cache" else 2
    return Described(model, Recipe.named("bf16"), Run(), "nothing", more=((what["part"], size),))
