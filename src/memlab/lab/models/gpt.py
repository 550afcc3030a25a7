"""TinyGPT: the decoder of GPT-2 in plain torch, in one sitting.

Letters     B batch, T tokens, D model width, N query heads, H head width, F feed-forward width,
            V vocabulary; an array carries its own: q_BNTH has the shape [B, N, T, H]
Names       those of `Model.tensors()`: parameter `layers.3.attention.qkv.weight` is one of the
            copies of its tensor `layers.attention.qkv`
Shapes      those of `Model.tensors()`, transposed: GPT-2's published weights are stored
            [inputs, outputs] (Conv1D), and nn.Linear stores [outputs, inputs], the same bytes
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...model import Model
from .common import check, chunked_next_token_loss, next_token_loss, run_layer

POSITION_STD = 0.02  # transformers' GPT2Config: small beside the tokens, or they are drowned


class TinyGPT(nn.Module):
    """The block of GPT-2: LayerNorm, learned positions, one matrix for q, k and v, GELU, biases.

    Shapes      ids and labels [B, T]; returns logits [B, T, V], or with labels the mean loss
    Source      Radford et al. 2019, Language Models are Unsupervised Multitask Learners
    dropout     the probability of all four: of the embedding, attention, and both branches
    checkpoint  keep each layer's input alone, and compute the layer again in backward
    loss_chunks with labels, 0 or the number of chunks of memlab.lab.loss.chunked_cross_entropy
    Leaves out  a cache for decoding, attention masks
    Raises      ValueError for a model of another family or with parts that this block lacks
    """

    def __init__(
        self, model: Model, *, dropout: float = 0.0, checkpoint: bool = False, loss_chunks: int = 0
    ) -> None:
        super().__init__()
        check(model, ("gpt2",), ("tied", "qkv_bias", "out_bias", "ff_bias"))
        if model.kv_heads != model.heads:
            raise ValueError(
                f"K={model.kv_heads}: GPT-2 has a key/value head for each of N={model.heads}"
            )
        self.checkpoint, self.loss_chunks = checkpoint, loss_chunks
        self.embedding = nn.Embedding(model.vocab, model.d_model)
        self.positions = nn.Embedding(model.positions, model.d_model)
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(GPTLayer(model, dropout) for _ in range(model.layers))
        self.final_norm = nn.LayerNorm(model.d_model)
        self.lm_head = nn.Linear(model.d_model, model.vocab, bias=False)
        nn.init.normal_(self.positions.weight, std=POSITION_STD)
        if model.tied:  # the head's initial weights suit both uses, the embedding's (std 1) do not
            self.embedding.weight = self.lm_head.weight

    def forward(self, ids_BT: Tensor, labels_BT: Tensor | None = None) -> Tensor:
        positions_T = torch.arange(ids_BT.shape[1], device=ids_BT.device)
        x_BTD = self.dropout(self.embedding(ids_BT) + self.positions(positions_T))
        for layer in self.layers:
            x_BTD = run_layer(layer, x_BTD, again=self.checkpoint)
        if labels_BT is not None and self.loss_chunks:
            head_in = self.final_norm(x_BTD)
            return chunked_next_token_loss(
                head_in, self.lm_head.weight, labels_BT, self.loss_chunks
            )
        logits_BTV = self.lm_head(self.final_norm(x_BTD))
        return logits_BTV if labels_BT is None else next_token_loss(logits_BTV, labels_BT)


class GPTLayer(nn.Module):
    """Attention and feed-forward, each reading a normalized copy and adding to the stream x."""

    def __init__(self, model: Model, dropout: float) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(model.d_model)
        self.attention = GPTAttention(model, dropout)
        self.feed_forward_norm = nn.LayerNorm(model.d_model)
        self.feed_forward = GPTFeedForward(model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x_BTD: Tensor) -> Tensor:
        x_BTD = x_BTD + self.dropout(self.attention(self.attention_norm(x_BTD)))
        return x_BTD + self.dropout(self.feed_forward(self.feed_forward_norm(x_BTD)))


class GPTAttention(nn.Module):
    """Causal attention in which every query head has its own key/value head."""

    def __init__(self, model: Model, dropout: float) -> None:
        super().__init__()
        D, self.heads, self.head_dim = model.d_model, model.heads, model.head_dim
        self.qkv = nn.Linear(D, 3 * self.heads * self.head_dim, bias=model.qkv_bias)
        self.out = nn.Linear(self.heads * self.head_dim, D, bias=model.out_bias)
        self.dropout = dropout

    def forward(self, x_BTD: Tensor) -> Tensor:
        parts_BTNH = self.qkv(x_BTD).unflatten(-1, (3, self.heads, self.head_dim)).unbind(2)
        q_BNTH, k_BNTH, v_BNTH = (part.transpose(1, 2) for part in parts_BTNH)
        y_BNTH = F.scaled_dot_product_attention(
            q_BNTH,
            k_BNTH,
            v_BNTH,
            is_causal=True,
            dropout_p=self.dropout if self.training else 0.0,
        )
        return self.out(y_BNTH.transpose(1, 2).flatten(-2))


class GPTFeedForward(nn.Module):
    """Two matrices around a GELU in its tanh form (Hendrycks & Gimpel 2016, arXiv:1606.08415)."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.up = nn.Linear(model.d_model, model.d_ff, bias=model.ff_bias)
        self.down = nn.Linear(model.d_ff, model.d_model, bias=model.ff_bias)

    def forward(self, x_BTD: Tensor) -> Tensor:
        return self.down(F.gelu(self.up(x_BTD), approximate="tanh"))
