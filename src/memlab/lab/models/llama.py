"""TinyLlama: the decoder of Llama, Mistral, Qwen2 and Qwen3 in plain torch, in one sitting.

Letters     B batch, T tokens, D model width, N query heads, K key/value heads, H head width,
            F feed-forward width, V vocabulary, E width of the embedding (D, or less where it is
            factorized); an array carries its own: q_BNTH is [B, N, T, H]
Names       those of `Model.tensors()`: parameter `layers.3.attention.q.weight` is one of the
            copies of its tensor `layers.attention.q`
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...model import Model
from .common import check, chunked_next_token_loss, next_token_loss, run_layer

FAMILIES = ("llama", "mistral", "qwen2", "qwen3")
ROPE_THETA = 10000.0  # Su et al. 2021, arXiv:2104.09864, section 3.2.2
RMS_EPS = 1e-6  # transformers' LlamaConfig and Qwen3Config


class TinyLlama(nn.Module):
    """The block of Llama, Mistral, Qwen2 and Qwen3: RMSNorm, rotary, grouped queries, SwiGLU.

    Shapes      ids and labels [B, T]; returns logits [B, T, V], or with labels the mean loss
    Source      Touvron et al. 2023, arXiv:2302.13971; Qwen3 2025, arXiv:2505.09388; a factorized
                embedding: Lan et al. 2020, arXiv:1909.11942, section 3.1
    checkpoint  keep each layer's input alone, and compute the layer again in backward
    loss_chunks with labels, 0 or the number of chunks of memlab.lab.loss.chunked_cross_entropy
    Leaves out  a cache for decoding, attention masks, scaled rotary bases, dropout
    Raises      ValueError for a model of another family or with parts that this block lacks
    """

    cos_TH: Tensor
    sin_TH: Tensor

    def __init__(self, model: Model, *, checkpoint: bool = False, loss_chunks: int = 0) -> None:
        super().__init__()
        check(model, FAMILIES, ("embed_dim", "tied", "qk_norm", "qkv_bias", "out_bias", "ff_bias"))
        self.checkpoint, self.loss_chunks = checkpoint, loss_chunks
        E, D = model.embed_dim, model.d_model
        self.embedding = nn.Embedding(model.vocab, E)
        # A table that is narrower than the stream: one matrix widens its rows, one narrows them.
        self.project_in = nn.Identity() if E == D else nn.Linear(E, D, bias=False)
        self.layers = nn.ModuleList(LlamaLayer(model) for _ in range(model.layers))
        self.final_norm = nn.RMSNorm(model.d_model, eps=RMS_EPS)
        self.project_out = nn.Identity() if E == D else nn.Linear(D, E, bias=False)
        self.lm_head = nn.Linear(E, model.vocab, bias=False)
        if model.tied:  # the head's initial weights suit both uses, the embedding's (std 1) do not
            self.embedding.weight = self.lm_head.weight
        # Not persistent: the tables can be computed again, so no checkpoint stores them.
        angles_TH = rotary_angles(model.positions, model.head_dim)
        self.register_buffer("cos_TH", angles_TH.cos(), persistent=False)
        self.register_buffer("sin_TH", angles_TH.sin(), persistent=False)

    def forward(self, ids_BT: Tensor, labels_BT: Tensor | None = None) -> Tensor:
        T = ids_BT.shape[1]
        x_BTD = self.project_in(self.embedding(ids_BT))
        for layer in self.layers:
            angles = self.cos_TH[:T], self.sin_TH[:T]
            x_BTD = run_layer(layer, x_BTD, *angles, again=self.checkpoint)
        if labels_BT is not None and self.loss_chunks:
            head_in = self.project_out(self.final_norm(x_BTD))
            return chunked_next_token_loss(
                head_in, self.lm_head.weight, labels_BT, self.loss_chunks
            )
        logits_BTV = self.lm_head(self.project_out(self.final_norm(x_BTD)))
        return logits_BTV if labels_BT is None else next_token_loss(logits_BTV, labels_BT)


class LlamaLayer(nn.Module):
    """Attention and feed-forward, each reading a normalized copy and adding to the stream x."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(model.d_model, eps=RMS_EPS)
        self.attention = LlamaAttention(model)
        self.feed_forward_norm = nn.RMSNorm(model.d_model, eps=RMS_EPS)
        self.feed_forward = LlamaFeedForward(model)

    def forward(self, x_BTD: Tensor, cos_TH: Tensor, sin_TH: Tensor) -> Tensor:
        x_BTD = x_BTD + self.attention(self.attention_norm(x_BTD), cos_TH, sin_TH)
        return x_BTD + self.feed_forward(self.feed_forward_norm(x_BTD))


