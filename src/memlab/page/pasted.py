"""What the page takes of a config.json: plain values of known keys, of the whole or of its text."""

from __future__ import annotations

from ..base.message import Message
from ..base.quoted import shown
from ..families import NOTHING, has_config, record_of
from . import words as say

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

LARGEST = 10**9  # of any whole number that somebody may give
MOST_LAYERS = 10_000  # more are no model, and take a page too long
LONGEST = 120  # characters of a name
ROTARY = ("rope_parameters", "rope_scaling")  # keys of a config with an object inside
# Of which these change a step, or are what a kind of scaling cannot be without.
IN_ROTARY: tuple[str, ...] = ("rope_type", "type", "partial_rotary_factor")
IN_ROTARY += ("factor", "low_freq_factor", "high_freq_factor")
LISTS: tuple[str, ...] = ("layer_types", "no_rope_layers", "moe_layers", "mlp_only_layers")
LISTS += ("short_factor", "long_factor")
INSIDE = ("text_config", "attn_config", "ffn_config", "decoder")  # objects that hold sizes
REFUSED = ("quantization_config", "per_layer_config", "pruned_heads")
WHOLE = "_part_of"  # the model_type of the whole, in the config of its text
WITHOUT = "_without"  # what else the whole has
THINKER = "thinker_config"  # of a model that also speaks: the object around its text_config
ENDLESS = float("inf")


def config_of(config: Any) -> dict[str, Any]:
    """A config.json, less all that changes no byte: memlab.model.fields knows each key.

    Raises      ValueError, in one line, for anything that is no config
    """
    if not isinstance(config, dict):
        raise ValueError(say.NO_CONFIG)
    from ..model.fields import kinds  # fetched with the first config, as the next
    from ..model.type_kinds import check

    check(config)
    family = config.get("model_type")
    if not isinstance(family, str):
        raise ValueError(say.NO_FAMILY)
    if not has_config(family):
        return text_part(config) or flat(config)
    made: dict[str, Any] = {"model_type": family}
    rows = kinds(family)
    for key in sorted(rows):
        if key in ROTARY and isinstance(config.get(key), dict):
            inner = config[key]
            made[key] = {name: plain(name, inner[name]) for name in IN_ROTARY if name in inner}
            for name in LISTS:
                if isinstance(inner.get(name), list):
                    made[key][name] = [plain(name, each) for each in inner[name]]
        elif key in ROTARY and config.get(key) is not None:
            raise ValueError(Message(say.NO_OBJECT, key=key, value=shown(config[key])))
        elif key in LISTS and isinstance(config.get(key), list):
            made[key] = [plain(key, each) for each in config[key]]
        elif key == "quantization_config" and config.get(key) is not None:
            made[key] = "..."  # no word of it is of any language; MicroPython writes no "…"
        elif key in config and (rows[key] != NOTHING or key in ("pad_token_id", "use_cache")):
            made[key] = plain(key, config[key])  # a row or null; keys and values of kept outputs
    layers = made.get(record_of(family).shape["layers"][0])
    if isinstance(layers, int) and layers > MOST_LAYERS:
        raise ValueError(Message(say.TOO_DEEP, layers=f"{layers:,}", most=f"{MOST_LAYERS:,}"))
    if "_name_or_path" in config:
        made["_name_or_path"] = plain("_name_or_path", config["_name_or_path"])
    return made


def text_part(config: Any) -> dict[str, Any] | None:
    """The config of the text inside another one, where that is of a type that is described.

    Raises      ValueError for weights that are quantized: their own refusal
    """
    try:
        return described(config)
    except (ValueError, TypeError):
        if config.get("quantization_config") is not None:
            raise
    return None  # a key that is not described: the table of its type may have it


def text_of(config: Any) -> dict[str, Any] | None:
    """The config of the text inside another one, as it stands there."""
    found = part_with_text(config).get("text_config")
    return found if isinstance(found, dict) else None


def part_with_text(config: Any) -> dict[str, Any]:
    """The config whose text_config it is: the whole, or its thinker."""
    inner = config.get(THINKER)
    if isinstance(inner, dict) and not isinstance(config.get("text_config"), dict):
        return inner
    return config  # type: ignore[no-any-return]


def described(config: Any) -> dict[str, Any] | None:
    """The config of the text inside another one, as the page takes it; None where memlab has no
    closed form of that type.

    Raises      ValueError, TypeError as config_of and Model.from_config
    """
    text = text_of(config)
    if text is None or not has_config(text.get("model_type")):
        return None
    from ..model import Model
    from .wholes import as_own_model, without

    made = config_of(as_own_model(text, config))
    Model.from_config(made)
    made[WHOLE], made[WITHOUT] = config["model_type"], without(part_with_text(config))
    return made


def flat(config: Any) -> dict[str, Any]:
    """A config's keys, those of the objects that hold sizes among them.

    Of a thinker_config the keys are those of the whole, and the model_type too: a type of its own.
    """
    inner = config.get(THINKER)
    if isinstance(inner, dict) and isinstance(inner.get("text_config"), dict):
        made = flat(inner)
        made[WHOLE] = config["model_type"]
        return made
    made = {}
    for key in config:
        value = config[key]
        if key in INSIDE and isinstance(value, dict):
            for name in value:
                made[f"{key}.{name}"] = finite(value[name])
        else:
            made[key] = finite(value)
    return made


def finite(value: Any) -> Any:
    """A value in which Infinity, which JSON lacks, is a text; transformers writes it as an object.

    Example     {"__float__": "Infinity"} -> "Infinity"
    """
    if isinstance(value, dict) and list(value) == ["__float__"]:
        return value["__float__"]
    if isinstance(value, list):
        return [finite(each) for each in value]
    return "Infinity" if isinstance(value, float) and value == ENDLESS else value


def plain(key: str, value: Any) -> Any:
    """A number, truth value or short text as it is.

    Raises      ValueError for anything else
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if not -1 <= value <= LARGEST:
            raise ValueError(Message(say.NO_SIZE, key=key, value=shown(value), most=f"{LARGEST:,}"))
        return value
    if isinstance(value, float):
        if not -1e9 <= value <= 1e9:
            raise ValueError(Message(say.BEYOND, key=key, value=shown(value)))
        return value
    if isinstance(value, str):
        return value[:LONGEST]
    raise ValueError(Message(say.NO_VALUE, key=key, value=shown(value)))
