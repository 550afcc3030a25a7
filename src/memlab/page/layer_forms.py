"""What else of a model changes the order of its step: its layers' kinds, and forms of a family.

A form is what values of a config make of a family's step where it has more than one.
"""

from __future__ import annotations

from ..families import record_of
from ..model.mixtures import TOPK_METHODS, groups
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
    # Whether experts stand in groups, and whether queries have a latent, too.
    "deepseek_v3": {
        (True, True, True, True): PLAIN,
        (True, True, False, True): "one-group",
        (True, True, False, False): "one-group-direct",
    },
    "deepseek_v2": {(True, True): PLAIN, (False, False): "greedy-direct"},
    "olmo": {(False,): PLAIN, (True,): "cut"},
    "llama4_text": {(True, True, 1): PLAIN, (False, True, 1): "unnormed"},
}
# Layers of three kinds: how they follow each other, and the name of that.
TURNS, THREE = "2021", "2-1"
# Of families whose forms go with the kinds of their layers: those that each pattern has.
FORMS_OF: dict[str, dict[str, tuple[str, ...]]] = {
    "llama4_text": {"0-1": (PLAIN,), "0-0": (PLAIN,), THREE: ("unnormed",)}
}


def features(model: Model) -> tuple[Any, ...]:
    """The values that tell the forms of a family from each other."""
    family, config, latent = model.family, model.config, model.latent
    if family == "phi3":
        return (keys.rope_type(config), keys.rotary_share(family, config))
    if family == "glm4":
        return (keys.rotary_share(family, config), model.qkv_bias)
    if family == "gemma2":
        return tuple([keys.caps(model, key) for key in sorted(record_of(family).caps)])
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
    if family == "deepseek_v3":
        turned = (bool(config.get("norm_topk_prob", True)), config.get("rope_interleave", True))
        return turned + (groups(family, config)[0] > 1, bool(latent and latent.q_rank))
    if family == "deepseek_v2":
        limited = config.get("topk_method", TOPK_METHODS[0]) != TOPK_METHODS[0]
        told: Any = limited
        if limited and not 1 < groups(family, config)[0] < model.experts:
            told = None  # groups that leave nothing to choose
        return (told, bool(latent and latent.q_rank))
    if family == "olmo":
        return (config.get("clip_qkv") is not None,)
    if family == "llama4_text":
        tuned = bool(config.get("attn_temperature_tuning", True))
        return (bool(config.get("use_qk_norm", True)), tuned, model.experts_per_token)
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
    usual = "eager" if record_of(model.family).eager_alone else "sdpa"
    told = keys.attention(model.config, run.attention, usual)
    tokens = run.tokens or 0
    near, _ = windows(model, run.window)
    if told == "sdpa" and near and tokens >= near:
        return "padded" if tokens % 8 else "windowed"
    return told


def layers_of(model: Model, run: Run) -> list[int]:
    """The kind of each layer, 0 or 1, as far as its bytes are others.

    Formula     1 where positions turn nothing, where a layer has no experts, or where it sees all
                tokens and its neighbours do not; 2 more where one has two of these, or where its
                window is not that of those that turn
    """
    family = model.family
    if family == "llama4_text":
        return chunked(model, run)
    if family in ("smollm3", "cohere2"):
        return [0 if turns else 1 for turns in turning(model)]
    if model.dense_layers:
        return [1 if layer in model.dense_layers else 0 for layer in range(model.layers)]
    if family == "gemma3_text":
        return [0 if slides else 1 for slides in windows(model, run.window)[1] or ()]
    return [0] * model.layers


def chunked(model: Model, run: Run) -> list[int]:
    """The kinds of layers of llama4_text: whether they turn, and whether they have experts."""
    made = []
    turns, sliding = turning(model), windows(model, run.window)[1] or ()
    for layer in range(model.layers):
        kind = 0 if turns[layer] else 1
        if layer in model.dense_layers or bool(sliding[layer]) != turns[layer]:
            kind += 2
        made.append(kind)
    return made


def pattern(kinds: list[int]) -> str:
    """A name for the kinds of a model's layers: alike, or those of the first and the last.

    Layers of three kinds have one in one order alone, and nothing in another.
    """
    if max(kinds) > 1:
        wanted = [int(TURNS[layer % len(TURNS)]) for layer in range(len(kinds))]
        return THREE if kinds == wanted and not len(kinds) % len(TURNS) else ""
    return "alike" if not sum(kinds) else f"{kinds[0]}-{kinds[-1]}"
