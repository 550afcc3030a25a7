"""Model: the shape of a decoder-only network, and how many parameters that shape has.

Letters: L layers, D model width (d_model), F feed-forward width (d_ff), N query heads, K key/value
heads, H head width (head_dim), V vocabulary, T positions.
"""

from __future__ import annotations

from ..base.frozen import dataclass, replace
from ..base.mapping import FrozenDict
from ..base.message import Message
from ..families import record_of
from ..terms.weights import group_size
from ..units import MOST, at_least_one, whole
from . import latent, mixtures
from .latent import Latent
from .parameters import parameters_of
from .presets import PRESETS
from .tensors import Tensor, tensors_of

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from typing import Any

FILLED: Any = None  # left out by the caller, known after construction
# The deepest transformer that was trained: Wang et al. 2022, "DeepNet", arXiv:2203.00555. A loop
# over layers ends in seconds below it, and a slip of the keyboard above it never would.
MOST_LAYERS = 1000
_COUNTS = ("layers", "d_model", "d_ff", "heads", "kv_heads", "head_dim", "vocab", "embed_dim")


@dataclass(frozen=True, kw_only=True, repr=False)
class Model:
    """The shape of a decoder: enough to list every parameter tensor, and no weights.

    Example     Model(layers=4, d_model=128, d_ff=352, heads=4, kv_heads=2, vocab=256)
    Unit        every field is a count or a flag; flags left out follow the family
    Leaves out  cross-attention, state-space layers, buffers
    Raises      ValueError for an unknown family or an impossible shape, TypeError for a value
                of the wrong kind; both name it
    """

    layers: int
    d_model: int
    d_ff: int
    heads: int
    vocab: int
    family: str = "llama"
    name: str = FILLED  # the family's
    published: str | None = None  # of a preset: the format that its config.json says
    # Left out, these are filled in from the fields above; after construction none of them is None.
    kv_heads: int = FILLED  # N
    head_dim: int = FILLED  # D / N
    embed_dim: int = FILLED  # D; OPT-350m has narrower embeddings
    positions: int = FILLED  # 2048, but needed where they are learned
    # Of mixtures of experts alone; in any other family they are 0 and ().
    experts: int = FILLED  # X, in each layer that is a mixture
    experts_per_token: int = FILLED  # k of them
    expert_ff: int = FILLED  # M, the width of one expert; F is that of a layer without experts
    shared_ff: int = FILLED  # the width of what every token passes besides, or 0
    dense_layers: tuple[int, ...] = FILLED  # numbers of the layers without experts
    latent: Latent | None = FILLED  # the widths of latent attention, in families that have it
    # Left out, these follow the family; memlab.families explains each.
    tied: bool = FILLED
    gated: bool = FILLED
    norm: str = FILLED
    norm_affine: bool = FILLED
    norm_bias: bool = FILLED
    block_norms: int = FILLED
    final_norm: bool = FILLED
    qk_norm: bool = FILLED
    wide_qk_norm: bool = FILLED
    qkv_bias: bool = FILLED
    out_bias: bool = FILLED
    ff_bias: bool = FILLED
    fused_qkv: bool = FILLED
    fused_gate: bool = FILLED
    conv1d: bool = FILLED
    learned_positions: bool = FILLED
    position_offset: int = FILLED
    value_embeddings: bool = FILLED
    residual_scalars: bool = FILLED
    shared_gated: bool = FILLED
    expert_bias: bool = FILLED
    expert_rows: bool = FILLED
    sinks: bool = FILLED
    config: Mapping[str, Any] = FILLED  # the config.json it was read from, or nothing

    def __post_init__(self) -> None:
        known = record_of(self.family)
        self._fill({"name": self.family, "kv_heads": self.heads, "embed_dim": self.d_model})
        self._fill(known.flags)
        for field in ("layers", "d_model", "heads"):
            at_least_one(field, getattr(self, field))
        if isinstance(self.latent, Latent):
            self._fill({"head_dim": self.latent.head})
        if self.head_dim is None and self.d_model % self.heads:
            pattern = "D={width} is not a multiple of N={heads} (width per head); "
            pattern += "give head_dim for another width"
            raise ValueError(Message(pattern, width=self.d_model, heads=self.heads))
        self._fill({"head_dim": self.d_model // self.heads})
        if self.positions is None and self.learned_positions:
            raise ValueError(f"positions is missing: {self.family} learns one vector for each")
        self._fill({"positions": 2048, "config": {}})
        self._fill(mixtures.NONE)
        object.__setattr__(self, "config", FrozenDict(self.config))
        self._check()

    def _fill(self, defaults: Mapping[str, Any]) -> None:
        for field, value in defaults.items():
            if getattr(self, field) is None:
                object.__setattr__(self, field, value)

    def _check(self) -> None:
        if whole("layers", self.layers) > MOST_LAYERS:
            raise ValueError(
                f"layers={self.layers:,} is more than {MOST_LAYERS:,}, the deepest known"
            )
        for field in _COUNTS + ("positions",):
            at_least_one(field, getattr(self, field), MOST)
        whole("position_offset", self.position_offset)
        if whole("block_norms", self.block_norms) not in (1, 2, 4):
            raise ValueError(f"block_norms={self.block_norms}; known: 1, 2, 4")
        mixtures.check(self)
        latent.check(self)
        group_size(self.heads, kv_heads=self.kv_heads)
        for field, default in record_of(self.family).flags.items():
            value = getattr(self, field)
            if isinstance(default, bool) and not isinstance(value, bool):
                raise TypeError(f"{field}={value!r} is a {type(value).__name__}; a bool is needed")
        if self.norm not in ("rmsnorm", "layernorm"):
            raise ValueError(f"unknown norm {self.norm!r}; known: rmsnorm, layernorm")
        if not isinstance(self.name, str):
            raise TypeError(f"name={self.name!r} is a {type(self.name).__name__}; text is needed")

    @classmethod
    def preset(cls, name: str) -> Model:
        """A well-known model by name, whatever its capitals; `presets()` lists them.

        Raises      ValueError for an unknown name
        """
        known = name.lower() if isinstance(name, str) else name
        if known not in PRESETS:
            raise ValueError(f"unknown preset {name!r}; known: {', '.join(PRESETS)}")
        return cls(name=known, **PRESETS[known])

    @classmethod
    def from_config(cls, source: str | os.PathLike[str] | Mapping[str, Any]) -> Model:
        """The model that a Hugging Face config.json describes: a file, its folder, or a dict.

        Source      the defaults of keys left out are those of transformers 5.23, per family
        Keeps       the config itself, whose other keys (dropout, windows, the activation function)
                    change a step and no parameter
        Raises      ValueError for an unknown family, a missing key, an impossible shape or a
                    file that is not JSON; FileNotFoundError; TypeError for a value of another kind
        """
        from . import config  # with all that a value may be: presets need none of it

        return cls(**config.read(source))

    def replace(self, **changes: Any) -> Model:
        """A copy with some fields changed.

        What was filled in from a changed field follows it: kv_heads, head_dim and embed_dim where
        they had their defaults. Unless `name` is given, the copy's name says that it was changed.

        Example     Model.preset("llama-3-8b").replace(layers=2, tied=True)
        Raises      what construction raises; ValueError for `family`, which sets all the flags
        """
        if "family" in changes:
            raise ValueError("family sets all other flags: build a new Model for another one")
        filled = {
            "kv_heads": self.heads,
            "head_dim": self.d_model // self.heads,
            "embed_dim": self.d_model,
        }
        if self.latent is not None:
            filled["head_dim"] = self.latent.head
        follow: dict[str, Any] = {k: None for k, v in filled.items() if getattr(self, k) == v}
        if changes.get("layers", self.layers) != self.layers:
            left = changes["layers"]
            follow["dense_layers"] = tuple(i for i in self.dense_layers if i < left)
        follow["name"] = self.name.replace(" (changed)", "") + " (changed)"
        return replace(self, **(follow | changes))

    def tensors(self) -> tuple[Tensor, ...]:
        """Every kind of parameter tensor, with its true shape and how many there are.

        Shapes      as transformers builds them: GPT-2's fused [D, 3D], GPT-NeoX's [3D, D], ...
        Leaves out  a tied output head (it is the embedding) and buffers
        """
        return tuple(tensors_of(self))

    @property
    def value_embedding_layers(self) -> int:
        """Layers with a value embedding: every second one, the last included."""
        return (self.layers + 1) // 2 if self.value_embeddings else 0

    def parameters(self) -> dict[str, int]:
        """Parameters by component, from the closed formulas of memlab.terms.weights.

        Formula     L · (attention + feed_forward + norms) + embedding + positions + lm_head + ...
        Unit        parameters, whole numbers; a component that the model lacks is 0
        Leaves out  a tied output head (it is the embedding) and buffers
        """
        return parameters_of(self)

    @property
    def parameter_count(self) -> int:
        """All parameters, P."""
        return sum(self.parameters().values())

    @property
    def mixture_layers(self) -> int:
        """Layers whose feed-forward layer is a mixture of experts."""
        return self.layers - len(self.dense_layers) if self.experts else 0

    @property
    def active_parameter_count(self) -> int:
        """Parameters that one token meets: all but the experts that it is not sent to.

        Formula     P − mixture layers · (X − k) · (3 · D · M, and with biases 2 · M + D)
        Unit        parameters, a whole number; P where there are no experts
        Leaves out  that an embedding is one row for a token: it counts as a whole
        """
        return self.parameter_count - mixtures.asleep(self)

    def __repr__(self) -> str:
        shape = f"L={self.layers} D={self.d_model} F={self.d_ff} N={self.heads} K={self.kv_heads}"
        tie = "tied" if self.tied else "untied"
        return (
            f"Model {self.name}, {self.family} family: {self.parameter_count:,} parameters, "
            f"{shape} H={self.head_dim} V={self.vocab}, {tie}"
        )


def presets() -> list[str]:
    """Names that `Model.preset` knows."""
    return list(PRESETS)