class LlamaAttention(nn.Module):
    """Causal attention in which N/K query heads read one key/value head."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        D, N, K, H = model.d_model, model.heads, model.kv_heads, model.head_dim
        self.head_dim, self.grouped = H, N != K
        self.q = nn.Linear(D, N * H, bias=model.qkv_bias)
        self.k = nn.Linear(D, K * H, bias=model.qkv_bias)
        self.v = nn.Linear(D, K * H, bias=model.qkv_bias)
        self.out = nn.Linear(N * H, D, bias=model.out_bias)
        # Qwen3 normalizes each head's query and key, with one weight of width H for all heads.
        self.q_norm = nn.RMSNorm(H, eps=RMS_EPS) if model.qk_norm else nn.Identity()
        self.k_norm = nn.RMSNorm(H, eps=RMS_EPS) if model.qk_norm else nn.Identity()

    def forward(self, x_BTD: Tensor, cos_TH: Tensor, sin_TH: Tensor) -> Tensor:
        H = self.head_dim
        q_BNTH = self.q_norm(self.q(x_BTD).unflatten(-1, (-1, H))).transpose(1, 2)
        k_BKTH = self.k_norm(self.k(x_BTD).unflatten(-1, (-1, H))).transpose(1, 2)
        v_BKTH = self.v(x_BTD).unflatten(-1, (-1, H)).transpose(1, 2)
        y_BNTH = F.scaled_dot_product_attention(
            rotate(q_BNTH, cos_TH, sin_TH),
            rotate(k_BKTH, cos_TH, sin_TH),
            v_BKTH,
            is_causal=True,
            enable_gqa=self.grouped,  # the kernel shares k and v; nothing is repeated in memory
        )
        return self.out(y_BNTH.transpose(1, 2).flatten(-2))


class LlamaFeedForward(nn.Module):
    """SwiGLU: one matrix gates another (Shazeer 2020, arXiv:2002.05202)."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.gate = nn.Linear(model.d_model, model.d_ff, bias=model.ff_bias)
        self.up = nn.Linear(model.d_model, model.d_ff, bias=model.ff_bias)
        self.down = nn.Linear(model.d_ff, model.d_model, bias=model.ff_bias)

    def forward(self, x_BTD: Tensor) -> Tensor:
        return self.down(F.silu(self.gate(x_BTD)) * self.up(x_BTD))


def rotary_angles(positions: int, head_dim: int) -> Tensor:
    """The angle by which rotary turns each pair of values at each position, [T, H], fp32.

    Formula     t · theta^(-2i/H) for pair i of position t; pairs are (i, i + H/2), as Llama's
    """
    rates = ROPE_THETA ** (-torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim)
    half = torch.outer(torch.arange(positions, dtype=torch.float32), rates)
    return torch.cat((half, half), -1)


def rotate(x_BNTH: Tensor, cos_TH: Tensor, sin_TH: Tensor) -> Tensor:
    """Turn each pair of values of a query or key by its position's angle."""
    first, second = x_BNTH.chunk(2, -1)
    return x_BNTH * cos_TH + torch.cat((-second, first), -1) * sin_TH
