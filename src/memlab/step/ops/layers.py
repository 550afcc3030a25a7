"""Layers: linear, embedding, norms."""

from __future__ import annotations

from ..core.graph import Grads, Tensor
from .autocast import Autocast


class Layers(Autocast):
    """Matrix products with a weight, table look-ups, norms.

    backend     cpu or cuda: norms differ in what they keep
    """

    backend: str

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
        b = self.cast(bias) if bias else None
        w, a = self.cast(weight), self.cast(x)
        out = self.new("addmm" if b else "mm", (*a.shape[:-1], w.shape[0]), a.dtype)
        shapes = [(), a.shape, w.shape]
        order = (1, 2) if b else (2, 1)
        flat = self._flat(a) if b and len(a.shape) > 2 else a

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            made: Grads = [grads[0], None, None]  # the bias comes first; it is summed afterwards
            for i in order:
                if needs[i]:
                    grad = self.new("mm", shapes[i], grads[0].dtype)
                    made[i] = self.view(grad, *shapes[i])  # of rows, or of the transpose
                    del grad
            return made

        kept = [("input", a) if w.node else None, ("weight", w) if a.node else None]
        self.apply(f"linear {weight.record.op}", [b, flat, w], [out], run, kept)
        return out

    def _flat(self, x: Tensor) -> Tensor:
        """x as rows, a node of its own: its gradient waits until the weight's has been stored.

        Source      _flatten_nd_linear in aten/src/ATen/native/Linear.cpp; without a bias the
                    rows are made after the weight is transposed, and nothing waits
        """
        flat = Tensor(x.shape, x.dtype, x.storage)
        self.apply("view", [x], [flat], lambda grads, saved, needs: [grads[0]])
        return flat

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
