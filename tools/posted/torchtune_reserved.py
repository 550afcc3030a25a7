"""What torchtune's recipes of May 2024 reserve: their operators traced, the allocator replayed.

Why         reserved memory depends on the order of what is allocated, which no closed sum knows
Model       Llama-2-7B in bf16. The norm in fp32, its result in bf16; angles applied in fp32 to
            pairs; each layer a deep copy with angles of its own, checkpointed; logits in fp32
Step        the shifted logits, transposed, in cross_entropy; they live until the next pass has its
            own. `full` steps in backward: a gradient goes as soon as it is complete, and the paged
            states are in managed memory, not the allocator's. `lora` has AdamW, and adapters of
            rank 8 beside queries and values
Left out    cuBLAS's workspaces, which tools/posted/torchtune.py adds; what two kernels allocate for
            themselves while they run. `Scratch` has these, and a test: with them, and in six steps
            for two, `full` reserves 2 MiB more, so neither explains the row that is missed
Stored      book/posted-reserved.json, in bytes; a test traces both again
Source      torchtune at 0217d44c2: modules/rms_norm.py, attention.py, position_embeddings.py,
            feed_forward.py, transformer.py, peft/lora.py; recipes/full_finetune_single_device.py
            and lora_finetune_single_device.py. The project's own modules, traced in the same way,
            give the same bytes

python tools/posted --reserved      trace both again and store what they reserve
"""

import json
from contextlib import nullcontext
from copy import deepcopy
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

from memlab.measure import trace

from .torchtune import RESERVED

LAYERS, WIDTH, HEADS, HIDDEN, VOCAB, POSITIONS, RANK = 32, 4096, 32, 11008, 32000, 4096, 8
BATCH, TOKENS = 4, 2048
linear = partial(nn.Linear, bias=False, dtype=torch.bfloat16)


def write():
    """Trace both and store them."""
    found = {kind: traced(kind).reserved() for kind in ("full", "lora")}
    RESERVED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def traced(kind, *, steps=2, kernels=nullcontext):
    """The trace of some steps of `full` or `lora`, on tensors without values.

    kernels     Scratch for what kernels allocate for themselves as well
    """
    held: dict[str, Any] = {}

    def step(model):
        with kernels():
            inside(model)

    def inside(model):
        if kind == "full" and "hooked" not in held:
            held["hooked"] = [p.register_post_accumulate_grad_hook(forget) for p in model.params()]
        there = next(model.parameters()).device
        ids, labels = (torch.zeros(BATCH, TOKENS, dtype=torch.long, device=there) for _ in range(2))
        logits = model(ids)
        held.pop("logits", None)
        logits = logits[..., :-1, :].contiguous()
        labels = labels[..., 1:].contiguous()
        logits = logits.transpose(1, 2)
        loss = F.cross_entropy(logits, labels) / 1
        held["loss"] = 0 + loss
        loss.backward()
        held["logits"] = logits

    optimizer = None if kind == "full" else adamw
    return trace(lambda: Decoder(kind), step, optimizer=optimizer, steps=steps)


class Scratch(TorchDispatchMode):
    """What CUDA's kernels allocate beside their results, and let go when they have run.

    log_softmax     a contiguous copy of its input where that is none, as transposed logits are
    flash attention's backward      one fp32 number a row and head, and dQ in fp32
    Source      torch 2.3: aten/src/ATen/native/cuda/SoftMax.cu, host_softmax;
                native/transformers/cuda/flash_attn/flash_api.cpp, mha_bwd
    """

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **kwargs or {})
        if func is torch.ops.aten._log_softmax.default and not args[0].is_contiguous():
            torch.empty_like(args[0], memory_format=torch.contiguous_format)
        if func is torch.ops.aten._scaled_dot_product_flash_attention_backward.default:
            q = args[1]
            sums = q.new_empty(q.shape[:3], dtype=torch.float32)
            wide = q.new_empty(q.shape, dtype=torch.float32)
            del sums, wide
        return out


def forget(parameter):
    """The step in backward, of which the allocator sees nothing but that the gradient goes."""
    parameter.grad = None


def adamw(parameters):
    """AdamW on what is trained."""
    return torch.optim.AdamW([p for p in parameters if p.requires_grad])


class Decoder(nn.Module):
    """Embedding, checkpointed layers, norm, head; with `lora` the adapters alone are trained."""

    def __init__(self, kind):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, WIDTH, dtype=torch.bfloat16)
        layer = Layer(kind)
        self.layers = nn.ModuleList(deepcopy(layer) for _ in range(LAYERS))
        self.norm, self.head = Norm(), linear(WIDTH, VOCAB)
        for name, p in self.named_parameters():
            p.requires_grad = kind == "full" or ".adapter." in name

    def params(self):
        return list(self.parameters())

    def forward(self, ids):
        x = self.embedding(ids)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False)
        return self.head(self.norm(x)).float()


class Layer(nn.Module):
    """Attention and a gated feed-forward layer, each behind a norm."""

    def __init__(self, kind):
        super().__init__()
        first = Adapted if kind == "lora" else linear
        self.before = Norm()
        self.q, self.k, self.v = first(WIDTH, WIDTH), linear(WIDTH, WIDTH), first(WIDTH, WIDTH)
        self.out, self.turn = linear(WIDTH, WIDTH), Angles()
        self.between, self.gate = Norm(), linear(WIDTH, HIDDEN)
        self.down, self.up = linear(HIDDEN, WIDTH), linear(WIDTH, HIDDEN)

    def forward(self, x):
        attended = self.attention(self.before(x))
        between = attended + x
        fed = self.feed_forward(self.between(between))
        return between + fed

    def attention(self, x):
        q, k, v = (each(x).view(BATCH, TOKENS, HEADS, -1) for each in (self.q, self.k, self.v))
        q = self.turn(q)
        k = self.turn(k)
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = y.transpose(1, 2).contiguous().view(BATCH, TOKENS, -1)
        return self.out(y)

    def feed_forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Adapted(nn.Module):
    """A frozen matrix and two small ones beside it."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.frozen = linear(inputs, outputs)
        self.adapter = nn.ModuleList((linear(inputs, RANK), linear(RANK, outputs)))

    def forward(self, x):
        out = self.frozen(x)
        narrow, wide = self.adapter
        beside = narrow(x)
        beside = 2.0 * wide(beside)
        return out + beside


class Norm(nn.Module):
    """The root mean square, in fp32."""

    def __init__(self, width=WIDTH):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width, dtype=torch.bfloat16))

    def forward(self, x):
        wide = x.float()
        even = (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).type_as(x)
        return even * self.scale


class Angles(nn.Module):
    """Pairs of channels turned by the position's angle, in fp32, by a table of this layer's own."""

    table: torch.Tensor

    def __init__(self):
        super().__init__()
        self.register_buffer("rates", torch.zeros(WIDTH // HEADS // 2))
        self.register_buffer("table", torch.zeros(POSITIONS, WIDTH // HEADS // 2, 2))

    def forward(self, x):
        wide = x.float().reshape(*x.shape[:-1], -1, 2)
        table = self.table[: x.size(1)].view(1, x.size(1), 1, -1, 2)
        turned = torch.stack(
            [
                wide[..., 0] * table[..., 0] - wide[..., 1] * table[..., 1],
                wide[..., 1] * table[..., 0] + wide[..., 0] * table[..., 1],
            ],
            -1,
        )
        turned = turned.flatten(3)
        return turned.type_as(x)
