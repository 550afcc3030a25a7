"""What sends tokens to experts: the best of each row, rows in another order, grouped products.

A long file, because each of its operations is one of transformers' lines, forward and backward.
"""

from __future__ import annotations

from ..core.graph import Grads, Tensor
from ..core.storage_log import Dim
from .autocast import Autocast

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any


class Routing(Autocast):
    """Operators of a mixture of experts. None of their sizes depends on which expert is chosen.

    backend     cpu or cuda: autocast's lists differ
    Source      torch: tools/autograd/derivatives.yaml, FunctionsManual.cpp, autocast_mode.h
    """

    backend: str

    def topk(self, x: Tensor, k: Dim) -> tuple[Tensor, Tensor]:
        """The k largest of each row, and where they stand: x [rows, X] gives two of [rows, k]."""
        shape, dtype = x.shape, x.dtype
        values = self.new("topk", (*shape[:-1], k), dtype)
        places = self.new("topk", (*shape[:-1], k), "int64")

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            zeros = self.new("new_zeros", shape, grads[0].dtype)
            made = self.new("scatter", shape, grads[0].dtype)
            del zeros
            return [made]

        self.apply("topk", [x], [values], run, [("indices", places)])
        return values, places

    def total(self, x: Tensor) -> Tensor:
        """The sum of each row, which stays a dimension of 1; its gradient is a view.

        On CUDA autocast sums in fp32.
        """
        wide = "fp32" if self.autocast and self.backend == "cuda" else x.dtype
        out = self.new("sum", (*x.shape[:-1], 1), wide)
        shape, dtype = x.shape, x.dtype

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            (g,) = grads
            narrow = g if g.dtype == dtype else self.new("to", g.shape, dtype)
            return [self.view(narrow, *shape)]

        self.apply("sum", [x], [out], run)
        return out

    def column_sums(self, x: Tensor) -> Tensor:
        """The sum over all rows, x [rows, X] gives [X]; its gradient is a view."""
        out = self.new("sum", x.shape[1:], x.dtype)
        shape = x.shape

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            return [self.view(grads[0], *shape)]

        self.apply("sum", [x], [out], run)
        return out

    def divide_in_place(self, x: Tensor, by: Tensor) -> Tensor:
        """x /= by, a number for each row: what x was is copied for the gradient of `by`."""
        out = Tensor(x.shape, x.dtype, x.storage, x.node, x.slot)
        shape, dtype = x.shape, x.dtype
        if not self.grad or by.node is None:
            return out
        before = self.new("clone", shape, dtype)
        wide = by.dtype

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            quotient = self.new("div", shape, wide)
            twice = self.new("div", shape, wide)
            negative = self.new("neg", shape, dtype)
            of_divisor = self.new("mul", shape, wide)
            del quotient, twice, negative
            return [self.new("div", shape, wide), of_divisor]

        self.apply("div_", [x, by], [out], run, [("other", by), ("self", before)])
        return out

    def rows_of(self, x: Tensor, places: Tensor) -> Tensor:
        """x[places]: the rows that stand there; gradients are added up in a copy of zeros."""
        out = self.new("index", (*places.shape, *x.shape[1:]), x.dtype)
        shape = x.shape

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            zeros = self.new("new_zeros", shape, grads[0].dtype)
            made = self.new("index_put", shape, grads[0].dtype)
            del zeros
            return [made]

        self.apply("index", [x], [out], run, [("indices", places)])
        return out

    def largest(self, x: Tensor) -> Tensor:
        """The largest of each row, which stays a dimension of 1; only a graph holds where it is."""
        shape = x.shape
        values = self.new("max", (*shape[:-1], 1), x.dtype)
        places = self.new("max", (*shape[:-1], 1), "int64")

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            zeros = self.new("new_zeros", shape, grads[0].dtype)
            made = self.new("scatter", shape, grads[0].dtype)
            del zeros
            return [made]

        self.apply("max", [x], [values], run, [("indices", places)])
        return values

    def expanded(self, x: Tensor, *shape: int) -> Tensor:
        """One value of x for many, without memory; its gradient is a sum."""
        out = Tensor(shape, x.dtype, x.storage)
        before = x.shape
        self.apply(
            "expand",
            [x],
            [out],
            lambda grads, saved, needs: [self.new("sum", before, grads[0].dtype)],
        )
        return out

    def add_in_place(self, x: Tensor, more: Tensor) -> Tensor:
        """x += more, of one shape."""
        out = Tensor(x.shape, x.dtype, x.storage)
        self.apply("add_", [x, more], [out], lambda grads, saved, needs: [grads[0], grads[0]])
        return out

    def clamp(self, x: Tensor, *, both: bool = False) -> Tensor:
        """x, but not above a number; both: and not below another."""
        out = self.new("clamp", x.shape, x.dtype)
        self.apply("clamp", [x], [out], self._inside(both), [("self", x)])
        return out

    def clamp_in_place(self, x: Tensor) -> Tensor:
        """x.clamp_(-c, c): what x was is copied for its gradient."""
        out = Tensor(x.shape, x.dtype, x.storage, x.node, x.slot)
        if self.grad and x.node is not None:
            before = self.new("clone", x.shape, x.dtype)
            self.apply("clamp_", [x], [out], self._inside(True), [("self", before)])
        return out

    def _inside(self, both: bool) -> Any:
        """The gradient of what lies between the numbers; zero of what does not."""

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            (g,) = grads
            zero = self.new("scalar_tensor", (), g.dtype)
            inside = [self.new(op, g.shape, "bool") for op in (("ge", "le") if both else ("le",))]
            made = self.new("where", g.shape, g.dtype)
            del zero, inside
            return [made]

        return run

    def masked(self, x: Tensor, mask: Tensor) -> Tensor:
        """x, but a number where the mask says so; the gradient there is zero."""
        out = self.new("masked_fill", x.shape, x.dtype)

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            return [self.new("masked_fill", grads[0].shape, grads[0].dtype)]

        self.apply("masked_fill", [x], [out], run, [("mask", mask)])
        return out

    def masked_in_place(self, x: Tensor, mask: Tensor) -> Tensor:
        """x.masked_fill_(mask, 0): its gradient is a new tensor."""
        out = Tensor(x.shape, x.dtype, x.storage, x.node, x.slot)

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            return [self.new("masked_fill", grads[0].shape, grads[0].dtype)]

        self.apply("masked_fill_", [x], [out], run, [("mask", mask)])
        return out

    def gather(self, x: Tensor, places: Tensor) -> Tensor:
        """Of each row the values that stand there: x [rows, X], places [rows, k]."""
        out = self.new("gather", places.shape, x.dtype)
        shape = x.shape

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            zeros = self.new("new_zeros", shape, grads[0].dtype)
            made = self.new("scatter_add", shape, grads[0].dtype)
            del zeros
            return [made]

        self.apply("gather", [x], [out], run, [("index", places)])
        return out

    def scattered(self, x: Tensor, places: Tensor, width: Dim) -> Tensor:
        """full_like(…).scatter_(1, places, x): rows of a number with x where the places say."""
        out = self.new("full_like", (*x.shape[:-1], width), x.dtype)
        shape = x.shape

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            return [self.new("gather", shape, grads[0].dtype)]

        self.apply("scatter_", [x], [out], run, [("index", places)])
        return out

    def for_each(self, x: Tensor, rows: Dim) -> Tensor:
        """x.repeat(X, 1): all rows once for each expert; the gradient is a sum."""
        out = self.new("repeat", (rows, x.shape[1]), x.dtype)
        shape = x.shape

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            if rows == shape[0]:
                return [self.view(grads[0], *shape)]
            return [self.new("sum", shape, grads[0].dtype)]

        self.apply("repeat", [x], [out], run)
        return out

    def bmm(self, a: Tensor, b: Tensor) -> Tensor:
        """torch.bmm of [X, rows, inputs] and [X, inputs, outputs]."""
        right, left = self.cast(b), self.cast(a)
        out = self.new("bmm", (*a.shape[:2], b.shape[2]), left.dtype)
        shapes = (a.shape, b.shape)

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            made: Grads = [None, None]
            for i in (1, 0):
                if needs[i]:
                    made[i] = self.new("bmm", shapes[i], grads[0].dtype)
            return made

        kept = [("self", left) if right.node else None, ("mat2", right) if left.node else None]
        self.apply(f"bmm {b.record.op}", [left, right], [out], run, kept)
        return out

    def grouped_mm(self, x: Tensor, weight: Tensor, offsets: Tensor, outputs: int) -> Tensor:
        """Each expert's rows by its own matrix, x [rows, inputs], weight [X, ...].

        Autocast does not know it: the product is in the format of the weight.
        """
        rows = self.to(x, weight.dtype)
        out = self.new("grouped_mm", (x.shape[0], outputs), weight.dtype)
        shapes = (rows.shape, weight.shape)

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            made: Grads = [None, None]
            for i in (1, 0):
                if needs[i]:
                    made[i] = self.new("grouped_mm", shapes[i], grads[0].dtype)
            return made

        kept = [("self", rows) if weight.node else None, ("mat2", weight) if rows.node else None]
        self.apply(
            f"grouped_mm {weight.record.op}", [rows, weight], [out], run, [*kept, ("offs", offsets)]
        )
        return out

    def sum_of_parts(self, x: Tensor, rows: int) -> Tensor:
        """Rows of which as many as a token has experts are added up: [rows·k, D] gives [rows, D].

        The gradient is repeated for each, and then written out as rows, if there are two of both.
        """
        out = self.new("sum", (rows, x.shape[1]), x.dtype)
        shape = x.shape

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            if rows == 1 or rows == shape[0]:
                return [self.view(grads[0], *shape)]
            return [self.new("clone", shape, grads[0].dtype)]

        self.apply("sum", [x], [out], run)
        return out
