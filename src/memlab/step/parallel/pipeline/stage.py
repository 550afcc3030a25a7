"""A stage of torch.distributed.pipelining, line by line: what it keeps, and for how long.

Buffers     for each micro-batch of a step one to receive the stream into, but in the first stage,
            and one for its gradient, but in the last. They are made once and stay
Kept        of each micro-batch the stage's input and output, from its forward pass to the end of
            its backward pass (`fwd_cache`); in the last stage all outputs, from one step until the
            next begins (`output_chunks`), if the schedule shall give them back. Where backward is
            split: from its input's half to its weights' half what memlab.step.core.split_backward
            says and the output (`backward_state`); the input's gradient until the next step begins,
            for it stays the `.grad` of the buffer that the input was received into
Source      torch, torch/distributed/pipelining/stage.py: PipelineStage, _backward.py
Leaves out  the first step's inference of shapes, which runs a micro-batch forward and backward on
            each stage, before there are states; buffers of the communication library
"""

from __future__ import annotations

from ...core.graph import Node, Parameter, Tensor
from ...core.split_backward import Group, backward_input, backward_weight
from ...networks.llama_stage import LlamaStage
from ...ops import Ops
from ...optimizers.each import in_order

BUFFERS = "pipeline buffers"


class Stage:
    """One stage with its module.

    index       among all stages of the pipeline
    keeps       whether outputs are given back: `return_outputs`
    """

    def __init__(self, f: Ops, network: LlamaStage, *, index: int, chunks: int, keeps: bool):
        self.f, self.network, self.index, self.keeps = f, network, index, keeps
        self.first, self.last = network.first, network.last
        s = network.setting
        stream = (s.B, s.T, s.D)

        def buffers(op: str, there: bool) -> list[Tensor]:
            return [f.new(op, stream, s.dtype, BUFFERS) for _ in range(chunks) if there]

        self.received = buffers("recv", not self.first)
        self.grads = buffers("recv_grad", not self.last)
        self.fwd_cache: dict[int, tuple[Tensor, Tensor]] = {}
        self.bwd_cache: dict[int, Tensor] = {}
        self.output_chunks: list[Tensor] = []
        self.backward_state: dict[int, tuple[Tensor, list[Group], Tensor]] = {}
        self.input_grads: list[Tensor] = []

    def clear(self) -> None:
        """clear_runtime_states: what a step begins with."""
        self.fwd_cache.clear()
        self.output_chunks.clear()
        self.input_grads.clear()

    def forward_one_chunk(self, number: int, ids: Tensor | None) -> Tensor:
        """The stage's forward pass on one micro-batch; what it received is a leaf of the graph."""
        if self.first:
            assert ids is not None
            x = ids
        else:
            x = self.received[number]
            leaf = Parameter(x.shape, x.dtype, x.storage, None)
            x = Tensor(x.shape, x.dtype, x.storage, Node.of(leaf))
        output = self.network.forward(x)
        if self.last and self.keeps:
            self.output_chunks.append(self.f.detach(output))
        self.fwd_cache[number] = output, x
        if not self.last and output.record.category == "other":
            output.record.category = "activations"
        return output

    def backward_one_chunk(self, number: int, loss: Tensor | None) -> None:
        """From the loss, or from the gradient that came; the input's is there to be sent."""
        output, x = self.fwd_cache.pop(number)
        if loss is not None:
            self.f.backward(loss)
        else:
            self.f.backward(output, self.grads[number])
        if x.node is not None and x.node.parameter is not None:
            leaf = x.node.parameter
            assert leaf.grad is not None
            self.bwd_cache[number], leaf.grad = leaf.grad, None

    def backward_input_one_chunk(self, number: int, loss: Tensor | None) -> None:
        """The half that another rank waits for; of the first stage, whose input asks for none,
        nothing."""
        output, x = self.fwd_cache.pop(number)
        root = output if loss is None else loss
        groups: list[Group] = []
        if not self.first:
            grad = None if loss is not None else self.grads[number]
            assert x.node is not None
            found, groups = backward_input(self.f, root, grad, x.node, self.weights())
            found.record.category = BUFFERS
            self.input_grads.append(found)
            self.bwd_cache[number] = found
        self.backward_state[number] = x, groups, root
        if self.last:
            output.node = None

    def backward_weight_one_chunk(self, number: int) -> None:
        """The other half; of the first stage the whole."""
        _, groups, root = self.backward_state.pop(number)
        if self.first:
            self.f.backward(root, self.grads[number])
        else:
            backward_weight(self.f, groups)

    def weights(self) -> list[Parameter]:
        """Those of the module, in the order of registration."""
        return list(in_order(self.f, self.network.setting.model.layers, self.network.parameters))

    def fwd_sends(self, number: int) -> list[Tensor]:
        """The tensors of the operations that send what this micro-batch made."""
        output, _ = self.fwd_cache[number]
        return [] if self.last else [self.f.detach(output)]

    def bwd_sends(self, number: int) -> list[Tensor]:
        """The same of its gradient."""
        return [] if self.first else [self.bwd_cache.pop(number)]
