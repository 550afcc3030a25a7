"""Sliding windows of a model's layers, as transformers reads them from a config.json."""

from __future__ import annotations

from ..model import Model
from ..model.believed import KINDS

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Sequence

ALTERNATING = ("qwen2", "qwen3", "qwen2_moe")  # families whose layers are of two kinds
# Families whose layers all have the window, if it is asked for, and that of their classes.
EVERY = {"mixtral": None, "qwen3_moe": 4096}
CLASS_WINDOW = 4096  # MistralConfig's, where a config says nothing


def windows(model: Model, window: int | None = None) -> tuple[int | None, tuple[bool, ...] | None]:
    """Positions that a token sees, itself included, or None; and which layers have that window.

    window      of the mistral family, whose layers all have it: what a run says (0: none), or None:
                what the config or its class says
    returns     None in the place of the layers where all of them, or none, have the window
    Source      transformers 5.23: configuration_qwen2.py, configuration_qwen3.py,
                configuration_qwen2_moe.py
    Raises      ValueError for kinds of layers that are not described
    """
    config = model.config
    if model.family == "mistral":
        told = config.get("sliding_window", CLASS_WINDOW) if window is None else window
        return told or None, None
    if model.family in EVERY:
        asked = model.family == "mixtral" or config.get("use_sliding_window")
        size = config.get("sliding_window", EVERY[model.family]) if asked else None
        return size or None, None
    if window is not None:
        raise ValueError(f"window={window} is for mistral; of {model.family} the config says it")
    if model.family == "gpt_oss":
        size = config.get("sliding_window", 128)
        if size is None:
            raise ValueError("sliding_window is null; gpt_oss needs a whole number")
        told = config.get("layer_types") or [KINDS[i % 2 == 0] for i in range(model.layers)]
        if len(told) != model.layers:
            raise ValueError(f"layer_types names {len(told)} layers; the model has {model.layers}")
        return size, tuple(kind == KINDS[1] for kind in told)
    if model.family not in ALTERNATING:
        return None, None
    size = config.get("sliding_window", 4096) if config.get("use_sliding_window") else None
    kinds: Sequence[str] | None = config.get("layer_types")
    if kinds is None:
        turn = config.get("max_window_layers", 28)
        mixed = model.family == "qwen2_moe"  # every second layer, below that number
        slides = [(i < turn and i % 2 == 0) if mixed else i >= turn for i in range(model.layers)]
        kinds = [KINDS[size is not None and slides[i]] for i in range(model.layers)]
    if len(kinds) != model.layers:
        raise ValueError(f"layer_types names {len(kinds)} layers; the model has {model.layers}")
    for kind in kinds:
        if kind not in KINDS:
            raise ValueError(f"layer_types has {kind!r}, not described; known: {', '.join(KINDS)}")
    if KINDS[1] not in kinds and (model.family != "qwen2_moe" or size is None):
        return None, None
    if size is None:
        raise ValueError("layer_types has 'sliding_attention', but use_sliding_window is not true")
    return size, tuple(kind == KINDS[1] for kind in kinds)
