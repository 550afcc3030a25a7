"""What a config.json may say: a value is believed, or refused by name with what would be right.

Source      transformers 5.23, whose configuration classes check types, and whose models fail later
"""

from __future__ import annotations

from .fields import DROPOUTS, HARMLESS, ONLY, kinds

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

DTYPES = ("float32", "bfloat16", "float16")
ATTENTIONS = ("sdpa", "eager", "flash_attention_2", "flash_attention_3", "flex_attention")
# Families whose classes ask for it, though their heads may have another width.
DIVIDED = ("llama", "gpt_neox", "gemma2", "gemma3_text")
# Families whose classes have no head_dim, and whose models take a null for one.
UNDIVIDED = ("qwen2", "phi3", "olmo2", "smollm3", "granite", "starcoder2")
# Families that turn a part of a head.
PARTLY = ("gpt_neox", "phi3", "glm4")
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
)
# Factors and bounds of activations.
FACTORS = (
    "embedding_multiplier",
    "residual_multiplier",
    "attention_multiplier",
    "logits_scaling",
)
BOUNDS = ("attn_logit_softcapping", "final_logit_softcapping")  # or null for none
# Families whose embedding treats the padding token apart, so that it must be one of its rows.
PADDED = ("llama", "mistral", "qwen2", "qwen3", "gemma", "opt", "phi3", "olmo2", "smollm3")
PADDED += ("granite", "starcoder2", "glm4", "gemma2", "gemma3_text")
# Kinds of rotary base that scale a share of the head, where one is said.
ONCE = ("default", "linear", "llama3", "yarn", "proportional")
LONG = ("longrope", "su", "yarn")  # phi3's names of the one scaling that it has
SCALED = ("linear", "dynamic", "yarn", "longrope", "llama3")
PADDING = {"gemma": 0, "opt": 1, "phi3": 32000, "olmo2": 1, "smollm3": 128004, "glm4": 151329, "gemma2": 0}
PADDING |= {"gemma3_text": 0}  # of the classes, where a config says nothing


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
        elif key in known and (key in FACTORS or (key in BOUNDS and value is not None)):
            _number(key, value)
        elif key in DROPOUTS.get(family, {}):
            probability(key, value)
    for key in ("dtype", "torch_dtype"):
        _dtype(key, config.get(key))
    for key in ("attn_implementation", "_attn_implementation"):
        _one_of(key, config.get(key), ATTENTIONS)
    if known.get("sliding_window") != ONLY and known.get("sliding_window"):
        _windows(config)
    if "no_rope_layers" in known:
        _no_rope(config)
    if "rope_parameters" in known:
        _rotary(family, config)
    if family in UNDIVIDED and "head_dim" in config and config["head_dim"] is None:
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
    _number(key, value)
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


def _number(key: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{key}={value!r} is a {type(value).__name__}; a number is needed")


def _one_of(key: str, value: Any, known: tuple[str, ...]) -> None:
    if value is not None and value not in known:
        raise ValueError(f"{key}={value!r} is not described; known: {', '.join(known)}")


def _dtype(key: str, value: Any) -> None:
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{key}={value!r} is a {type(value).__name__}; a text is needed")
    _one_of(key, value if value is None else value.replace("torch.", ""), DTYPES + ("auto",))


def _windows(config: Mapping[str, Any]) -> None:
    size = config.get("sliding_window")
    if size is not None:
        _kind("sliding_window", size, int, "a whole number is needed, or null for none")
        if size < 1:
            raise ValueError(f"sliding_window={size}; at least 1 is needed, or null for none")
    pattern = config.get("sliding_window_pattern", 1)
    _kind("sliding_window_pattern", pattern, int, "a whole number is needed")
    if pattern < 1:
        raise ValueError(f"sliding_window_pattern={pattern}; at least 1 is needed")
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


def _no_rope(config: Mapping[str, Any]) -> None:
    """Which layers turn: a flag for each, or every so many-th that does not."""
    told, interval = config.get("no_rope_layers"), config.get("no_rope_layer_interval", 4)
    _kind("no_rope_layer_interval", interval, int, "a whole number is needed")
    if interval < 1:
        raise ValueError(f"no_rope_layer_interval={interval}; at least 1 is needed")
    if told is None:
        return
    if not isinstance(told, (list, tuple)):
        raise TypeError(f"no_rope_layers={told!r} is a {type(told).__name__}; a list is needed")
    for flag in told:
        if type(flag) is not int or flag not in (0, 1):
            raise ValueError(f"no_rope_layers has {flag!r}; 1 turns, 0 does not")
    if len(told) != config.get("num_hidden_layers", len(told)):
        raise ValueError(f"no_rope_layers names {len(told)} layers, not num_hidden_layers")


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
        if family not in PARTLY and scaled in SCALED and share not in (None, 1):
            raise ValueError(f"{key}'s partial_rotary_factor={share}: {family} turns whole heads")
        if family == "gemma3_text":
            _by_kind(key, told or {})
        if family == "phi3" and scaled in LONG:
            _factors(config, told or {})
    _share("rotary_pct", config.get("rotary_pct"))
    share = config.get("partial_rotary_factor", 1)
    if share is None and family in ("phi3", "glm4"):
        raise TypeError("partial_rotary_factor is null; a number is needed, or leave it out")
    _share("partial_rotary_factor", share)


def _by_kind(key: str, told: Mapping[str, Any]) -> None:
    """Rotary bases of each kind of layer: those that are scaled once, when the model is built."""
    if key == "rope_parameters":
        for kind, inner in told.items():
            if kind not in KINDS:
                raise ValueError(f"{key} has {kind!r}; known for gemma3_text: {', '.join(KINDS)}")
            if inner is not None and not isinstance(inner, dict):
                raise TypeError(f"{key}'s {kind}={inner!r}; an object is needed, or null")
        rows = [inner for inner in told.values() if inner]
    else:
        rows = [told]
    for row in rows:
        scaling = row.get("rope_type") or row.get("type") or "default"
        _one_of(f"{key}'s rope_type", scaling, ONCE)
        if row.get("partial_rotary_factor") not in (None, 1):
            raise ValueError(f"{key}'s partial_rotary_factor: gemma3_text turns whole heads")


def _factors(config: Mapping[str, Any], told: Mapping[str, Any]) -> None:
    """Of longrope: a number for each pair of values that turns, for short texts and for long."""
    width, heads = config.get("hidden_size"), config.get("num_attention_heads")
    if type(width) is not int or type(heads) is not int or heads < 1:
        return  # said by name elsewhere
    share = told.get("partial_rotary_factor", config.get("partial_rotary_factor"))
    pairs = int(width // heads * (1 if share is None else share)) // 2
    for key in ("short_factor", "long_factor"):
        factors = told.get(key)
        if not isinstance(factors, (list, tuple)) or len(factors) != pairs:
            told_as = repr(factors)[:40]
            raise ValueError(f"{key}={told_as}: longrope needs a list of {pairs} numbers")


def _share(key: str, value: Any) -> None:
    """A share of a head: above 0, at most 1."""
    if value is None:
        return
    _number(key, value)
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
