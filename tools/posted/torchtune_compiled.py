"""What torchtune's recipes of November 2024 hold under torch.compile: their operators traced.

Model       Llama-3.2-3B in bf16. Each layer is compiled by itself; Dynamo breaks it around flex
            attention, which is compiled apart and keeps its inputs, its result and one fp32 number
            a row and head. Norms in fp32, keys and values repeated for every query head, angles
            picked by position from one table. Embedding, last norm and head are not compiled
Rows        each has what the ones before it have. `compile`: the whole loss is compiled, on logits
            that the model cast to fp32. `chunks`: eight chunks of logits in bf16, each cast and
            lost in a compiled function. `again`: full checkpointing. `inside`: the step in
            backward, so a gradient goes as soon as it is complete; its states, there all the time,
            are not traced. `lora`: as `again`, with adapters of rank 64 alone trained
Compiler    torch 2.13's Inductor, as memlab.measure traces it: its kernels are those of a CPU, and
            what waits for backward is cut by the same partitioner. torchtune ran torch 2.5
Left out    cuBLAS's workspaces and offloaded inputs, of which tools/posted/torchtune_chunked.py
            knows; the mask of packed rows, in blocks of 128
Stored      book/posted-compiled.json, in bytes of the allocator's blocks; a test traces one again
Source      torchtune at 1814feb17: training/_compile.py, modules/attention.py, attention_utils.py,
            rms_norm.py, tied_linear.py, transformer.py, loss/ce_chunked_output_loss.py,
            models/llama3_1/_position_embeddings.py, modules/peft/lora.py; recipes/
            full_finetune_single_device.py, lora_finetune_single_device.py: _loss_step

python tools/posted --compiled      trace all again (a minute) and store what they hold

Long, for the whole model stands here, as short as its operators and their order allow.
"""

import json
import warnings
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from typing import Any
from unittest.mock import patch

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from memlab import Run
from memlab.measure.compiled import Graphs, _backend, _CudaAttention, without_kernels

from .torchtune_chunked import COMPILED
from .torchtune_reserved import Norm

ROWS = ("compile", "chunks", "again", "inside", "lora")
LAYERS, WIDTH, HEADS, SHARED, HEAD, HIDDEN, VOCAB = 28, 3072, 24, 8, 128, 8192, 128256
BATCH, TOKENS, POSITIONS, RANK, CHUNKS = 2, 4096, 131072, 64, 8
RUN = Run(compile="inductor")
linear = partial(nn.Linear, bias=False, dtype=torch.bfloat16)


def write():
    """Trace all rows and store them."""
    found = {row: traced(row).allocated() for row in ROWS}
    COMPILED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def traced(row):
    """The trace of two steps of a row, on tensors without values."""
    module: Any = import_module("memlab.measure.trace")
    held: dict[str, Any] = {"loss": chunk_loss if row != "compile" else F.cross_entropy}

    def step(model):
        if row == "inside" and "hooked" not in held:
            held["hooked"] = [p.register_post_accumulate_grad_hook(forget) for p in trained(model)]
        ids, labels, positions = (torch.zeros(BATCH, TOKENS, dtype=torch.long) for _ in range(3))
        loss = loss_of(held["loss"], model(ids, positions), labels)
        held["running"] = 0 + loss
        loss.backward()

    with patch.object(module, "compiled", partial(by_layer, held)):
        optimizer = None if row == "inside" else adamw
        return module.trace(lambda: Decoder(row), step, RUN, optimizer=optimizer)


@contextmanager
def by_layer(held, model, run):
    """In the place of memlab's own, which compiles the whole model: each layer, and the loss.

    Source      memlab.measure.compiled: compiled
    """
    graphs = Graphs(run)

    def on_fakes(graph, inputs):
        graphs.count += 1
        with _CudaAttention(run.kernel):
            return backend(graph, inputs)

    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        stack.enter_context(without_kernels())
        backend = _backend(run.compile)
        # All layers have the same code, and each is compiled for itself.
        stack.enter_context(torch._dynamo.config.patch(recompile_limit=99))
        for layer in model.layers:
            layer.compile(backend=on_fakes)
            stack.callback(setattr, layer, "_compiled_call_impl", None)
        held["loss"] = torch.compile(held["loss"], backend=on_fakes)
        yield graphs


def chunk_loss(logits, labels):
    """Of one chunk: the cast to fp32 is a part of what is compiled."""
    return F.cross_entropy(logits.float(), labels, reduction="sum")


def loss_of(function, logits, labels):
    """The recipe's step of the loss, after which nobody has the logits' names any more."""
    if not isinstance(logits, list):
        return function(logits.reshape(-1, VOCAB), labels.reshape(-1))
    pieces = zip(logits, labels.chunk(CHUNKS, dim=1), strict=True)
    return sum(function(a.reshape(-1, VOCAB), b.reshape(-1)) for a, b in pieces)


def trained(model):
    return [p for p in model.parameters() if p.requires_grad]


