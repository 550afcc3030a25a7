"""Views of a tensor and tensors joined: what their gradients cost."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.graph import Grads, Tensor
from ..core.storage_log import SIZES
from .elementwise import Elementwise

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from ..core.graph import Backward


class Shapes(Elementwise):
    """Parts of a tensor, parts joined, heads repeated."""

    backend: str

    def halves(self, x: Tensor, width: int | None = None) -> tuple[Tensor, Tensor]:
        """x.chunk(2, -1): two views, whose gradients are joined in one copy.

        width       of one half, where a letter stands for it
        """
        shape = (*x.shape[:-1], x.shape[-1] // 2 if width is None else width)
        outs = (Tensor(shape, x.dtype, x.storage), Tensor(shape, x.dtype, x.storage))
        self.apply("split", [x], outs, self._joined("cat", x))
        return outs

    def split(self, x: Tensor, *widths: int) -> tuple[Tensor, ...]:
        """torch.split(x, widths, -1): views, whose gradients are joined in one copy."""
        outs = tuple(Tensor((*x.shape[:-1], width), x.dtype, x.storage) for width in widths)
        self.apply("split", [x], outs, self._joined("cat", x))
        return outs

    def written(self, base: Tensor, part: Tensor) -> Tensor:
        """base[..., a:b].copy_(part): base, as a node that leads to what was written into it.

        Source      torch/csrc/autograd/functions/tensor.cpp, CopySlices and CopyBackwards: the
                    gradient is copied as a whole and its part once more; if base is a result, too,
                    zeros are written in the place of the part
        """
        out = Tensor(base.shape, base.dtype, base.storage)
        shape, dtype = part.shape, part.dtype

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            (g,) = grads
            whole = self.new("new_empty_strided", g.shape, g.dtype)
            copied = self.new("clone", shape, g.dtype)
            zeros = self.new("zeros_like", shape, g.dtype) if needs[0] else None
            if g.dtype != dtype:
                copied = self.new("to", shape, dtype)
            del zeros
            return [whole if needs[0] else None, copied]

        self.apply("copy_slices", [base, part], [out], run)
        return out

    def unbind(self, x: Tensor, parts: int, *shape: int) -> tuple[Tensor, ...]:
        """Views of one shape, whose gradients are stacked in one copy."""
        outs = tuple(Tensor(shape, x.dtype, x.storage) for _ in range(parts))
        self.apply("unbind", [x], outs, self._joined("stack", x))
        return outs

    def _joined(self, op: str, x: Tensor) -> Backward:
        shape, dtype = x.shape, x.dtype
        return lambda grads, saved, needs: [self.new(op, shape, dtype)]

    def part_of(self, x: Tensor, *shape: int) -> Tensor:
        """x[..., a:b]: a view, whose gradient is written into a full copy of zeros."""
        out = Tensor(shape, x.dtype, x.storage)
        self.apply("slice", [x], [out], self._joined("slice_backward", x))
        return out

    def cat(self, parts: Sequence[Tensor]) -> Tensor:
        """Joined along the last dimension, in the widest dtype; the gradients are views.

        Autocast on a CPU casts the narrower parts first; CUDA's kernel reads each as it is.
        Source      aten/src/ATen/autocast_mode.cpp, cat among what AutocastCPU promotes;
                    autocast_mode.h, AT_FORALL_PROMOTE, which CUDA has
        """
        wide = max((part.dtype for part in parts), key=SIZES.__getitem__)
        if self.backend == "cpu":
            parts = [self.to(part, wide) for part in parts]
        last = sum(part.shape[-1] for part in parts)
        out = self.new("cat", (*parts[0].shape[:-1], last), wide)
        asked = [(part.shape, part.dtype) for part in parts]

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            views = [(self.view(grads[0], *shape), dtype) for shape, dtype in asked]
            return [
                view if dtype == wide else self.new("to", view.shape, dtype)
                for view, dtype in views
            ]

        self.apply("cat", parts, [out], run)
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

    def seen_as(self, x: Tensor, *shape: int) -> Tensor:
        """A view with a node of its own: its gradient waits until the nodes after it have run."""
        out = Tensor(shape, x.dtype, x.storage)
        before = x.shape
        self.apply("view", [x], [out], lambda grads, saved, needs: [self.view(grads[0], *before)])
        return out

    def folded(self, x: Tensor) -> Tensor:
        """A view whose gradient comes in an order that no view can undo: it is copied."""
        out = Tensor(x.shape, x.dtype, x.storage)

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            return [self.new("clone", grads[0].shape, grads[0].dtype)]

        self.apply("view", [x], [out], run)
        return out
