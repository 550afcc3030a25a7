"""Torch's operators on the CPU, as far as memory goes: what they allocate, keep and free.

Each method is one operator: it makes its output, says what autograd keeps of it, and describes its
backward in the same words. Temporaries are Python variables of the function that makes them.
"""

from __future__ import annotations

from collections.abc import Sequence

from .engine import Dim, Engine, Frame, Tensor, count
from .kernels import FLASH_WIDEST

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    Grads = list[Any]
else:
    Grads = list


class Ops(Engine):
    """Operators in the precision of the inputs, or under autocast.

    autocast    None, or the narrow dtype of torch.autocast(device, dtype): linear layers and
                attention compute in it; a weight is cast once and its copy kept to the end
    backend     cpu or cuda: their kernels for attention and norms differ in what they keep
    Source      torch 2.13: tools/autograd/derivatives.yaml, aten/src/ATen/autocast_mode.h
    """

    def __init__(
        self, autocast: str | None = None, *, backend: str = "cpu", in_place: bool = True
    ) -> None:
        super().__init__(in_place=in_place)
        self.backend = backend
        self.autocast = autocast
        self._casts: dict[int, tuple[int | None, Tensor]] = {}  # by weight: its layer, its copy

    # -- elementwise ------------------------------------------------------------------------

    def add(self, a: Tensor, b: Tensor) -> Tensor:
        out = self.new("add", _broadcast(a, b), _promote(a, b))

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            return [grads[0], grads[0]]

        self.apply("add", [a, b], [out], run, broadcast=True)
        return out

    def shift(self, x: Tensor) -> Tensor:
        """x plus a number."""
        out = self.new("add", x.shape, x.dtype)
        self.apply("add", [x], [out], lambda grads, saved, needs: [grads[0]])
        return out

    def mul(self, a: Tensor, b: Tensor) -> Tensor:
        out = self.new("mul", _broadcast(a, b), _promote(a, b))
        kept = [("other", b) if a.node else None, ("self", a) if b.node else None]
        types = (b.dtype, a.dtype)

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            (g,) = grads
            return [
                self.new("mul", g.shape, _wider(g.dtype, types[i])) if needs[i] else None
                for i in (0, 1)
            ]

        self.apply("mul", [a, b], [out], run, kept, broadcast=True)
        return out

    def scale(self, x: Tensor, op: str = "mul") -> Tensor:
        """x times a number, or divided by one."""
        out = self.new(op, x.shape, x.dtype)

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            return [self.new(op, grads[0].shape, grads[0].dtype)]

        self.apply(op, [x], [out], run)
        return out

    def neg(self, x: Tensor) -> Tensor:
        out = self.new("neg", x.shape, x.dtype)

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            return [self.new("neg", grads[0].shape, grads[0].dtype)]

        self.apply("neg", [x], [out], run)
        return out

    def to(self, x: Tensor, dtype: str) -> Tensor:
        """x itself if it has that dtype, else a copy."""
        if x.dtype == dtype:
            return x
        out = self.new("to", x.shape, dtype)
        before = x.dtype

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            return [self.new("to", grads[0].shape, before)]

        self.apply("to", [x], [out], run)
        return out

    def copy(self, x: Tensor, *shape: int) -> Tensor:
        """A contiguous copy, of the same or (expanded before) a larger shape."""
        out = self.new("clone", shape or x.shape, x.dtype)
        self.apply("clone", [x], [out], lambda grads, saved, needs: [grads[0]])
        return out

    def square(self, x: Tensor) -> Tensor:
        out = self.new("pow", x.shape, x.dtype)

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            (g,) = grads
            power = self.new("pow", g.shape, g.dtype)
            double = self.new("mul", power.shape, power.dtype)
            return [self.new("mul", double.shape, double.dtype)]

        self.apply("pow", [x], [out], run, [("self", x)])
        return out

    def mean(self, x: Tensor) -> Tensor:
        """Over the last dimension, which stays as 1."""
        out = self.new("mean", (*x.shape[:-1], 1), x.dtype)
        shape = x.shape

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            return [self.new("div", shape, grads[0].dtype)]

        self.apply("mean", [x], [out], run)
        return out

    def rsqrt(self, x: Tensor) -> Tensor:
        out = self.new("rsqrt", x.shape, x.dtype)

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            (g,) = grads
            power = self.new("pow", g.shape, g.dtype)
            half = self.new("mul", g.shape, g.dtype)
            return [self.new("mul", power.shape, half.dtype)]

        self.apply("rsqrt", [x], [out], run, [("result", out)])
        return out

    def activation(self, x: Tensor, op: str) -> Tensor:
        """silu, gelu or relu: silu and gelu keep their input, relu its result."""
        out = self.new(op, x.shape, x.dtype)

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            return [self.new(f"{op}_backward", grads[0].shape, grads[0].dtype)]

        self.apply(op, [x], [out], run, [("result", out) if op == "relu" else ("self", x)])
        return out

    # -- shapes -----------------------------------------------------------------------------

    def halves(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """x.chunk(2, -1): two views, whose gradients are joined in one copy."""
        shape = (*x.shape[:-1], x.shape[-1] // 2)
        outs = (Tensor(shape, x.dtype, x.storage), Tensor(shape, x.dtype, x.storage))
        self.apply("split", [x], outs, self._joined("cat", x))
        return outs

    def unbind(self, x: Tensor, parts: int, *shape: int) -> tuple[Tensor, ...]:
        """Views of one shape, whose gradients are stacked in one copy."""
        outs = tuple(Tensor(shape, x.dtype, x.storage) for _ in range(parts))
        self.apply("unbind", [x], outs, self._joined("stack", x))
        return outs

    def _joined(self, op: str, x: Tensor) -> Any:
        shape, dtype = x.shape, x.dtype
        return lambda grads, saved, needs: [self.new(op, shape, dtype)]

    def part_of(self, x: Tensor, *shape: int) -> Tensor:
        """x[..., a:b]: a view, whose gradient is written into a full copy of zeros."""
        out = Tensor(shape, x.dtype, x.storage)
        self.apply("slice", [x], [out], self._joined("slice_backward", x))
        return out

    def cat(self, parts: Sequence[Tensor]) -> Tensor:
        """Joined along the last dimension; the gradients are views."""
        last = sum(part.shape[-1] for part in parts)
        out = self.new("cat", (*parts[0].shape[:-1], last), parts[0].dtype)
        shapes = [part.shape for part in parts]

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            return [self.view(grads[0], *shape) for shape in shapes]

        self.apply("cat", parts, [out], run)
        return out

    # -- layers -----------------------------------------------------------------------------

    def embedding(self, table: Tensor, ids: Tensor) -> Tensor:
        out = self.new("embedding", (*ids.shape, table.shape[-1]), table.dtype)
        shape = table.shape

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            return [self.new("embedding_backward", shape, grads[0].dtype)]

        self.apply("embedding", [table], [out], run, [("indices", ids)])
        return out

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """Shapes: x [..., inputs], weight [outputs, inputs]; one matrix product, bias included."""
        # The arguments keep their names: what the caller passed lives until the call returns.
        b = self._cast(bias) if bias else None
        w, a = self._cast(weight), self._cast(x)
        out = self.new("addmm" if b else "mm", (*a.shape[:-1], w.shape[0]), a.dtype)
        shapes = [a.shape, w.shape]
        order = (0, 1) if b else (1, 0)
        flat = self._flat(a) if b else a

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            made: Grads = [None, None, grads[0]]  # the bias's is summed afterwards
            for i in order:
                if needs[i]:
                    grad = self.new("mm", shapes[i], grads[0].dtype)
                    made[i] = self.view(grad, *shapes[i])  # of rows, or of the transpose
                    del grad
            return made

        kept = [("input", a) if w.node else None, ("weight", w) if a.node else None]
        self.apply(f"linear {weight.record.op}", [flat, w, b], [out], run, kept)
        return out

    def _flat(self, x: Tensor) -> Tensor:
        """x as rows, a node of its own: its gradient waits until the weight's has been stored.

        Source      _flatten_nd_linear in aten/src/ATen/native/Linear.cpp; without a bias the
                    rows are made after the weight is transposed, and nothing waits
        """
        flat = Tensor(x.shape, x.dtype, x.storage)
        self.apply("view", [x], [flat], lambda grads, saved, needs: [grads[0]])
        return flat

    def _cast(self, x: Tensor) -> Tensor:
        """Into autocast's dtype; a trained fp32 weight once for the whole forward pass."""
        if self.autocast is None:
            return x
        leaf = x.node is not None and x.node.parameter is not None
        if leaf and id(x) in self._casts:
            return self._casts[id(x)][1]
        made = self.to(x, self.autocast)
        if leaf and made is not x:
            self._casts[id(x)] = (self._layer, made)
        return made

    def end_autocast(self) -> None:
        """Leave the autocast block: its weight copies stay only where autograd keeps them."""
        first = len(self.log.events)
        for key in [key for key, (layer, _) in self._casts.items() if layer == 1]:
            del self._casts[key]
        self.log.repeat(first, len(self.log.events), self._between)
        self._casts.clear()

    def _compute_again(self, frame: Frame) -> None:
        super()._compute_again(frame)
        self._casts.clear()  # it was an autocast block of its own

    def rms_norm(self, x: Tensor, weight: Tensor) -> Tensor:
        """CUDA's kernel behind torch.nn.RMSNorm, in fp32 under autocast; the CPU has none."""
        wide = self.to(x, "fp32") if self.autocast else x
        rstd = self.new("rms_norm", (*x.shape[:-1], 1), "fp32")
        out = self.new("rms_norm", x.shape, wide.dtype)
        width = weight.shape

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            (g,) = grads
            return [
                self.new("rms_norm_backward", shape, g.dtype) if need else None
                for shape, need in zip((g.shape, width), needs, strict=True)
            ]

        kept = [("input", wide), ("weight", weight), ("rstd", rstd)]
        self.apply("rms_norm", [wide, weight], [out], run, kept)
        return out

    def layer_norm(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        rows = (*x.shape[:-1], 1)
        statistics = x.dtype if self.backend == "cpu" else "fp32"
        out = self.new("native_layer_norm", x.shape, x.dtype)
        mean = self.new("native_layer_norm", rows, statistics)
        rstd = self.new("native_layer_norm", rows, statistics)
        width = weight.shape

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            (g,) = grads
            shapes = (g.shape, width, width)
            return [
                self.new("native_layer_norm_backward", shapes[i], g.dtype) if needs[i] else None
                for i in range(3)
            ]

        kept = [("input", x), ("weight", weight), ("mean", mean), ("rstd", rstd)]
        self.apply("layer_norm", [x, weight, bias], [out], run, kept)
        return out

    def attention(self, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None = None) -> Tensor:
        """scaled_dot_product_attention in a kernel that keeps no scores.

        That is flash attention; on CUDA in fp32 or with a bias (a mask as numbers to add) the
        memory-efficient one, which pads the log-sum-exp of each head to a multiple of 32 tokens.

        Shapes      q [B, N, T, H], k and v [B, K, T, H]; returns [B, N, T, H]
        """
        value, key, query = self._cast(v), self._cast(k), self._cast(q)
        wide = query.dtype == "fp32" or query.shape[-1] > FLASH_WIDEST
        efficient = self.backend == "cuda" and (wide or bias is not None)
        op = "efficient_attention" if efficient else "flash_attention"
        out = self.new(op, query.shape, query.dtype)
        tokens = query.shape[2]
        padded = Dim("⌈T⌉", 32 * -(-tokens // 32)) if efficient else tokens
        if efficient and not self.grad:
            padded = Dim("0", 0)  # should_compute_logsumexp in attention.cpp
        lse = self.new(op, (*query.shape[:2], padded), "fp32")
        shapes = (query.shape, key.shape, value.shape)

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            return [self.new(f"{op}_backward", shape, grads[0].dtype) for shape in shapes]

        inputs = [("query", query), ("key", key), ("value", value)]
        kept = [*inputs, ("output", out), ("logsumexp", lse)]
        kept += [] if bias is None else [("attn_bias", bias)]
        if self.backend == "cuda":  # the state of its random numbers, dropout or not
            kept += [("seed", self.new(op, () if efficient else (2,), "int64"))]
            kept += [("offset", self.new(op, (), "int64"))]
        self.apply(op, [query, key, value], [out], run, kept)
        return out

    def repeat_heads(self, x: Tensor, heads: int) -> Tensor:
        """repeat_kv: x [B, K, T, H] copied so that each of N heads has its own.

        x itself if K = N, and a view of it, whose gradient is a sum, if K = 1.
        """
        shape = (x.shape[0], heads, *x.shape[2:])
        if x.shape[1] == heads:
            return x
        if x.shape[1] == 1:
            out = Tensor(shape, x.dtype, x.storage)
        else:
            out = self.new("clone", shape, x.dtype)
        self.apply("clone", [x], [out], lambda grads, saved, needs: [grads[0]])
        return out

    def folded(self, x: Tensor) -> Tensor:
        """A view whose gradient comes in an order that no view can undo: it is copied."""
        out = Tensor(x.shape, x.dtype, x.storage)

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            return [self.new("clone", grads[0].shape, grads[0].dtype)]

        self.apply("view", [x], [out], run)
        return out

    def matmul(
        self, a: Tensor, b: Tensor, last: int, *, strided: tuple[bool, bool] = (False, False)
    ) -> Tensor:
        """Batches of matrix products, a [B, N, T, inner]: returns [B, N, T, last].

        strided     whether a and b are stored as [B, T, N, ...]: their first two dimensions are
                    joined for the kernel, which takes a copy unless one of the two is 1
        """
        narrow_b, narrow_a = self._cast(b), self._cast(a)
        joins = a.shape[0] == 1 or a.shape[1] == 1
        left = self.copy(narrow_a) if strided[0] and not joins else narrow_a
        right = self.copy(narrow_b) if strided[1] and not joins else narrow_b
        out = self.new("bmm", (*a.shape[:3], last), left.dtype)
        shapes = (left.shape, right.shape)

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            made: Grads = [None, None]
            for i in (1, 0):
                if needs[i]:
                    made[i] = self.new("bmm", shapes[i], grads[0].dtype)
            return made

        kept = [("self", left) if right.node else None, ("mat2", right) if left.node else None]
        self.apply("bmm", [left, right], [out], run, kept)
        return out

    def softmax(self, x: Tensor) -> Tensor:
        out = self.new("softmax", x.shape, x.dtype)

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            return [self.new("softmax_backward", grads[0].shape, grads[0].dtype)]

        self.apply("softmax", [x], [out], run, [("result", out)])
        return out

    def cross_entropy(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Shapes: logits [rows, V], labels [rows]; the mean, a scalar."""
        logp = self.new("log_softmax", logits.shape, logits.dtype)

        def softmax_run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            return [self.new("log_softmax_backward", grads[0].shape, grads[0].dtype)]

        self.apply("log_softmax", [logits], [logp], softmax_run, [("result", logp)])
        loss = self.new("nll_loss", (), logp.dtype)
        weight = self.new("nll_loss", (), logp.dtype)
        shape, dtype = logp.shape, logp.dtype

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            return [self.new("nll_loss_backward", shape, dtype)]

        kept = [("self", logp), ("target", labels), ("total_weight", weight)]
        self.apply("nll_loss", [logp], [loss], run, kept)
        return loss


def _wider(a: str, b: str) -> str:
    return a if a == b or a == "fp32" else "fp32" if b == "fp32" else a


def _promote(a: Tensor, b: Tensor) -> str:
    return _wider(a.dtype, b.dtype)


def _broadcast(a: Tensor, b: Tensor) -> tuple[int, ...]:
    return max(a.shape, b.shape, key=lambda shape: (count(shape), len(shape)))
