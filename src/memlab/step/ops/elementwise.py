"""Operators that take each value by itself, and sums and means."""

from __future__ import annotations

from ..core.engine import Engine
from ..core.graph import Grads, Tensor
from ..core.storage_log import count


class Elementwise(Engine):
    """Sums, products, powers, casts, activation functions."""

    def add(self, a: Tensor, b: Tensor) -> Tensor:
        out = self.new("add", _broadcasted(a, b), _promoted(a, b))

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            return [grads[0], grads[0]]

        self.apply("add", [a, b], [out], run, broadcast=True)
        return out

    def sub(self, a: Tensor, b: Tensor) -> Tensor:
        out = self.new("sub", _broadcasted(a, b), _promoted(a, b))

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            (g,) = grads
            return [g, self.new("neg", g.shape, g.dtype) if needs[1] else None]

        self.apply("sub", [a, b], [out], run, broadcast=True)
        return out

    def shift(self, x: Tensor) -> Tensor:
        """x plus a number."""
        out = self.new("add", x.shape, x.dtype)
        self.apply("add", [x], [out], lambda grads, saved, needs: [grads[0]])
        return out

    def mul(self, a: Tensor, b: Tensor) -> Tensor:
        out = self.new("mul", _broadcasted(a, b), _promoted(a, b))
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

    def subtract(self, a: Tensor, b: Tensor) -> Tensor:
        out = self.new("sub", _broadcasted(a, b), _promoted(a, b))

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            (g,) = grads
            return [g, self.new("neg", g.shape, g.dtype) if needs[1] else None]

        self.apply("sub", [a, b], [out], run, broadcast=True)
        return out

    def scale(self, x: Tensor, op: str = "mul") -> Tensor:
        """x times a number, or divided by one."""
        out = self.new(op, x.shape, x.dtype)

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            return [self.new(op, grads[0].shape, grads[0].dtype)]

        self.apply(op, [x], [out], run)
        return out

    def over(self, x: Tensor, number: Tensor) -> Tensor:
        """x divided by a number that is a tensor and is kept for backward."""
        out = self.new("div", x.shape, x.dtype)

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            return [self.new("div", grads[0].shape, grads[0].dtype)]

        self.apply("div", [x], [out], run, [("other", number)])
        return out

    def exp(self, x: Tensor) -> Tensor:
        """Keeps its result."""
        out = self.new("exp", x.shape, x.dtype)

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            return [self.new("mul", grads[0].shape, grads[0].dtype)]

        self.apply("exp", [x], [out], run, [("result", out)])
        return out

    def total_of(self, x: Tensor) -> Tensor:
        """The sum of all values, a scalar; its gradient is a view."""
        out = self.new("sum", (), x.dtype)
        shape = x.shape

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            return [self.view(grads[0], *shape)]

        self.apply("sum", [x], [out], run)
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
        """silu and gelu keep their input, relu and sigmoid their result."""
        out = self.new(op, x.shape, x.dtype)

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            return [self.new(f"{op}_backward", grads[0].shape, grads[0].dtype)]

        self.apply(
            op, [x], [out], run, [("result", out) if op in ("relu", "sigmoid") else ("self", x)]
        )
        return out

    def tanh(self, x: Tensor) -> Tensor:
        """Keeps its result."""
        out = self.new("tanh", x.shape, x.dtype)

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            return [self.new("tanh_backward", grads[0].shape, grads[0].dtype)]

        self.apply("tanh", [x], [out], run, [("result", out)])
        return out

    def softmax(self, x: Tensor) -> Tensor:
        out = self.new("softmax", x.shape, x.dtype)

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            return [self.new("softmax_backward", grads[0].shape, grads[0].dtype)]

        self.apply("softmax", [x], [out], run, [("result", out)])
        return out


def _wider(a: str, b: str) -> str:
    return a if a == b or a == "fp32" else "fp32" if b == "fp32" else a


def _promoted(a: Tensor, b: Tensor) -> str:
    return _wider(a.dtype, b.dtype)


def _broadcasted(a: Tensor, b: Tensor) -> tuple[int, ...]:
    return max(a.shape, b.shape, key=lambda shape: (count(shape), len(shape)))
