"""What a config.json may say: a value is believed, or refused by name with what would be right.

Source      transformers 5.23, whose configuration classes check types, and whose models fail later
"""

from __future__ import annotations

from .families import MIXTURES
from .fields import DROPOUTS, HARMLESS, ONLY, kinds

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

DTYPES = ("float32", "bfloat16", "float16")
ATTENTIONS = ("sdpa", "eager", "flash_attention_2", "flash_attention_3", "flex_attention")
# Families whose classes ask for it, though their heads may have another width.
DIVIDED = ("llama", "gpt_neox")
UNSAID = (
    "qwen2",
    "qwen3_moe",
    "qwen2_moe",
    "olmoe",
    "glm4_moe",
)  # whose classes have no key head_dim
KINDS = ("full_attention", "sliding_attention")
FLAGS = (
    "use_cache",
    "gradient_checkpointing",
    "use_sliding_window",
    "use_parallel_residual",
    "do_layer_norm_before",
    "_remove_final_layer_norm",
    "scale_attn_weights",
    "scale_attn_by_inverse_layer_idx",
    "summary_use_proj",
    "summary_proj_to_labels",
    "norm_topk_prob",
)
# Families whose embedding treats the padding token apart, so that it must be one of its rows.
PADDED = ("llama", "mistral", "qwen2", "qwen3", "gemma", "opt") + MIXTURES
# Kinds of rotary base that scale a share of the head, where one is said.
SCALED = ("linear", "dynamic", "yarn", "longrope", "llama3")
PADDING = {"gemma": 0, "opt": 1, "olmoe": 1}  # of the classes, where a config says nothing


def check(family: str, config: Mapping[str, Any]) -> None:
    """Refuse what transformers would fail on, and what is not described of this family.

    Raises      ValueError or TypeError that names key and value
    """
    known = kinds(family)
    for key, value in config.items():
        if known.get(key) == ONLY:
            _only(key, value)
        elif key in FLAGS and key in known:
            _kind(key, value, bool, "true or false is needed")
        elif key in DROPOUTS.get(family, {}):
            probability(key, value)
    for key in ("dtype", "torch_dtype"):
        _dtype(key, config.get(key))
    for key in ("attn_implementation", "_attn_implementation"):
        _one_of(key, config.get(key), ATTENTIONS)
    if known.get("sliding_window") != ONLY and known.get("sliding_window"):
        _windows(family, config)
    if "rope_parameters" in known:
        _rotary(family, config)
    if family in UNSAID and "head_dim" in config and config["head_dim"] is None:
        raise TypeError(f"head_dim is null; {family} needs a whole number, or leave it out")
    if family in PADDED:
        _padding(config.get("pad_token_id", PADDING.get(family)), config.get("vocab_size"))


def check_heads(family: str, fields: Mapping[str, Any]) -> None:
    """Rotary positions turn pairs of values, in families that turn the whole head."""
    told, width, heads = fields.get("head_dim"), fields["d_model"], fields["heads"]
    if "head_dim" not in fields or not heads:
        return
    if family in DIVIDED and width % heads:
        raise ValueError(f"D={width} is not a multiple of N={heads}, which {family} asks for")
    if told is None and width % heads:
        return  # Model says so
    size = width // heads if told is None else told
    if size % 2:
        raise ValueError(f"H={size} (width of a head) is odd; rotary positions turn pairs")


def probability(key: str, value: Any) -> None:
    """A probability of dropout, from 0 to below 1."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{key}={value!r} is a {type(value).__name__}; a number is needed")
    if not 0 <= value < 1:
        raise ValueError(f"{key}={value!r} is not a probability from 0 to below 1")


def _only(key: str, value: Any) -> None:
    values, remedy = HARMLESS[key]
    for one in values:
        if value is one or (value == one and type(value) is type(one)):
            return
    text = repr(value)
    if len(text) > 60:
        text = text[:57] + "..."
    raise ValueError(f"{key}={text} is not described: {remedy}")


def _kind(key: str, value: Any, kind: type, needed: str) -> None:
    if type(value) is not kind:
        raise TypeError(f"{key}={value!r} is a {type(value).__name__}; {needed}")


def _one_of(key: str, value: Any, known: tuple[str, ...]) -> None:
    if value is not None and value not in known:
        raise ValueError(f"{key}={value!r} is not described; known: {', '.join(known)}")


def _dtype(key: str, value: Any) -> None:
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{key}={value!r} is a {type(value).__name__}; a text is needed")
    _one_of(key, value if value is None else value.replace("torch.", ""), DTYPES + ("auto",))


def _windows(family: str, config: Mapping[str, Any]) -> None:
    size = config.get("sliding_window")
    if size is not None:
        _kind("sliding_window", size, int, "a whole number is needed, or null for none")
        none = size == 0 and family == "qwen2_moe" and not config.get("use_sliding_window")
        if size < 1 and not none:  # whose class writes 0 where there is none
            raise ValueError(f"sliding_window={size}; at least 1 is needed, or null for none")
    first = config.get("max_window_layers", 0)
    _kind("max_window_layers", first, int, "a whole number is needed")
    if first < 0:
        raise ValueError(f"max_window_layers={first}; at least 0 is needed")
    kinds_told = config.get("layer_types")
    if kinds_told is not None and not isinstance(kinds_told, (list, tuple)):
        kind = type(kinds_told).__name__
        raise TypeError(f"layer_types={kinds_told!r} is a {kind}; a list is needed")
    for kind in kinds_told or ():
        if kind not in KINDS:
            raise ValueError(f"layer_types has {kind!r}, not described; known: {', '.join(KINDS)}")


def _rotary(family: str, config: Mapping[str, Any]) -> None:
    for key in ("rope_parameters", "rope_scaling"):
        told = config.get(key)
        if told is not None and not isinstance(told, dict):
            kind = type(told).__name__
            raise TypeError(f"{key}={told!r} is a {kind}; an object is needed, or null")
        for name in ("rope_type", "type"):
            named = (told or {}).get(name)
            if named is not None and not isinstance(named, str):
                raise TypeError(f"{key}'s {name}={named!r}; a text is needed")
        share = (told or {}).get("partial_rotary_factor")
        _share(f"{key}'s partial_rotary_factor", share)
        scaled = (told or {}).get("rope_type") or (told or {}).get("type")
        if family not in ("gpt_neox", "glm4_moe") and scaled in SCALED and share not in (None, 1):
            raise ValueError(f"{key}'s partial_rotary_factor={share}: {family} turns whole heads")
    _share("rotary_pct", config.get("rotary_pct"))
    _share("partial_rotary_factor", config.get("partial_rotary_factor"))


def _share(key: str, value: Any) -> None:
    """A share of a head: above 0, at most 1."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{key}={value!r} is a {type(value).__name__}; a number is needed")
    if not 0 < value <= 1:
        raise ValueError(f"{key}={value!r} is not a share above 0 and up to 1")


def _padding(row: Any, vocab: Any) -> None:
    if row is None or type(vocab) is not int:
        return
    _kind("pad_token_id", row, int, "a whole number is needed, or null")
    if not -vocab <= row < vocab:
        raise ValueError(
            f"pad_token_id={row} is no row of an embedding of vocab_size={vocab}; null has none"
        )
