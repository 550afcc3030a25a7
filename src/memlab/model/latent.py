"""Multi-head latent attention: keys and values of all heads are made from one narrow row a token.

Letters: C width of that row, the latent, P and R the parts of a head's query and key that positions
pass and turn (together H), U width of a head's values.

Source      DeepSeek-AI 2024, arXiv:2405.04434, section 2.1; transformers:
            models/deepseek_v3/modeling_deepseek_v3.py, DeepseekV3Attention
"""

from __future__ import annotations

from ..base.frozen import dataclass
from ..base.message import Message
from ..families import record_of
from ..units import whole

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .model import Model

# The key of a config.json that says each width.
KEYS = {
    "kv_rank": "kv_lora_rank",
    "nope": "qk_nope_head_dim",
    "rope": "qk_rope_head_dim",
    "value": "v_head_dim",
    "q_rank": "q_lora_rank",
}


@dataclass(frozen=True, kw_only=True)
class Latent:
    """The widths of multi-head latent attention.

    kv_rank     C, the latent that keys and values are made from: what a cache keeps, beside `rope`
    nope        P, the part of a head's query and key that no position turns
    rope        R, the part that positions turn; all heads share one key of it
    value       U, the width of a head's values
    q_rank      C', the latent of the queries; 0: they are projected without one
    Raises      ValueError or TypeError that names the width
    """

    kv_rank: int
    nope: int
    rope: int
    value: int
    q_rank: int = 0

    def __post_init__(self) -> None:
        for field in KEYS:
            size = whole(field, getattr(self, field))
            if size == 0 and field != "q_rank":
                raise ValueError(f"{field}=0; at least 1 is needed")
        if self.rope % 2:
            raise ValueError(f"rope={self.rope} is odd; rotary positions turn pairs")

    @property
    def head(self) -> int:
        """H, the width of a head's query and key."""
        return self.nope + self.rope


def check(model: Model) -> None:
    """Families with latent attention have its widths, all others have none.

    Raises      ValueError or TypeError that names the field
    """
    latent = model.latent
    if not record_of(model.family).latent:
        if latent is not None:
            raise ValueError(f"latent={latent}: {model.family} has no latent attention")
        return
    if not isinstance(latent, Latent):
        kind = type(latent).__name__
        raise TypeError(f"latent={latent!r} is a {kind}; {model.family} needs a Latent")
    if model.head_dim != latent.head:
        raise ValueError(f"head_dim={model.head_dim}; nope + rope is {latent.head}")
    if model.kv_heads != model.heads:
        raise ValueError(
            f"kv_heads={model.kv_heads}: latent attention makes keys for each of "
            f"N={model.heads} heads"
        )


def read(family: str, config: Mapping[str, Any]) -> Latent:
    """The widths that a config says.

    Raises      ValueError or TypeError that names the key
    """
    sizes = {}
    for field, key in KEYS.items():
        value = config.get(key)
        if value is None and field != "q_rank":
            told = {"family": family, "key": repr(key)}
            raise ValueError(Message("the {family} config has no {key}", **told))
        if value is not None and type(value) is not int:
            raise TypeError(f"{key}={value!r} is a {type(value).__name__}; int is needed")
        if value is not None and value < 1:
            raise ValueError(f"{key}={value}; at least 1 is needed")
        sizes[field] = value or 0
    if sizes["rope"] % 2:
        raise ValueError(f"qk_rope_head_dim={sizes['rope']} is odd; rotary positions turn pairs")
    if "q_lora_rank" not in config:
        raise ValueError(f"the {family} config has no 'q_lora_rank' (null: queries have no latent)")
    for field in ("kv_rank", "nope"):
        if family == "deepseek_v2" and sizes[field] % 2:
            raise ValueError(
                f"{KEYS[field]}={sizes[field]} is odd; what positions turn as complex numbers "
                "stands after it"
            )
    width, heads = config.get("hidden_size"), config.get("num_attention_heads")
    if family == "deepseek_v2" and type(width) is type(heads) is int and heads and width % heads:
        pattern = "D={width} is not a multiple of N={heads}, which {family} asks for"
        raise ValueError(Message(pattern, width=width, heads=heads, family=family))
    copy = config.get("head_dim", sizes["rope"])
    if copy != sizes["rope"]:
        raise ValueError(f"head_dim={copy!r}: {family} has qk_rope_head_dim there; leave it out")
    return Latent(**sizes)


def settings(model: Model) -> dict[str, Any]:
    """The keys of a config that say the widths."""
    if model.latent is None:
        return {}
    said = {key: getattr(model.latent, field) for field, key in KEYS.items()}
    return said | {"q_lora_rank": model.latent.q_rank or None}
