"""What else of a model changes the order of its step: its layers' kinds, and forms of a family.

A form is what values of a config make of a family's step where it has more than one.
"""

from __future__ import annotations

from ..model.mixtures import groups
from ..step import keys
from ..step.windows import turning, windows

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    from ..model import Model
    from ..run import Run

PLAIN = "plain"
# What makes a form, as `features` tells it, and its name; a family that is not here has one.
FORMS: dict[str, dict[tuple[Any, ...], str]] = {
    "phi3": {
        ("default", 1.0): PLAIN,
        ("longrope", 1.0): "long",
        ("longrope", 0.75): "long-part",
    },
    "glm4": {(0.5, True): PLAIN, (0.5, False): "unbiased"},
    "gemma2": {(True, True): PLAIN},
    "gemma3_text": {(False,): PLAIN},
    "qwen3_moe": {(False,): PLAIN, (True,): "adds-to-one"},
    "qwen2_moe": {(False,): PLAIN},
    "olmoe": {(False,): PLAIN},
    "glm4_moe": {
        (0.5, True, True, False, (1, 1)): PLAIN,
        (0.5, True, True, True, (1, 1)): "normed",
    },
}
# Families whose attention, told to be SDPA, has no kernel here: it is written out.
EAGER_ALONE = ("gemma2", "gpt_oss")


def features(model: Model) -> tuple[Any, ...]:
    """The values that tell the forms of a family from each other."""
    family, config = model.family, model.config
    if family == "phi3":
        return (keys.rope_type(config), keys.rotary_share(family, config))
    if family == "glm4":
        return (keys.rotary_share(family, config), model.qkv_bias)
    if family == "gemma2":
        return tuple([keys.caps(model, key) for key in sorted(keys.CAPS[family])])
    if family == "gemma3_text":
        return (keys.caps(model, "final_logit_softcapping"),)
    if family in ("qwen3_moe", "qwen2_moe", "olmoe"):
        return (bool(config.get("norm_topk_prob", False)),)
    if family == "glm4_moe":
        return (
            keys.rotary_share(family, config),
            bool(config.get("norm_topk_prob", True)),
            model.qkv_bias,
            model.qk_norm,
            groups(family, config),
        )
    return ()


def form_of(model: Model) -> str:
    """The name of a model's form, or nothing where it has one that was not counted."""
    if model.family not in FORMS:
        return PLAIN
    return FORMS[model.family].get(features(model), "")


def table_of(model: Model, run: Run) -> str:
    """The family whose moments are those of this step: its own, or one that is the same then."""
    attention = attention_of(model, run)
    if model.family in ("mistral", "ministral") and attention in ("windowed", "padded"):
        return "mistral"
    if model.family == "mistral" or (model.family == "ministral" and attention == "sdpa"):
        return "llama"
    return model.family


def attention_of(model: Model, run: Run) -> str:
    """The attention of a step: eager, sdpa, or with a mask: windowed, and padded to 8 tokens."""
    usual = "eager" if model.family in EAGER_ALONE else "sdpa"
    told = keys.attention(model.config, run.attention, usual)
    tokens = run.tokens or 0
    near, _ = windows(model, run.window)
    if told == "sdpa" and near and tokens >= near:
        return "padded" if tokens % 8 else "windowed"
    return told


def layers_of(model: Model, run: Run) -> list[int]:
    """The kind of each layer, 0 or 1, as far as its bytes are others.

    Formula     1 where positions turn nothing, where a layer has no experts, or where it sees all
                tokens and its neighbours do not
    """
    family = model.family
    if family in ("smollm3", "cohere2"):
        return [0 if turns else 1 for turns in turning(model)]
    if model.dense_layers:
        return [1 if layer in model.dense_layers else 0 for layer in range(model.layers)]
    if family == "gemma3_text":
        return [0 if slides else 1 for slides in windows(model, run.window)[1] or ()]
    return [0] * model.layers


def pattern(kinds: list[int]) -> str:
    """A name for the kinds of a model's layers: alike, or those of the first and the last."""
    return "alike" if not sum(kinds) else f"{kinds[0]}-{kinds[-1]}"