def forget(parameter):
    """The step in backward, of which a trace of one step sees that the gradient goes."""
    parameter.grad = None


def adamw(parameters):
    """AdamW on what is trained; its fused step makes nothing of its own."""
    return torch.optim.AdamW([p for p in parameters if p.requires_grad], fused=True)


class Decoder(nn.Module):
    """Embedding, layers, norm, and a head that is the embedding's own table."""

    def __init__(self, row):
        super().__init__()
        self.row = row
        self.embedding = nn.Embedding(VOCAB, WIDTH, dtype=torch.bfloat16)
        first, turn = Adapted if row == "lora" else linear, Angles()
        self.layers = nn.ModuleList(Layer(first, turn) for _ in range(LAYERS))
        self.norm = Norm(WIDTH)
        for name, p in self.named_parameters():
            p.requires_grad = row != "lora" or ".adapter." in name

    def forward(self, ids, positions):
        x = self.embedding(ids)
        for layer in self.layers:
            if self.row in ("compile", "chunks"):
                x = layer(x, positions)
            else:
                x = checkpoint(layer, x, positions, use_reentrant=False)
        x = self.norm(x)
        if self.row == "compile":
            return F.linear(x, self.embedding.weight).float()
        return [F.linear(piece, self.embedding.weight) for piece in x.chunk(CHUNKS, dim=1)]


class Layer(nn.Module):
    """Attention and a gated feed-forward layer, each behind a norm."""

    def __init__(self, first, turn):
        super().__init__()
        self.before, self.between = Norm(WIDTH), Norm(WIDTH)
        self.attention, self.feed_forward = Attention(first, turn), FeedForward(first)

    def forward(self, x, positions):
        between = self.attention(self.before(x), positions) + x
        return between + self.feed_forward(self.between(between))


class Attention(nn.Module):
    """Fewer keys and values than queries, repeated for each of them."""

    def __init__(self, first, turn):
        super().__init__()
        self.q, self.k = first(WIDTH, HEADS * HEAD), linear(WIDTH, SHARED * HEAD)
        self.v, self.out = first(WIDTH, SHARED * HEAD), first(HEADS * HEAD, WIDTH)
        self.turn = turn

    def forward(self, x, positions):
        q = self.q(x).view(BATCH, TOKENS, HEADS, HEAD)
        q = self.turn(q, positions).transpose(1, 2)
        k, v = (each(x).view(BATCH, TOKENS, -1, HEAD) for each in (self.k, self.v))
        k = self.turn(k, positions)
        shape = (BATCH, SHARED, HEADS // SHARED, -1, HEAD)
        k, v = (t.transpose(1, 2).unsqueeze(2).expand(shape).flatten(1, 2) for t in (k, v))
        y = apart(q, k, v)
        return self.out(y.transpose(1, 2).contiguous().view(BATCH, TOKENS, -1))


class FeedForward(nn.Module):
    def __init__(self, first):
        super().__init__()
        self.gate, self.up = first(WIDTH, HIDDEN), first(WIDTH, HIDDEN)
        self.down = first(HIDDEN, WIDTH)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Adapted(nn.Module):
    """A frozen matrix and two small ones beside it."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.frozen = linear(inputs, outputs)
        self.adapter = nn.ModuleList((linear(inputs, RANK), linear(RANK, outputs)))

    def forward(self, x):
        narrow, wide = self.adapter
        out = self.frozen(x)
        return out + 2.0 * wide(narrow(x))


class Angles(nn.Module):
    """Pairs of channels turned in fp32 by the angle of their position, all from one table."""

    table: torch.Tensor

    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.zeros(POSITIONS, HEAD // 2, 2))

    def forward(self, x, positions):
        at = self.table[positions].view(-1, x.size(1), 1, HEAD // 2, 2)
        wide = x.float().reshape(*x.shape[:-1], -1, 2)
        turned = torch.stack(
            [
                wide[..., 0] * at[..., 0] - wide[..., 1] * at[..., 1],
                wide[..., 1] * at[..., 0] + wide[..., 0] * at[..., 1],
            ],
            -1,
        )
        return turned.flatten(3).type_as(x)


class Flex(torch.autograd.Function):
    """What flex attention keeps: queries, keys, values, the result, and its log-sum-exp."""

    @staticmethod
    def forward(ctx, q, k, v):  # type: ignore[override]
        out, logs = torch.empty_like(q), q.new_empty(q.shape[:3], dtype=torch.float32)
        ctx.save_for_backward(q, k, v, out, logs)
        return out

    @staticmethod
    def backward(ctx, *gradients):
        q, k, v, _, logs = ctx.saved_tensors
        delta = torch.empty_like(logs)  # the sum of each row of gradient times result
        found = tuple(torch.empty_like(t) for t in (q, k, v))
        del delta
        return found


@torch.compiler.disable(recursive=False)
def apart(q, k, v):
    """A call that Dynamo leaves alone, as torchtune asks it to."""
    return Flex.apply(q, k, v)
