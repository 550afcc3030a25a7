"""NanoChat: the decoder of karpathy/nanochat as of February 2026, in plain torch, in one sitting.

Letters     B batch, T tokens, D model width, N heads, H head width, V vocabulary; an array carries
            its own: q_BTNH has the shape [B, T, N, H]
Source      github.com/karpathy/nanochat, commit 2c062aa, nanochat/gpt.py: facts of shape, format
            and initial values; the code here is ours
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

ROPE_BASE = 10_000.0
ROPE_REACH = 10  # rotary tables are made for ten times the sequence
GATE_INPUTS = 32  # channels of x that a value embedding's gate reads
SOFTCAP = 15.0  # logits stay between -15 and 15


@dataclass(frozen=True)
class Shape:
    """What a run of nanochat fixes: its depth, and what follows from it.

    windows     one letter a layer, repeated: S looks back half a sequence, L the whole of it
    """

    depth: int = 26
    width: int = 1664  # 64 · depth, rounded up to whole heads
    heads: int = 13
    vocab: int = 32_768
    tokens: int = 2048
    windows: str = "SSSL"

    def window(self, layer: int) -> int:
        """How far a layer looks back; the last one always sees everything."""
        short = self.windows[layer % len(self.windows)] == "S" and layer != self.depth - 1
        return self.tokens // 2 if short else self.tokens

    def has_values(self, layer: int) -> bool:
        """Every other layer has a table of value embeddings, the last one among them."""
        return layer % 2 == (self.depth - 1) % 2


D26 = Shape()


class NanoChat(nn.Module):
    """Tables of values beside v, sliding windows, relu², a softcap, and no bias anywhere.

    Shapes      ids and labels [B, T], labels already shifted; returns the mean loss
    flash       attention by a kernel that takes a window as a number and keeps no scores, which
                FlashAttention 3 is on Hopper; here it is asked for whole sequences, whose bytes
                are the same. Else a short window is a mask [T, T], as on any other device
    Formats     linear layers, lambdas in fp32; embeddings in bf16 (`tables`), as on CUDA
    Leaves out  decoding, generation
    """

    cos: Tensor
    sin: Tensor

    def __init__(
        self, shape: Shape, *, flash: bool = False, tables: torch.dtype = torch.bfloat16
    ) -> None:
        super().__init__()
        self.shape, D, V = shape, shape.width, shape.vocab
        self.wte = nn.Embedding(V, D, dtype=tables)
        self.layers = nn.ModuleList(Layer(shape, i, flash) for i in range(shape.depth))
        self.value_embeds = nn.ModuleDict(
            {
                str(i): nn.Embedding(V, D, dtype=tables)
                for i in range(shape.depth)
                if shape.has_values(i)
            }
        )
        self.lm_head = Linear(D, V)
        self.resid_lambdas = nn.Parameter(torch.ones(shape.depth))
        self.x0_lambdas = nn.Parameter(torch.full((shape.depth,), 0.1))
        half = D // shape.heads // 2
        turns = ROPE_BASE ** -(torch.arange(half) / half)
        angles = torch.outer(torch.arange(ROPE_REACH * shape.tokens).float(), turns)[:, None]
        self.register_buffer("cos", angles.cos().to(tables), persistent=False)
        self.register_buffer("sin", angles.sin().to(tables), persistent=False)
        self._first_weights()

    @torch.no_grad()
    def _first_weights(self) -> None:
        nn.init.normal_(self.lm_head.weight, std=0.001)
        side = (3 / self.shape.width) ** 0.5
        for weight in self.value_embeds.parameters():
            nn.init.uniform_(weight, -side, side)
        for layer in self.layers:
            for name, linear in layer.named_modules():
                if isinstance(linear, Linear):
                    zero = name in ("out", "down", "gate")  # each branch begins as nothing
                    nn.init.uniform_(linear.weight, -side * (not zero), side * (not zero))

    def forward(self, ids_BT: Tensor, labels_BT: Tensor) -> Tensor:
        T = ids_BT.shape[1]
        turn = self.cos[:T], self.sin[:T]
        x0_BTD = x_BTD = norm(self.wte(ids_BT))
        for i, layer in enumerate(self.layers):
            x_BTD = self.resid_lambdas[i] * x_BTD + self.x0_lambdas[i] * x0_BTD
            ve_BTD = self.value_embeds[str(i)](ids_BT) if self.shape.has_values(i) else None
            x_BTD = layer(x_BTD, ve_BTD, turn)
        logits_BTV = self.lm_head(norm(x_BTD)).float()
        logits_BTV = SOFTCAP * torch.tanh(logits_BTV / SOFTCAP)
        return F.cross_entropy(logits_BTV.flatten(0, 1), labels_BT.flatten())


class Layer(nn.Module):
    """Attention with its table of values, then two matrices around relu²."""

    def __init__(self, shape: Shape, i: int, flash: bool) -> None:
        super().__init__()
        D, self.heads, self.window = shape.width, shape.heads, shape.window(i)
        self.flash = flash or self.window >= shape.tokens
        self.q, self.k, self.v, self.out = (Linear(D, D) for _ in range(4))
        self.gate = Linear(GATE_INPUTS, self.heads) if shape.has_values(i) else None
        self.up, self.down = Linear(D, 4 * D), Linear(4 * D, D)

    def forward(self, x_BTD: Tensor, ve_BTD: Tensor | None, turn: tuple[Tensor, Tensor]) -> Tensor:
        x_BTD = x_BTD + self.attention(norm(x_BTD), ve_BTD, turn)
        return x_BTD + self.down(F.relu(self.up(norm(x_BTD))).square())

    def attention(
        self, x_BTD: Tensor, ve_BTD: Tensor | None, turn: tuple[Tensor, Tensor]
    ) -> Tensor:
        apart = (self.heads, x_BTD.shape[-1] // self.heads)
        q_BTNH, k_BTNH, v_BTNH = (f(x_BTD).unflatten(-1, apart) for f in (self.q, self.k, self.v))
        if self.gate is not None and ve_BTD is not None:
            gate_BTN = 2 * torch.sigmoid(self.gate(x_BTD[..., :GATE_INPUTS]))
            v_BTNH = v_BTNH + gate_BTN.unsqueeze(-1) * ve_BTD.unflatten(-1, apart)
        q_BTNH, k_BTNH = (norm(rotated(y, turn)) for y in (q_BTNH, k_BTNH))
        mask_TT = None if self.flash else within(self.window, x_BTD.shape[1], x_BTD.device)
        q_BNTH, k_BNTH, v_BNTH = (y.transpose(1, 2) for y in (q_BTNH, k_BTNH, v_BTNH))
        y_BNTH = F.scaled_dot_product_attention(
            q_BNTH, k_BNTH, v_BNTH, attn_mask=mask_TT, is_causal=mask_TT is None
        )
        return self.out(y_BNTH.transpose(1, 2).flatten(2))


class Linear(nn.Linear):
    """A linear layer without bias whose fp32 weight is cast to the format of what it reads."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight.to(x.dtype))


def norm(x: Tensor) -> Tensor:
    """RMSNorm without a weight."""
    return F.rms_norm(x, (x.shape[-1],))


def rotated(y_BTNH: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    """Each pair of dims turned by its position (Su et al. 2021, arXiv:2104.09864)."""
    cos, sin = turn
    a, b = y_BTNH.chunk(2, -1)
    return torch.cat([a * cos + b * sin, b * cos - a * sin], -1)


def within(window: int, tokens: int, device: torch.device) -> Tensor:
    """True where a row may look: not ahead, and no more than `window` back."""
    at = torch.arange(tokens, device=device)
    back = at[:, None] - at
    return (back >= 0) & (back <= window)
