"""What a model that memlab does not describe keeps from one call to the next, from its config.

The config class of the installed transformers says of what kind each layer is, as it tells
DynamicCache; memlab.terms.kv_cache and memlab.terms.recurrent say what each kind keeps.
"""

from __future__ import annotations

from typing import Any

from ..base import titles
from ..base.message import Message
from ..ledger import Ledger
from ..recipe import Recipe
from ..run import Run, rules
from ..terms import recurrent
from ..terms.kv_cache import mla_cache, windowed_cache
from .causal import Causal
from .causal_at_rest import REMEDY, at_rest, check_positions

FULL = ("full_attention",)
WINDOWED = ("sliding_attention", "chunked_attention")
RECURRENT = ("linear_attention",)
# What says how much is read, and what leaves a cache as it is: how a call is computed, and of which
# tokens it gives logits.
CALL = ("phase", "batch", "tokens", "backend", "attention", "kernel", "logits", "inference_mode")
PLAIN = ("bf16", "fp16", "fp32")
# Families whose layers keep something else than their config's kinds of layers say.
OTHERWISE = ("beam", "mimo_v2_flash", "mllama")
NOTHING = "dummy"  # a layer without attention, or one that reads the cache of another
# Keys of a config for a layer with a state, by the families that name them so: heads, their width,
# the state's width, groups and kernel of the convolution before it.
MAMBA_2 = (
    ("num_heads", "head_dim", "state_size", "n_groups", "conv_kernel"),
    ("mamba_n_heads", "mamba_d_head", "mamba_d_state", "mamba_n_groups", "mamba_d_conv"),
    ("mamba_num_heads", "mamba_head_dim", "ssm_state_size", "n_groups", "conv_kernel"),
    (
        *("linear_num_value_heads", "linear_value_head_dim", "linear_key_head_dim"),
        *("linear_num_key_heads", "linear_conv_kernel_dim"),
    ),
)


def after_call(model: Causal, recipe: Recipe, run: Run) -> Ledger:
    """What is there when a call is over: the weights, and the cache that it hands to the next.

    Unit        bytes; column `derived`
    Leaves out  buffers, logits, and all that lives only during the call
    Raises      ValueError as `cache` and `at_rest`, for weights in a format that no cache has, for
                autocast, and for a field of the run that says another call
    """
    rules.only(run, CALL, f"the cache of a {model.family}", REMEDY)
    check_positions(model, run)
    if recipe.autocast:
        raise ValueError(
            f"autocast={recipe.autocast!r}: the cache of a {model.family} is described without it; "
            "memlab trace runs it"
        )
    if recipe.weights not in PLAIN:
        raise ValueError(f"weights in {recipe.weights}: a cache is described in {', '.join(PLAIN)}")
    prompt = run.phase == "prefill"
    tokens = (run.tokens or 0) + (not prompt)
    figures = {
        "weights": at_rest(model, recipe)["weights"].derived or 0,
        "kv_cache": cache(model, run.batch, tokens, prompt=prompt, format=recipe.weights),
    }
    what = titles.dotted(model.name, recipe.name)
    title = Message(titles.AFTER_A_CALL, what=what, phase=run.phase, tokens=f"{tokens:,}")
    return Ledger.of("derived", figures, title=title)


def cache(
    model: Causal, batch: int, tokens: int, *, prompt: bool = False, format: str = "bf16"
) -> int:
    """Bytes of the cache after so many tokens.

    Formula     sum over layers: keys and values of min(T, W) tokens; a latent and a rotary key; a
                state and the inputs of a convolution; nothing where another layer's cache is read
    prompt      all were read at once: a windowed layer then holds a slice of all of their keys,
                until the step after. Otherwise the last token was read alone
    Unit        bytes, a whole number
    Source      transformers: cache_utils.py, get_layer_types_and_kwargs; the config's own keys
    Leaves out  the 8 bytes in which a windowed layer counts
    Raises      ValueError for a kind of layer whose cache is not described, by its name
    """
    from transformers.cache_utils import get_layer_types_and_kwargs

    if model.family in OTHERWISE:
        raise ValueError(f"the cache of a {model.family} is not described; memlab trace runs it")
    kinds, more = get_layer_types_and_kwargs(model.text)
    total = 0
    for kind, own, layer in zip(kinds, more, model.text.per_layer_config, strict=True):
        if kind == NOTHING:
            continue
        if kind in RECURRENT:
            total += _recurrent(model.family, layer, batch, format)
        elif kind in FULL + WINDOWED:
            window = None if prompt else own.get("sliding_window")
            total += _attention(layer, window, {"batch": batch, "tokens": tokens, "format": format})
        else:
            raise ValueError(
                f"{kind} layers of a {model.family}: their cache is not described; memlab trace "
                "runs it"
            )
    return total


def _attention(layer: Any, window: int | None, sizes: dict[str, Any]) -> int:
    """One layer with keys and values, or with a latent of them."""
    latent, rope = (getattr(layer, key, None) for key in ("kv_lora_rank", "qk_rope_head_dim"))
    if latent and rope:
        return mla_cache(1, latent=latent, rope=rope, **sizes)
    heads = layer.num_attention_heads
    kv_heads = getattr(layer, "num_key_value_heads", None) or heads
    if getattr(layer, "multi_query", False) and not getattr(layer, "new_decoder_architecture", 0):
        kv_heads = 1
    width = getattr(layer, "head_dim", None) or layer.hidden_size // heads
    return windowed_cache([window], kv_heads=kv_heads, head_dim=width, **sizes)


def _recurrent(family: str, layer: Any, batch: int, format: str) -> int:
    """One layer with a state: of Mamba-2, or of gated linear attention."""
    for keys in MAMBA_2:
        found: list[Any] = [getattr(layer, key, None) for key in keys]
        if not all(isinstance(size, int) and size > 0 for size in found):
            continue
        heads, width, wide, groups, kernel = found
        channels = heads * width + 2 * groups * wide
        held = recurrent.state(1, heads=heads, head_dim=width, state_dim=wide, batch=batch)
        return held + recurrent.convolution(
            1, channels=channels, kernel=kernel, batch=batch, format=format
        )
    raise ValueError(
        f"linear_attention layers of a {family}: their state is not described; memlab trace runs it"
    )
