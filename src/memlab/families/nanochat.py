"""nanochat: https://github.com/karpathy/nanochat/blob/master/nanochat/gpt.py"""

from . import FLAGS, Family

FAMILY = Family(
    flags=FLAGS
    | {
        "gated": False,
        "norm_affine": False,
        "qk_norm": True,
        "value_embeddings": True,
        "residual_scalars": True,
    },
    activation=("", ()),
)
