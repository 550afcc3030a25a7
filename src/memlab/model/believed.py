"""What a config.json may say: a value is believed, or refused by name with what would be right.

Source      transformers 5.23, whose configuration classes check types, and whose models fail later
"""

from __future__ import annotations

from ..base.message import Message
from ..families import KINDS, ONLY, record_of
from .fields import HARMLESS, kinds
from .rotary_keys import check_chunks, check_rotary, check_turning
from .values import number, of_kind, one_of

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

DTYPES = ("float32", "bfloat16", "float16")
ATTENTIONS = ("sdpa", "eager", "flash_attention_2", "flash_attention_3", "flex_attention")
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
    "rope_interleave",
    "attn_temperature_tuning",
    "use_qk_norm",
    "output_router_logits",
)
# Factors and bounds of activations.
FACTORS = (
    "embedding_multiplier",
    "residual_multiplier",
    "attention_multiplier",
    "logits_scaling",
    "logit_scale",
)
BOUNDS = ("attn_logit_softcapping", "final_logit_softcapping", "clip_qkv")  # or null for none


def check(family: str, config: Mapping[str, Any]) -> None:
    """Refuse what transformers would fail on, and what is not described of this family.

    Raises      ValueError or TypeError that names key and value
    """
    known, record = kinds(family), record_of(family)
    for key, value in config.items():
        if known.get(key) == ONLY:
            _only(key, value)
        elif key in FLAGS and key in known:
            of_kind(key, value, bool, "true or false is needed")
        elif key in known and (key in FACTORS or (key in BOUNDS and value is not None)):
            number(key, value)
        elif key in record.dropouts:
            probability(key, value)
    for key in ("dtype", "torch_dtype"):
        _dtype(key, config.get(key))
    for key in ("attn_implementation", "_attn_implementation"):
        one_of(key, config.get(key), ATTENTIONS)
    if known.get("sliding_window") != ONLY and known.get("sliding_window"):
        _windows(family, config)
    if "no_rope_layers" in known:
        check_turning(config)
    if not record.grouped_experts and config.get("experts_implementation") is not None:
        raise ValueError(f"experts_implementation: {family} has one of its own; leave it out")
    if "attention_chunk_size" in known:
        check_chunks(config)
    if "rope_parameters" in known:
        check_rotary(family, config)
    if not record.null_head_dim and "head_dim" in config and config["head_dim"] is None:
        raise TypeError(f"head_dim is null; {family} needs a whole number, or leave it out")
    if record.padding_row:
        _padding(config.get("pad_token_id", record.padding), config.get("vocab_size"))


def check_heads(family: str, fields: Mapping[str, Any]) -> None:
    """Rotary positions turn pairs of values, in families that turn the whole head."""
    told, width, heads = fields.get("head_dim"), fields["d_model"], fields["heads"]
    if "head_dim" not in fields or not heads:
        return
    if record_of(family).divides_width and width % heads:
        pattern = "D={width} is not a multiple of N={heads}, which {family} asks for"
        raise ValueError(Message(pattern, width=width, heads=heads, family=family))
    if told is None and width % heads:
        return  # Model says so
    size = width // heads if told is None else told
    if size % 2:
        pattern = "H={size} (width of a head) is odd; rotary positions turn pairs"
        raise ValueError(Message(pattern, size=size))


def probability(key: str, value: Any) -> None:
    """A probability of dropout, from 0 to below 1."""
    number(key, value)
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
    raise ValueError(
        Message("{what} is not described: {remedy}", what=f"{key}={text}", remedy=remedy)
    )


def _dtype(key: str, value: Any) -> None:
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{key}={value!r} is a {type(value).__name__}; a text is needed")
    one_of(key, value if value is None else value.replace("torch.", ""), DTYPES + ("auto",))


def _windows(family: str, config: Mapping[str, Any]) -> None:
    size = config.get("sliding_window")
    if size is not None:
        of_kind("sliding_window", size, int, "a whole number is needed, or null for none")
        none = size == 0 and family == "qwen2_moe" and not config.get("use_sliding_window")
        if size < 1 and not none:  # whose class writes 0 where there is none
            raise ValueError(f"sliding_window={size}; at least 1 is needed, or null for none")
    pattern = config.get("sliding_window_pattern", 1)
    of_kind("sliding_window_pattern", pattern, int, "a whole number is needed")
    if pattern < 1:
        raise ValueError(f"sliding_window_pattern={pattern}; at least 1 is needed")
    first = config.get("max_window_layers", 0)
    of_kind("max_window_layers", first, int, "a whole number is needed")
    if first < 0:
        raise ValueError(f"max_window_layers={first}; at least 0 is needed")
    kinds_told = config.get("layer_types")
    if kinds_told is not None and not isinstance(kinds_told, (list, tuple)):
        kind = type(kinds_told).__name__
        raise TypeError(f"layer_types={kinds_told!r} is a {kind}; a list is needed")
    for kind in kinds_told or ():
        if kind not in KINDS:
            raise ValueError(f"layer_types has {kind!r}, not described; known: {', '.join(KINDS)}")


def _padding(row: Any, vocab: Any) -> None:
    if row is None or type(vocab) is not int:
        return
    of_kind("pad_token_id", row, int, "a whole number is needed, or null")
    if not -vocab <= row < vocab:
        raise ValueError(
            f"pad_token_id={row} is no row of an embedding of vocab_size={vocab}; null has none"
        )
