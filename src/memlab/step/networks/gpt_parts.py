"""What transformers' gpt2, opt and gpt_neox share: attention, norms, dropout, positions.

Memory depends on strides: before a batched product torch merges batch and heads, and copies where
they do not follow each other. Heads cut out of a wider row are such a case, unless there is only
one head, or only one sequence.
"""

from __future__ import annotations

from ...base.frozen import replace
from ..adapters.lora import linear as linear
from ..core.graph import Grads, Parameter, Tensor
from ..core.setting import Setting
from ..ops import Ops
from .masks import causal_mask, mask_of

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

Weights = dict[str, Parameter]


def scattered(s: Setting, *, part: bool = False) -> bool:
    """Whether heads that lie side by side in a row must be copied for a batched product.

    part        they take a part of a wider row: then even those of one token are apart
    """
    return s.B > 1 and s.N > 1 and (s.T > 1 or part)


def reordered(f: Ops, x: Tensor, *shape: int, copies: bool) -> Tensor:
    """A view whose gradient, where it `copies`, is copied into the order of x."""
    if not copies:
        return f.view(x, *shape)
    out = Tensor(shape, x.dtype, x.storage)
    before, dtype = x.shape, x.dtype
    f.apply("view", [x], [out], lambda grads, saved, needs: [f.new("clone", before, dtype)])
    return out


def pieces(f: Ops, x: Tensor, count: int) -> list[Tensor]:
    """x split along its last dimension: views, whose gradients are joined in one copy."""
    shape = (*x.shape[:-1], x.shape[-1] // count)
    outs = [Tensor(shape, x.dtype, x.storage) for _ in range(count)]
    whole, dtype = x.shape, x.dtype
    f.apply("split", [x], outs, lambda grads, saved, needs: [f.new("cat", whole, dtype)])
    return outs


def merge_heads(f: Ops, x: Tensor, s: Setting) -> Tensor:
    """[B, N, T, H] in this order of memory as [B, T, N·H]: a copy, unless N or T is one."""
    return f.view(f.copy(x) if s.N > 1 and s.T > 1 else x, s.B, s.T, s.attended)


def matmul(f: Ops, a: Tensor, b: Tensor, *shape: int, copies: tuple[bool, bool]) -> Tensor:
    """torch.matmul of heads, which autocast makes narrow.

    copies      whether each factor must be copied to be one batch
    """
    second, first = f.cast(b), f.cast(a)
    return product(f, first, second, *shape, copies=copies)


def product(f: Ops, a: Tensor, b: Tensor, *shape: int, copies: tuple[bool, bool]) -> Tensor:
    """The same in the dtype of the factors; the gradient of the second one is made first."""
    left = f.copy(a) if copies[0] else a
    right = f.copy(b) if copies[1] else b
    out = f.new("bmm", shape, left.dtype)
    shapes = (a.shape, b.shape)

    def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
        made: Grads = [None, None]
        for i in (1, 0):
            if needs[i]:
                made[i] = f.new("bmm", shapes[i], grads[0].dtype)
        return made

    kept = [("self", left) if right.node else None, ("mat2", right) if left.node else None]
    f.apply("bmm", [left, right], [out], run, kept)
    return out


def weighted(
    f: Ops, s: Setting, scores: Tensor, v: Tensor, multiply: Any, *, copied: bool
) -> Tensor:
    shape = (s.B, s.N, s.T, s.values)
    y = multiply(f, scores, v, *shape, copies=(False, copied))
    return reordered(f, y, *shape, copies=scattered(s))


def repeated(f: Ops, x: Tensor, heads: int) -> Tensor:
    """Each head copied for the queries that share it: torch's repeat_interleave, if N > K."""
    if x.shape[1] == heads:
        return x
    out = f.new("clone", (x.shape[0], heads, *x.shape[2:]), x.dtype)
    f.apply("clone", [x], [out], lambda grads, saved, needs: [grads[0]])
    return out


def norm_weights(f: Ops, s: Setting, name: str) -> Weights:
    if not s.model.norm_affine:
        return {}
    return {part: f.parameter(part, (s.D,), s.dtype) for part in (name, f"{name}.bias")}


def linear_weights(f: Ops, s: Setting, name: str, rows: int, columns: int, bias: bool) -> Weights:
    """A weight as it is stored, and a bias of the width `rows`."""
    shapes = s.linear(name, rows, columns, bias)
    return {part: f.parameter(part, shape, s.dtype_of(part)) for part, shape in shapes.items()}


def layer_norm(f: Ops, x: Tensor, w: Mapping[str, Tensor], name: str) -> Tensor:
    if name in w:
        return f.layer_norm(x, w[name], w[f"{name}.bias"])
    rows = (*x.shape[:-1], 1)
    statistics = x.dtype if f.backend == "cpu" else "fp32"
    out = f.new("native_layer_norm", x.shape, x.dtype)
    mean, rstd = (f.new("native_layer_norm", rows, statistics) for _ in range(2))

    def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
        return [f.new("native_layer_norm_backward", grads[0].shape, grads[0].dtype)]

    f.apply("layer_norm", [x], [out], run, [("input", x), ("mean", mean), ("rstd", rstd)])
    return out


def own_mask(f: Ops, s: Setting, *, positions: bool) -> Tensor | None:
    """create_causal_mask: one is added to eager's scores, SDPA needs none of full rows.

    positions   whether the model gives its position ids, which are then checked for packed texts;
                without them nobody sees that a row has several, and each token sees all before it
    """
    if positions or s.texts == "padded":
        return mask_of(f, s, s.dtype, None)
    return causal_mask(f, replace(s, texts="full"), s.dtype) if s.attention == "eager" else None


def counted_positions(f: Ops, s: Setting, ids: Tensor) -> Tensor:
    """torch.arange(T) + 0; of packed texts those of the batch, which live as long as the ids."""
    if s.texts == "packed":
        return ids
    plain = f.new("arange", (s.T,), "int64")
    shifted = f.new("add", plain.shape, "int64")
    return shifted
