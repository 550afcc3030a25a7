"""Sliding windows of a model's layers, as transformers reads them from a config.json."""

from __future__ import annotations

from ..families import CHUNKED, KINDS, record_of
from ..model import Model

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Sequence


def windows(model: Model, window: int | None = None) -> tuple[int | None, tuple[bool, ...] | None]:
    """Positions that a token sees, itself included, or None; and which layers have that window.

    window      of the mistral family, whose layers all have it: what a run says (0: none), or None:
                what the config or its class says
    returns     None in the place of the layers where all of them, or none, have the window
                in all of them, but not for families that make both masks anyway
    Source      transformers: configuration_qwen2.py, configuration_gemma2.py and their like
    Raises      ValueError for kinds of layers that are not described
    """
    config, known = model.config, record_of(model.family)
    if known.windows == "run":
        told = config.get("sliding_window", known.window) if window is None else window
        return told or None, None
    if window is not None:
        raise ValueError(f"window={window} is for mistral; of {model.family} the config says it")
    if known.windows == "chunks":
        told = config.get("layer_types")
        chunked = turning(model) if told is None else [kind == CHUNKED[1] for kind in told]
        return config.get("attention_chunk_size", known.window), tuple(chunked)
    if known.windows == "all":
        return config.get("sliding_window"), None
    if known.windows == "asked":
        asked = config.get("use_sliding_window")
        return (config.get("sliding_window", known.window) if asked else None), None
    if not known.windows:
        return None, None
    size = config.get("sliding_window", known.window)
    if known.windows == "both":
        if size is None:
            raise ValueError(f"sliding_window is null; {model.family}'s masks need a number")
    elif not config.get("use_sliding_window"):
        size = None
    kinds: Sequence[str] | None = config.get("layer_types")
    if kinds is None:
        kinds = _usual(model, size)
    if len(kinds) != model.layers:
        raise ValueError(f"layer_types names {len(kinds)} layers; the model has {model.layers}")
    for kind in kinds:
        if kind not in KINDS:
            raise ValueError(f"layer_types has {kind!r}, not described; known: {', '.join(KINDS)}")
    both = known.windows == "both" or (model.family == "qwen2_moe" and size is not None)
    if KINDS[1] not in kinds and not both:
        return None, None
    if size is None:
        raise ValueError("layer_types has 'sliding_attention', but use_sliding_window is not true")
    return size, tuple(kind == KINDS[1] for kind in kinds)


def _usual(model: Model, size: int | None) -> list[str]:
    """The kind of each layer where a config names none."""
    if size is None:
        return [KINDS[0]] * model.layers
    known = record_of(model.family)
    if known.windows == "both":
        every = known.window_every or model.layers + 1
        if known.reads("sliding_window_pattern"):
            every = model.config.get("sliding_window_pattern", every)
        return [KINDS[(i + 1) % every != 0] for i in range(model.layers)]
    if known.reads("no_rope_layers"):  # those that turn nothing
        return [KINDS[not turns] for turns in turning(model)]
    first = model.config.get("max_window_layers", 28)
    if model.family == "qwen2_moe":  # every second layer, below that number
        return [KINDS[i < first and i % 2 == 0] for i in range(model.layers)]
    return [KINDS[i >= first] for i in range(model.layers)]


def turning(model: Model) -> list[bool]:
    """Of each layer, whether rotary positions turn its queries and keys.

    Source      transformers: configuration_smollm3.py
    """
    if model.family == "cohere2":  # those that have the window
        return list(windows(model)[1] or ())
    if not record_of(model.family).reads("no_rope_layers"):
        return [True] * model.layers
    told = model.config.get("no_rope_layers")
    interval = model.config.get("no_rope_layer_interval", 4)
    if told is None:
        return [(i + 1) % interval != 0 for i in range(model.layers)]
    if len(told) != model.layers:
        raise ValueError(f"no_rope_layers names {len(told)} layers; the model has {model.layers}")
    return [bool(flag) for flag in told]


def first_apart(model: Model, tokens: int | None = None) -> int | None:
    """How many first layers are unlike all others; None where layers of two kinds take turns.

    Of two kinds    with a window, positions or experts, and without
    tokens          of a whole text: if the window is longer, layers that take turns one by one
                    are alike, since no mask is smaller than another; None: texts of any length
    Raises          as `windows`
    """
    near, sliding = windows(model)
    if sliding is not None:
        by_turns = all(sliding[i] != sliding[i - 1] for i in range(1, len(sliding)))
        if tokens is None or near is None or tokens >= near or not by_turns:
            return None
    if len(set(turning(model))) > 1:
        return None
    dense = model.dense_layers
    return len(dense) if dense == tuple(range(len(dense))) else None
