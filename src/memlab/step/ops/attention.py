"""Products of batches of matrices, and what the kernels keep."""

from __future__ import annotations

from ..core.graph import Grads, Tensor
from ..core.storage_log import Dim
from .autocast import Autocast
from .sdpa_kernel import FLASH_WIDEST


class Attention(Autocast):
    """Attention by a kernel, or by the products that it is written with.

    backend     cpu or cuda: their kernels differ in what they keep
    """

    backend: str

    def attention(self, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None = None) -> Tensor:
        """scaled_dot_product_attention in a kernel that keeps no scores.

        That is flash attention; on CUDA in fp32 or with a bias (a mask as numbers to add) the
        memory-efficient one, which pads the log-sum-exp of each head to a multiple of 32 tokens.

        Shapes      q [B, N, T, H], k and v [B, K, T, H]; returns [B, N, T, H]. Values of another
                    width are for the memory-efficient one
        """
        value, key, query = self.cast(v), self.cast(k), self.cast(q)
        wide = query.dtype == "fp32" or query.shape[-1] > FLASH_WIDEST
        wide = wide or query.shape[-1] != value.shape[-1]
        efficient = self.backend == "cuda" and (wide or bias is not None)
        op = "efficient_attention" if efficient else "flash_attention"
        out = self.new(op, (*query.shape[:-1], value.shape[-1]), query.dtype)
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

    def matmul(
        self, a: Tensor, b: Tensor, last: int, *, strided: tuple[bool, bool] = (False, False)
    ) -> Tensor:
        """Batches of matrix products, a [B, N, T, inner]: returns [B, N, T, last].

        strided     whether a and b are stored as [B, T, N, ...]: their first two dimensions are
                    joined for the kernel, which takes a copy unless one of the two is 1
        """
        narrow_b, narrow_a = self.cast(b), self.cast(a)
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
