"""Models small enough to train in a test, and a training step: what the tracker is tried on."""

from contextlib import AbstractContextManager

import torch
import torch.nn.functional as F
from torch import nn

VOCAB, TOKENS = 97, 24


def rotate(x, cos, sin):
    left, right = x.chunk(2, -1)
    return x * cos + torch.cat((-right, left), -1) * sin


class LlamaBlock(nn.Module):
    def __init__(self, width, heads, kv_heads, hidden):
        super().__init__()
        self.head_dim = width // heads
        self.norm1, self.norm2 = nn.RMSNorm(width, eps=1e-5), nn.RMSNorm(width, eps=1e-5)
        kv = kv_heads * self.head_dim
        self.q, self.k, self.v, self.o = (
            nn.Linear(width, out, bias=False) for out in (width, kv, kv, width)
        )
        self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x, cos, sin):
        B, T, D = x.shape
        y = self.norm1(x)
        q, k, v = (
            layer(y).view(B, T, -1, self.head_dim).transpose(1, 2)
            for layer in (self.q, self.k, self.v)
        )
        o = F.scaled_dot_product_attention(
            rotate(q, cos, sin), rotate(k, cos, sin), v, is_causal=True, enable_gqa=True
        )
        x = x + self.o(o.transpose(1, 2).reshape(B, T, D))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    """GQA, RMSNorm, SwiGLU, RoPE, untied."""

    def __init__(self, width=48, layers=3, heads=4, kv_heads=2, hidden=80):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, width)
        self.blocks = nn.ModuleList(
            LlamaBlock(width, heads, kv_heads, hidden) for _ in range(layers)
        )
        self.norm, self.head = nn.RMSNorm(width, eps=1e-5), nn.Linear(width, VOCAB, bias=False)
        self.register_buffer("cos", torch.randn(TOKENS, width // heads))
        self.register_buffer("sin", torch.randn(TOKENS, width // heads))

    def forward(self, ids, labels):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x, self.cos.to(x.dtype), self.sin.to(x.dtype))
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), labels.flatten())


class GPTBlock(nn.Module):
    def __init__(self, width, heads, dropout=0.1):
        super().__init__()
        self.heads, self.dropout = heads, nn.Dropout(dropout)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.o = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        # A tensor: a Python number here would be kept for backward, in 8 bytes no mode can see.
        self.register_buffer("scale", torch.tensor((width // heads) ** -0.5))

    def forward(self, x, mask):
        B, T, D = x.shape
        q, k, v = (
            part.view(B, T, self.heads, -1).transpose(1, 2)
            for part in self.qkv(self.norm1(x)).chunk(3, -1)
        )
        weights = ((q @ k.transpose(-1, -2)) * self.scale).masked_fill(mask, float("-inf"))
        o = self.dropout(weights.softmax(-1)) @ v
        x = x + self.dropout(self.o(o.transpose(1, 2).reshape(B, T, D)))
        return x + self.dropout(self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh")))


class GPT(nn.Module):
    """Learned positions, LayerNorm, GELU, dropout, biases, tied."""

    def __init__(self, width=48, layers=2, heads=4):
        super().__init__()
        self.embed, self.positions = nn.Embedding(VOCAB, width), nn.Embedding(TOKENS, width)
        self.blocks = nn.ModuleList(GPTBlock(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, VOCAB, bias=False)
        self.head.weight = self.embed.weight
        self.register_buffer("mask", torch.ones(TOKENS, TOKENS, dtype=torch.bool).triu(1))

    def forward(self, ids, labels):
        x = self.embed(ids) + self.positions.weight
        for block in self.blocks:
            x = block(x, self.mask)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), labels.flatten())


class Conv(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(256, 10),
        )

    def forward(self, x, labels):
        return F.cross_entropy(self.net(x), labels)


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(144, 96), nn.GELU(), nn.Linear(96, 64), nn.ReLU(), nn.Linear(64, 10)
        )

    def forward(self, x, labels):
        return F.cross_entropy(self.net(x.flatten(1)), labels)


FAMILIES = {"llama": Llama, "gpt": GPT, "conv": Conv, "mlp": MLP}
OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, 1e-3, momentum=0.9),
    "adamw-loop": lambda p: torch.optim.AdamW(p, foreach=False),
    "adamw-foreach": lambda p: torch.optim.AdamW(p, foreach=True),
    "adamw-fused": lambda p: torch.optim.AdamW(p, fused=True),
    "amsgrad": lambda p: torch.optim.AdamW(p, amsgrad=True),
    "adafactor": lambda p: torch.optim.Adafactor(p),
    "muon": lambda p: torch.optim.Muon([q for q in p if q.ndim == 2]),
}


class Training:
    """One model, one optimizer, one batch; the same every time it is built."""

    def __init__(self, family, format="fp32", optimizer="adamw-foreach"):
        torch.manual_seed(0)
        self.model = FAMILIES[family]()
        dtype = torch.bfloat16 if format == "bf16" else torch.float32
        self.model.to(dtype)
        self.autocast = format == "autocast"
        self.optimizer = OPTIMIZERS[optimizer](list(self.model.parameters()))
        if family in ("llama", "gpt"):
            self.batch = [torch.randint(VOCAB, (2, TOKENS)) for _ in range(2)]
        else:
            self.batch = [torch.randn(4, 1, 12, 12, dtype=dtype), torch.randint(10, (4,))]

    def amp(self) -> AbstractContextManager:
        return torch.autocast("cpu", torch.bfloat16, enabled=self.autocast)

    def step(self):
        with self.amp():
            loss = self.model(*self.batch)
        loss.backward()
        del loss
        self.optimizer.step()
        self.model.zero_grad()
