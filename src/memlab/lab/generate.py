"""Decoding with a cache of keys and values, for TinyLlama and TinyGPT, in one sitting.

Letters     B batch, T tokens read at once, S tokens in the cache afterwards, D model width,
            N query heads, K key/value heads, H head width, V vocabulary
"""

from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor

from ..model import Model
from .models import TinyGPT, TinyLlama
from .models.gpt import GPTAttention, GPTLayer
from .models.llama import LlamaAttention, LlamaLayer, rotate


class Cache:
    """Room for `capacity` tokens, allocated at once; `length` of them are in use.

    Shapes      keys and values [B, K, capacity, H], one of each a layer
    Raises      ValueError when more tokens come than there is room for
    """

    def __init__(
        self,
        model: Model,
        batch: int,
        capacity: int,
        *,
        dtype: torch.dtype = torch.float32,
        device: str | torch.device = "cpu",
    ) -> None:
        shape = (batch, model.kv_heads, capacity, model.head_dim)
        self.keys, self.values = (
            [torch.zeros(shape, dtype=dtype, device=device) for _ in range(model.layers)]
            for _ in range(2)
        )
        self.length = 0

    def append(self, layer: int, k_BKTH: Tensor, v_BKTH: Tensor) -> tuple[Tensor, Tensor]:
        """Take in the keys and values of new tokens; returns those of all tokens, [B, K, S, H]."""
        end = self.length + k_BKTH.shape[-2]
        if end > self.keys[layer].shape[-2]:
            room = self.keys[layer].shape[-2]
            raise ValueError(f"{end} tokens for a cache with room for {room}")
        self.keys[layer][:, :, self.length : end] = k_BKTH
        self.values[layer][:, :, self.length : end] = v_BKTH
        return self.keys[layer][:, :, :end], self.values[layer][:, :, :end]


class GrowingCache(Cache):
    """As large as its tokens: each step writes a longer copy, and the old one lives until then."""

    def __init__(
        self,
        model: Model,
        batch: int,
        *,
        dtype: torch.dtype = torch.float32,
        device: str | torch.device = "cpu",
    ) -> None:
        super().__init__(model, batch, 0, dtype=dtype, device=device)

    def append(self, layer: int, k_BKTH: Tensor, v_BKTH: Tensor) -> tuple[Tensor, Tensor]:
        self.keys[layer] = torch.cat((self.keys[layer], k_BKTH), -2)
        self.values[layer] = torch.cat((self.values[layer], v_BKTH), -2)
        return self.keys[layer], self.values[layer]


@torch.no_grad()
def read(net: TinyLlama | TinyGPT, ids_BT: Tensor, cache: Cache) -> Tensor:
    """Read new tokens into the cache; returns the logits of the last one.

    Shapes      ids [B, T]; returns [B, V]
    Leaves out  a prompt in several pieces: many tokens at once only while the cache is empty
    Raises      ValueError for several tokens after the first ones, and for more tokens than the
                cache or the model's positions can hold
    """
    T, past = ids_BT.shape[1], cache.length
    longest = net.positions.num_embeddings if isinstance(net, TinyGPT) else len(net.cos_TH)
    if past + T > longest:
        raise ValueError(f"{past + T} tokens; the model has {longest} positions")
    if T > 1 and past > 0:
        raise ValueError(f"{T} tokens after {past}: read the prompt at once, then one by one")
    if isinstance(net, TinyGPT):
        positions_T = torch.arange(past, past + T, device=ids_BT.device)
        x_BTD = net.embedding(ids_BT) + net.positions(positions_T)
        for i, layer in enumerate(net.layers):
            x_BTD = gpt_layer(cast(GPTLayer, layer), x_BTD, cache, i)
    else:
        x_BTD = net.project_in(net.embedding(ids_BT))
        cos_TH, sin_TH = net.cos_TH[past : past + T], net.sin_TH[past : past + T]
        for i, layer in enumerate(net.layers):
            x_BTD = llama_layer(cast(LlamaLayer, layer), x_BTD, cos_TH, sin_TH, cache, i)
    cache.length += T
    # Only the last token's logits are needed: V numbers a sequence, not T · V.
    x_B1D = net.final_norm(x_BTD[:, -1:])
    return net.lm_head(x_B1D if isinstance(net, TinyGPT) else net.project_out(x_B1D))[:, 0]


def generate(net: TinyLlama | TinyGPT, ids_BT: Tensor, cache: Cache, *, tokens: int) -> Tensor:
    """Continue a prompt with the most likely token, again and again.

    Shapes      ids [B, T], the prompt; returns [B, T + tokens]
    Raises      ValueError for a prompt and tokens that the cache or the positions cannot hold
    """
    for _ in range(tokens):
        new_BT = ids_BT[:, cache.length :]
        ids_BT = torch.cat((ids_BT, read(net, new_BT, cache).argmax(-1, keepdim=True)), -1)
    return ids_BT


def llama_layer(
    layer: LlamaLayer, x_BTD: Tensor, cos_TH: Tensor, sin_TH: Tensor, cache: Cache, i: int
) -> Tensor:
    x_BTD = x_BTD + llama_attention(
        layer.attention, layer.attention_norm(x_BTD), cos_TH, sin_TH, cache, i
    )
    return x_BTD + layer.feed_forward(layer.feed_forward_norm(x_BTD))


def llama_attention(
    attention: LlamaAttention,
    x_BTD: Tensor,
    cos_TH: Tensor,
    sin_TH: Tensor,
    cache: Cache,
    i: int,
) -> Tensor:
    """LlamaAttention.forward, with keys rotated once, on their way into the cache."""
    H = attention.head_dim
    q_BNTH = attention.q_norm(attention.q(x_BTD).unflatten(-1, (-1, H))).transpose(1, 2)
    k_BKSH = attention.k_norm(attention.k(x_BTD).unflatten(-1, (-1, H))).transpose(1, 2)
    v_BKSH = attention.v(x_BTD).unflatten(-1, (-1, H)).transpose(1, 2)
    k_BKSH, v_BKSH = cache.append(i, rotate(k_BKSH, cos_TH, sin_TH), v_BKSH)
    q_BNTH = rotate(q_BNTH, cos_TH, sin_TH)
    y_BNTH = F.scaled_dot_product_attention(
        q_BNTH,
        k_BKSH,
        v_BKSH,
        is_causal=x_BTD.shape[1] > 1,  # one new token may look at all of the cache
        enable_gqa=attention.grouped,
    )
    return attention.out(y_BNTH.transpose(1, 2).flatten(-2))


def gpt_layer(layer: GPTLayer, x_BTD: Tensor, cache: Cache, i: int) -> Tensor:
    x_BTD = x_BTD + gpt_attention(layer.attention, layer.attention_norm(x_BTD), cache, i)
    return x_BTD + layer.feed_forward(layer.feed_forward_norm(x_BTD))


def gpt_attention(attention: GPTAttention, x_BTD: Tensor, cache: Cache, i: int) -> Tensor:
    """GPTAttention.forward, with keys and values taken from the cache."""
    parts_BTNH = attention.qkv(x_BTD).unflatten(-1, (3, attention.heads, attention.head_dim))
    q_BNTH, k_BNSH, v_BNSH = (part.transpose(1, 2) for part in parts_BTNH.unbind(2))
    k_BNSH, v_BNSH = cache.append(i, k_BNSH, v_BNSH)
    y_BNTH = F.scaled_dot_product_attention(q_BNTH, k_BNSH, v_BNSH, is_causal=x_BTD.shape[1] > 1)
    return attention.out(y_BNTH.transpose(1, 2).flatten(-2))
