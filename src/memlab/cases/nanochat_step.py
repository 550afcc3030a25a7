"""What a step of NanoChat keeps: a closed form for the plain program, two cuts for the compiled.

Letters     B batch, T tokens, R = B · T rows, D model width, N heads, V vocabulary, L layers
"""

from functools import cache

import torch
from torch import nn

from ..lab.blocks import torchao
from ..units import whole
from .nanochat import D26, GATE_INPUTS, NanoChat, Shape
from .partition import Crossing, cut

RANDOM_STATE = 24


def to_fp8(net: nn.Module) -> nn.Module:
    """torchao's Float8Linear for each linear layer whose sides are multiples of 16.

    Source      nanochat at 2c062aa, scripts/base_train.py, with the recipe "tensorwise"
    """
    float8 = torchao("float8")

    def fits(module: nn.Module, name: str) -> bool:
        return isinstance(module, nn.Linear) and not any(n % 16 for n in module.weight.shape)

    recipe = float8.Float8LinearConfig.from_recipe_name("tensorwise")
    return float8.convert_to_float8_training(net, config=recipe, module_filter_fn=fits)


def on_meta(shape: Shape = D26, *, fp8: bool = False) -> NanoChat:
    """The model without memory, attention by a flash kernel; `fp8`: its linear layers torchao's."""
    with torch.device("meta"):
        net = NanoChat(shape, flash=True)
    if fp8:
        to_fp8(net)
    return net


def layer(shape: Shape, batch: int, *, values: bool) -> int:
    """Bytes that one layer keeps for backward, uncompiled, with CUDA's kernels.

    Formula     2 · 19 · R·D + 4 · (2 · R + 3 · R·N) + 2 · 12 · D²;
                with a table of values 2 · (R·D + 2 · R·N + 32 · N) more; and 24 in either case
    Shapes      [R, D] in bf16: the stream three times (before its lambda, before either norm), two
                normed copies, q and k before their norms, q, k, v and the output of attention,
                eight for relu and its square; fp32: rstd of four norms, logsumexp; a bf16 copy of
                each weight; 24: the random state of the flash kernel, which dropout would need
    Source      memlab.cases.nanochat, counted by memlab.measure.Saved
    """
    R, D, N = whole("batch", batch) * shape.tokens, shape.width, shape.heads
    kept = 2 * 19 * R * D + 4 * (2 * R + 3 * R * N) + 2 * 12 * D * D + RANDOM_STATE
    return kept + (2 * (R * D + 2 * R * N + GATE_INPUTS * N) if values else 0)


def kept(shape: Shape, batch: int) -> dict[str, int]:
    """Bytes kept by all layers and the ends, and by the softcap and the loss after them.

    Formula     the layers; 3 · R·D and the head's copy V·D in bf16, rstd of two norms; 2 · 4 · R·V,
                tanh and log-softmax in fp32, and 4 for the weight of the loss
    Leaves out  the ids
    """
    R, D, V = whole("batch", batch) * shape.tokens, shape.width, shape.vocab
    layers = sum(layer(shape, batch, values=shape.has_values(i)) for i in range(shape.depth))
    return {"activations": layers + 2 * (3 * R * D + V * D) + 8 * R, "logits": 2 * 4 * R * V + 4}


def logits_peak(shape: Shape, batch: int) -> int:
    """Bytes of logits at the highest moment of the plain program: early in backward.

    Formula     4 · 4 · R·V: tanh and log-softmax, kept, and the gradients of two more in fp32
    """
    return 4 * 4 * whole("batch", batch) * shape.tokens * shape.vocab


def pair_of_cuts(batch: int, fp8: bool = False, shape: Shape = D26) -> tuple[Crossing, Crossing]:
    """The first two and the first four layers of a compiled step, cut in forward and backward."""
    return _pair_of_cuts(batch, fp8, shape)  # a cache takes f(16) and f(16, False) for two calls


@cache
def _pair_of_cuts(batch: int, fp8: bool, shape: Shape) -> tuple[Crossing, Crossing]:
    ids = torch.zeros(batch, shape.tokens, dtype=torch.long)
    few = (
        Shape(n, shape.width, shape.heads, shape.vocab, shape.tokens, shape.windows) for n in (2, 4)
    )
    two, four = (cut(on_meta(one, fp8=fp8), ids, ids) for one in few)
    return two, four


def compiled(batch: int, *, fp8: bool = False, shape: Shape = D26, dtype: str = "") -> int:
    """Bytes that the compiled step keeps for backward; `dtype`: of those, in one format.

    Formula     k(2) + (L - 2) / 2 · (k(4) - k(2)), for layers come in pairs: every other one has
                a table of values
    Raises      ValueError for an odd depth
    """
    if shape.depth % 2:
        raise ValueError(f"depth={shape.depth} is odd; layers are counted in pairs")
    two, four = (
        one.of_dtype(dtype) if dtype else one.bytes for one in pair_of_cuts(batch, fp8, shape)
    )
    return two + (shape.depth - 2) // 2 * (four - two)
