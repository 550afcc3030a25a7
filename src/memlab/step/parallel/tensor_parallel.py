"""One rank of several that divide each matrix, as torch.distributed.tensor.parallel runs it.

The program     plan = {"self_attn.q_proj": ColwiseParallel(), ..., "mlp.down_proj":
                RowwiseParallel()} for each layer; {"model.embed_tokens": RowwiseParallel(
                input_layouts=Replicate()), "lm_head": ColwiseParallel(use_local_output=False)};
                steps under loss_parallel(): memlab.lab.tensor_steps.divide, line by line
Columns         q, k, v, gate, up and the head: each of them wraps its input for itself, so in
                backward each sums its own gradient of the whole stream over the ranks, in a new
                tensor. Nothing is sent in forward
Rows            out, down and the embedding: what each rank has is summed over the ranks, in a new
                tensor; nothing is sent in backward
Embedding       by words: a rank looks up what it has, and clears the rest by a mask. Its gradient
                is made whole on every rank: DTensor has no rule that cuts it by words
Loss            loss_parallel: the rows' largest value, their sum and the label's own number go
                round, and no rank has all logits
Sequence        norms and the stream have T / t tokens of each text. What attention and
                feed-forward read is gathered in one buffer and, with more than one text, put into
                order in another; what they give is put into order, then reduced and scattered. The
                stream is made of DTensors then, whose gradients autograd never adds in place
Collectives     functional ones, which make a new tensor each; the tensor that is waited for is
                that same one
CUDA            the same order. PyTorch's allocator counts a block as free as soon as the program
                lets go of it, and a collective that is not waited for yet holds what it reads.
                Derived from the source and counted on CPUs; not yet measured on a GPU
Source          torch, torch/distributed/tensor: parallel/style.py, parallel/loss.py,
                placement_types.py, _redistribute.py, _api.py; _functional_collectives.py
tp_plan         transformers' own plan cuts the same matrices; its head gathers all logits on every
                rank (colwise_gather_output), and the loss is the usual one. Of a mixture it cuts
                all experts: memlab.step.networks.tensor_parallel_mixture
Leaves out      buffers of the communication library
"""

from __future__ import annotations

from collections.abc import Sequence

from ...model import Model
from ...sharding import Sharding
from ...sharding.tensor_parallel import of_linear
from ...terms.sharding import split
from ..core.graph import Grads, Parameter, Tensor
from ..ops import Ops
from .loss_parallel import LossParallel

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

WORDS = ("embedding", "lm_head")  # a tied head is the embedding


