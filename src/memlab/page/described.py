"""Of which steps the page has moments, and why it has none of the others.

Letters: L layers, D model width, F feed-forward width, N query heads, H head width, V vocabulary.
"""

from __future__ import annotations

from ..model import Model
from ..model.fields import DROPOUTS
from ..run import Run
from ..step import keys
from ..step.windows import windows
from . import words as say
from .peak import LEAST, SHOWN
from .request import shown

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

# Fields of a run that moments were made for; one that says another has none.
OF_RUN = (
    "batch",
    "tokens",
    "micro_batches",
    "attention",
    "dropout",
    "checkpoint",
    "loss",
    "optimizer_impl",
    "devices",
)
# Values of a config that the moments were made with, where others make another step: the classes'.
COUNTED: dict[str, dict[str, Any]] = {
    "gpt2": {"activation_function": "gelu_new", "reorder_and_upcast_attn": False},
    "opt": {"activation_function": "relu", "do_layer_norm_before": True, "layerdrop": 0},
    "gpt_neox": {"hidden_act": "gelu", "use_parallel_residual": True, "rotary_pct": 0.25},
}
# Families whose steps were counted for this page; of the others it knows what stays.
MEASURED = ("gpt2", "llama", "mistral", "qwen2", "qwen3", "gemma", "opt", "gpt_neox")
COUNTED_SHARE = 0.25  # rotary_pct by its newer name
ALWAYS_TIED = ("gpt2", "opt")
SQUARE = ALWAYS_TIED + ("gpt_neox",)


class Unknown(ValueError):
    """The peak is not described, for this reason."""


def check(model: Model, run: Run) -> None:
    """Refuse what there are no moments of.

    Raises      Unknown
    """
    reason = of_run(run) or of_model(model, run)
    if reason:
        raise Unknown(reason)


def of_run(run: Run) -> str:
    """What of the run there are no moments for, whatever the model is; or nothing."""
    devices = run.devices
    if devices.tensor > 1 or devices.pipeline > 1 or devices.context > 1:
        return say.DIVIDED
    if devices.zero > 1 and devices.data > 1:
        return say.ZERO.format(stage=devices.zero)
    if run.optimizer_loop == "forloop" or [name for name in run.said() if name not in OF_RUN]:
        return say.NO_KIND
    return ""


def of_model(model: Model, run: Run) -> str:
    """What of the model there are no moments for in such a run; or nothing."""
    if model.family not in MEASURED:
        return say.NO_FAMILY_STEP.format(family=model.family)
    if reason := _flags(model):
        return reason
    for name, size, least in (
        ("L", model.layers, SHOWN),
        ("D", model.d_model, LEAST["D"]),
        ("F", model.d_ff, LEAST["F"]),
        ("V", model.vocab, LEAST["V"]),
        ("N", model.heads, 2),
        (say.ROWS, run.rows, 64),
    ):
        if size < least:
            return say.SMALL.format(what=name, size=size, least=least)
    if model.head_dim % 8 or model.head_dim > 256:
        return say.HEADS.format(size=model.head_dim)
    return _keys(model, run)


def no_kind(model: Model, run: Run) -> str:
    """Why a kind of step is in no file: by the key of the config that asks for it, if one does."""
    told = DROPOUTS.get(model.family, {}) if run.dropout is None else {}
    for key in sorted(told):
        if model.config.get(key, told[key][1]) not in (None, told[key][1]):
            return say.KEY.format(key=key, value=shown(model.config[key]))
    if run.attention is None:
        for key in ("attn_implementation", "_attn_implementation"):
            if key in model.config:
                return say.KEY.format(key=key, value=shown(model.config[key]))
    return say.NO_KIND


def _flags(model: Model) -> str:
    """What of the model is not what its family does."""
    usual = Model(
        family=model.family,
        layers=model.layers,
        d_model=model.d_model,
        d_ff=model.d_ff,
        heads=model.heads,
        kv_heads=model.kv_heads,
        head_dim=model.head_dim,
        vocab=model.vocab,
        positions=model.positions,
        tied=model.family in ALWAYS_TIED or model.tied,
        name=model.name,
        config=model.config,
    )
    if usual != model:
        return say.DIFFERS.format(family=model.family)
    square = model.heads == model.kv_heads and model.heads * model.head_dim == model.d_model
    if model.family in SQUARE and not square:
        return say.SQUARE.format(family=model.family)
    return ""


def _keys(model: Model, run: Run) -> str:
    """What of the config makes a step other than those that were counted."""
    config, tokens = model.config, run.tokens or 0
    try:
        keys.check(model.family, config)
        near, sliding = windows(model, run.window)
    except ValueError as error:
        return str(error)
    if config.get("gradient_checkpointing") and run.checkpoint != "block":
        return say.KEY.format(key="gradient_checkpointing", value=True)
    counted = COUNTED.get(model.family, {})
    for key in sorted(counted):
        if config.get(key, counted[key]) != counted[key]:
            return say.KEY.format(key=key, value=shown(config[key]))
    kind = keys.rope_type(config)
    if kind in ("dynamic", "longrope") or (model.family == "gpt_neox" and kind != "default"):
        key = "rope_parameters" if config.get("rope_parameters") else "rope_scaling"
        return say.ROPE.format(key=key, value=shown(kind))
    rotary = config.get("rope_parameters") or config.get("rope_scaling") or {}
    share = rotary.get("partial_rotary_factor", COUNTED_SHARE)
    if model.family == "gpt_neox" and share != COUNTED_SHARE:
        return say.KEY.format(key="partial_rotary_factor", value=shown(share))
    if sliding is not None:
        return say.SLIDING
    if near is not None and (not isinstance(near, int) or tokens >= near):
        return say.WINDOW.format(tokens=f"{tokens:,}", window=shown(near))
    return ""
