"""The working set of one layer that keeps nothing for backward, operator by operator.

R rows (B · T tokens that are read at once) · D model width · F feed-forward width · N query heads ·
K key/value heads · H head width · V vocabulary · b bytes

A layer's tensors go as soon as the next operator has read them. Written down here are those of
memlab's TinyLlama and TinyGPT on a CPU, with the flash kernel of scaled_dot_product_attention and
nothing compiled. With a cache it is memlab.lab.generate that reads the tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...families import record_of
from ...model import Model
from ...terms.kv_cache import growth, kv_cache
from ...terms.logits import logits as logit_bytes
from ...units import whole

WIDTHS = {"fp32": 4, "bf16": 2, "fp16": 2}
CACHES = ("none", "preallocated", "growing")
BUILT = ("llama", "mistral", "qwen2", "qwen3", "gpt2")  # as memlab.lab.models builds them
FREE = ("tied", "qkv_bias", "out_bias", "ff_bias")  # flags that change no working set


@dataclass(frozen=True)
class Moment:
    """One operator of the last layer or around it, and what is alive right after it.

    Unit        bytes
    """

    name: str
    activations: int
    kv_cache: int = 0
    logits: int = 0

    @property
    def bytes(self) -> int:
        return self.activations + self.kv_cache + self.logits


def moments(
    model: Model,
    batch: int,
    tokens: int,
    format: str = "bf16",
    *,
    cache: str = "none",
    capacity: int | None = None,
    past: int = 0,
) -> list[Moment]:
    """The moments of a forward pass that can be its peak, in order, in the last layer.

    Shapes      `tokens` are read at once, after `past` that are in the cache
    Unit        bytes, weights, buffers and inputs not included
    Source      memlab.lab.models and memlab.lab.generate
    Leaves out  moments that another one covers whatever the shape, unless
                `memlab.step.closed.quantized` needs them
    Raises      ValueError for a family, flag, format or cache that is not known here, for no rows,
                and for more tokens than the cache or the positions can hold
    """
    b = _checked(model, batch, tokens, format, cache, past)
    rows, gpt = batch * tokens, model.family == "gpt2"
    x, f = rows * model.d_model * b, rows * model.d_ff * b
    held = _cache(model, batch, tokens, past, format, cache, capacity)
    before, after = held["before"], held["after"]
    # Learned positions: their numbers (int64) live as long as the forward pass.
    numbers = 8 * tokens if gpt else 0
    found = []

    def moment(name: str, activations: int, kept: int, logits: int = 0) -> None:
        found.append(Moment(name, activations + numbers, kept, logits))

    if gpt:
        moment("embedding", 2 * x + tokens * model.d_model * b, held["start"])
    moment("attention_norm", x + _norm(model, rows, model.d_model, b), before)
    if gpt:
        attention = _gpt_attention(model, rows, x, b)
    elif cache == "none":
        attention = _llama_attention(model, rows, x, b)
    else:
        attention = _cached_attention(model, rows, x, b)
    # In here, beside its own tensors: the stream x and its normalized copy.
    for name, size, when in attention:
        moment(name, 2 * x + size, held[when])
    moment("attention_residual", 3 * x, after)
    # From here on two streams: the layer's input, which its caller holds, and the sum of both.
    moment("feed_forward_norm", 2 * x + _norm(model, rows, model.d_model, b), after)
    moment("feed_forward.up", 3 * x + (1 if gpt else 2) * f, after)
    # GELU: its input and result; SwiGLU: silu(gate), up and their product.
    moment("feed_forward", 3 * x + (2 if gpt else 3) * f, after)
    moment("feed_forward.down", 3 * x + f + x, after)
    moment("feed_forward_residual", 4 * x, after)
    # Without a cache every token has logits; with one, only the last of each sequence.
    last = rows if cache == "none" else batch
    moment("final_norm", x + _norm(model, last, model.d_model, b), after)
    normed = last * model.d_model * b
    moment("lm_head", x + normed, after, logit_bytes(last, vocab=model.vocab, format=format))
    return found


def _norm(model: Model, rows: int, width: int, b: int) -> int:
    """The work of one normalization, its result included, its input not.

    LayerNorm   the result, and mean and 1 / standard deviation of each row
    RMSNorm     decomposed on a CPU, in fp32: x / rms and that times the weight, and 1 / rms of each
                row; of a narrower x also its fp32 copy
    """
    if model.norm == "layernorm":
        return rows * width * b + 2 * rows * b
    return (2 if b == 4 else 3) * rows * width * 4 + 4 * rows


def _llama_attention(model: Model, rows: int, x: int, b: int) -> list[tuple[str, int, str]]:
    """(operator, bytes of attention's own tensors, when: the cache before or after growing)."""
    q, k = (rows * heads * model.head_dim * b for heads in (model.heads, model.kv_heads))
    held = q + 2 * k
    return [
        *_qk_norms(model, rows, b),
        ("rotate_q", held + 3 * q, "before"),  # two products and their sum
        ("rotate_k", held + q + 3 * k, "before"),
        ("attention", held + q + k + q + _lse(model, rows), "before"),
        ("attention.out", held + q + x, "before"),
    ]


def _cached_attention(model: Model, rows: int, x: int, b: int) -> list[tuple[str, int, str]]:
    """The same with a cache: keys and values go once the cache has them."""
    q, k = (rows * heads * model.head_dim * b for heads in (model.heads, model.kv_heads))
    return [
        *_qk_norms(model, rows, b),
        ("rotate_k", q + 2 * k + 3 * k, "before"),
        ("append", q + 2 * k + k, "append"),
        ("rotate_q", q + 3 * q, "after"),
        ("attention", q + q + _lse(model, rows), "after"),
        ("attention.out", q + q + x, "after"),
    ]


def _gpt_attention(model: Model, rows: int, x: int, b: int) -> list[tuple[str, int, str]]:
    """Queries, keys and values are views of one tensor, so all three live as long as one does."""
    q = rows * model.heads * model.head_dim * b
    return [
        ("append", 3 * q, "append"),
        ("attention", 3 * q + q + _lse(model, rows), "after"),
        ("attention.out", 3 * q + q + x, "after"),
    ]


def _qk_norms(model: Model, rows: int, b: int) -> list[tuple[str, int, str]]:
    if not model.qk_norm:
        return []
    q, k = (rows * heads * model.head_dim * b for heads in (model.heads, model.kv_heads))
    return [
        ("q_norm", q + _norm(model, rows * model.heads, model.head_dim, b), "before"),
        ("k_norm", q + k + _norm(model, rows * model.kv_heads, model.head_dim, b), "before"),
    ]


def _lse(model: Model, rows: int) -> int:
    """The flash kernel's log-sum-exp, fp32, one a row and head; thrown away under no_grad."""
    return 4 * rows * model.heads


def _cache(
    model: Model,
    batch: int,
    tokens: int,
    past: int,
    format: str,
    cache: str,
    capacity: int | None,
) -> dict[str, int]:
    """Bytes of the cache at the start, before, while and after the last layer's part grows."""
    if cache == "none":
        return {"start": 0, "before": 0, "append": 0, "after": 0}
    shape = {"kv_heads": model.kv_heads, "head_dim": model.head_dim, "batch": batch}
    total = past + tokens
    if cache == "preallocated":
        room = total if capacity is None else capacity
        if room < total:
            raise ValueError(f"capacity={capacity} is below the {total} tokens to hold")
        fixed = kv_cache(model.layers, **shape, tokens=room, format=format)
        return {"start": fixed, "before": fixed, "append": fixed, "after": fixed}
    if capacity is not None:
        raise ValueError(f"capacity={capacity}: a growing cache has none")
    after = kv_cache(model.layers, **shape, tokens=total, format=format)
    return {
        "start": kv_cache(model.layers, **shape, tokens=past, format=format),
        "before": after - kv_cache(1, **shape, tokens=tokens, format=format),
        "append": after + growth(**shape, tokens=total, new=tokens, format=format),
        "after": after,
    }


def _checked(model: Model, batch: int, tokens: int, format: str, cache: str, past: int) -> int:
    """Bytes of one number, after everything has been checked by name."""
    if model.family not in BUILT:
        raise ValueError(f"family {model.family!r} is not known here; known: {', '.join(BUILT)}")
    usual = {"embed_dim": model.d_model, **record_of(model.family).flags}
    for flag, default in usual.items():
        free = flag in FREE or (flag == "qk_norm" and model.family != "gpt2")
        if not free and getattr(model, flag) != default:
            raise ValueError(
                f"{flag}={getattr(model, flag)!r} is not known here; "
                f"in the {model.family} family it is {default!r}"
            )
    if format not in WIDTHS:
        raise ValueError(f"format={format!r} is not one to compute in; known: {', '.join(WIDTHS)}")
    if cache not in CACHES:
        raise ValueError(f"unknown cache {cache!r}; known: {', '.join(CACHES)}")
    for name, value in (("batch", batch), ("tokens", tokens)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"{name}={value!r}; a whole number above zero is needed")
    if whole("past", past) + tokens > model.positions:
        raise ValueError(
            f"T={past + tokens} is above the {model.positions} positions of {model.name}"
        )
    return WIDTHS[format]