class TensorParallelOps(LossParallel):
    """All operators, on one rank's part of each matrix.

    model       whose plan it is
    devices     how many ranks there are, and whether the norms' tokens are divided as well
    """

    def __init__(self, *arguments: Any, model: Model, devices: Sharding, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.model = model
        self.ranks, self.sequence = devices.tensor, devices.plan.sequence
        self.gathers = devices.plan.whose == "transformers"
        self.words = 0  # all rows of the embedding

    def parameter(self, name: str, shape: Sequence[int], dtype: str) -> Parameter:
        """A weight; of a table of words this rank's."""
        if name == "embedding":
            self.words = shape[0]
        shape = split(shape, axis=0 if name in WORDS else None, ranks=self.ranks)
        return super().parameter(name, shape, dtype)

    def embedding(self, table: Tensor, ids: Tensor) -> Tensor:
        """RowwiseParallel: each rank looks up its own words; the others are zeros to be added."""
        mask, mine = self.own_words(ids)
        found = self.new("embedding", (*ids.shape, table.shape[-1]), table.dtype)
        del mine
        zero = self.new("lift_fresh", (), table.dtype)
        del zero, mask
        shape = (self.words, table.shape[-1])

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            return [self.new("embedding_backward", shape, grads[0].dtype)]

        whole = Tensor(shape, table.dtype, table.storage, table.node, table.slot)
        self.apply("embedding", [whole], [found], run, [("indices", ids)])
        return self.reduced(found)

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """ColwiseParallel or RowwiseParallel, by the weight's name; a router stays whole."""
        name = weight.record.op
        axis = 0 if name in WORDS else of_linear(name, self.model)
        if axis is None:
            return super().linear(x, weight, bias)
        if axis == 0:
            whole = x if self.sequence else self.everywhere(x)
            out = super().linear(whole, weight, bias)
            return self._all_words(out) if self.gathers and name in WORDS else out
        part = super().linear(x, weight, bias)
        return self.reduced(part)

    def _all_words(self, part: Tensor) -> Tensor:
        """All logits from those of each rank's words, whose gradients are a part again."""
        B, T, width = part.shape
        shape, dtype = part.shape, part.dtype
        buffer = self.new("all_gather", (self.ranks * B, T, width), dtype)
        out = self.new("cat", (B, T, self.ranks * width), dtype)
        del buffer
        if self.words % self.ranks:  # without the last rank's padding
            out = self.new("clone", (B, T, self.words), dtype)

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            return [self.new("clone", shape, dtype)]

        self.apply("redistribute", [part], [out], run)
        return out

    def before_update(self, parameter: Parameter) -> None:
        """Moments that are cut otherwise than the gradient: it is cut, or summed, for each operand.

        That is once for lerp_(grad) and twice for addcmul_(grad, grad), in new tensors.
        """
        name = parameter.record.op
        assert parameter.grad is not None
        if parameter.grad.shape != parameter.shape:
            op = "clone"  # of this rank's words
        elif self.sequence and name in ("attention_norm", "feed_forward_norm", "final_norm"):
            op = "all_reduce"  # each rank has the part of its tokens
        else:
            return
        shape, dtype = parameter.shape, parameter.dtype
        read = self.new(op, shape, dtype)
        del read
        both = [self.new(op, shape, dtype) for _ in range(2)]
        del both

    def adds(self, shape: tuple[int, ...]) -> bool:
        """A weight's gradient is a DTensor, and so is the stream's where its tokens are divided."""
        if len(shape) == 2 and getattr(shape[0], "letters", "") == "B·T":
            return self.in_place  # what a mixture reads, in rows
        return self.in_place and not (len(shape) == 2 or (self.sequence and len(shape) == 3))

    def added(self, first: Tensor, second: Tensor) -> Tensor:
        """The sum of two; of a tied table the head's own words and the embedding's, cut for it."""
        cut = self.new("clone", first.shape, first.dtype) if first.shape != second.shape else None
        out = self.new("add", first.shape, first.dtype)
        del cut
        return out

    def gathered(self, x: Tensor) -> Tensor:
        """All tokens of the stream, where they are divided: Shard(1) -> Replicate().

        Source      funcol.all_gather_single, .reduce_scatter_single: both go by the first dimension
        """
        if not self.sequence:
            return x
        out = self._all_gather(x.shape, x.dtype)

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            return [self._reduce_scatter(grads[0].shape, grads[0].dtype)]

        self.apply("redistribute", [x], [out], run)
        return out

    def _all_gather(self, shape: tuple[int, ...], dtype: str) -> Tensor:
        rows, tokens, width = shape
        out = self.new("all_gather", (self.ranks * rows, tokens, width), dtype)
        if rows == 1:  # the ranks' tokens lie one after the other already
            return self.view(out, 1, self.ranks * tokens, width)
        return self.new("cat", (rows, self.ranks * tokens, width), dtype)

    def _reduce_scatter(self, shape: tuple[int, ...], dtype: str) -> Tensor:
        rows, tokens, width = shape
        ordered = self.new("cat", shape, dtype)
        out = self.new("reduce_scatter", (rows, tokens // self.ranks, width), dtype)
        del ordered
        return out

    def everywhere(self, x: Tensor) -> Tensor:
        """DTensor.from_local(x, Replicate()): each rank has a part of its gradient."""
        out = Tensor(x.shape, x.dtype, x.storage)

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            return [self.new("all_reduce", grads[0].shape, grads[0].dtype)]

        self.apply("from_local", [x], [out], run)
        return out

    def reduced(self, x: Tensor) -> Tensor:
        """The sum over all ranks, in a new tensor; its gradient is that of each part.

        Where tokens are divided, of this rank's tokens; the gradient is gathered.
        """
        if self.sequence:
            return self._scattered(x)
        out = self.new("all_reduce", x.shape, x.dtype)
        self.apply("redistribute", [x], [out], lambda grads, saved, needs: [grads[0]])
        return out

    def _scattered(self, x: Tensor) -> Tensor:
        out = self._reduce_scatter(x.shape, x.dtype)

        def run(grads: Grads, saved: Grads, needs: list[bool]) -> Grads:
            return [self._all_gather(grads[0].shape, grads[0].dtype)]

        self.apply("redistribute", [x], [out], run)
        return out

    def cross_entropy(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Under loss_parallel, or of all logits."""
        if self.gathers:
            return Ops.cross_entropy(self, logits, labels)
        return super().cross_entropy(logits, labels)
