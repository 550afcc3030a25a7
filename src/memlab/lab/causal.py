"""Any causal language model of the installed transformers, known by its config.json alone.

Nothing of it is described here: its own code builds it, and a trace runs that code on tensors
without values. A multimodal model stands for its text part.
"""

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import nn

from ..families import has_config
from ..model import Model, type_kinds
from ..model.config import load
from ..run import Run
from ..units import text
from .settings import check_kind, check_layers, of_transformers, settings_of, thinker

POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len", "max_target_positions")
OWN = ("dropout", "window", "frozen")  # fields of a run that the config itself says
GROUPED = (
    "experts: the products of all rows are grouped, so no byte depends on the routing: the peak "
    "is the same for balanced experts and for one that takes every token"
)


class Causal:
    """A model by its config: `model_type` and whatever else its class reads.

    source      a config.json, its folder, or a dict
    family      the model_type
    config      what the file says
    positions   the most tokens of a sequence that the config says, or None
    Raises      WrongKind for a model that is no causal one; ValueError for a type that the
                installed transformers does not know, for a config of weights that are quantized,
                for more layers than any model has, or none, and for a config that its class refuses
    """

    def __init__(self, source: str | os.PathLike[str] | Mapping[str, Any]) -> None:
        config, name = load(source)
        type_kinds.check(config)
        family = config.get("model_type")
        if not isinstance(family, str):
            raise ValueError("the config has no 'model_type' that is text")
        if config.get("quantization_config") is not None:
            raise ValueError(
                "quantization_config: a trace runs the model that was quantized; take its config"
            )
        check_layers(config)
        self.family, self.name = family, name or family
        self.config: Mapping[str, Any] = MappingProxyType(dict(config))
        thinks = thinker(self.config)
        self.settings = settings_of(str(thinks.get("model_type", family)), thinks)
        check_kind(self.settings, self.config)
        text_part = self.settings.get_text_config(decoder=True)
        inside = type(text_part) is not type(self.settings)  # else a copy of one that also encodes
        self.text = text_part if inside else self.settings
        told = (getattr(self.text, key, None) for key in POSITIONS)
        self.positions = next((size for size in told if isinstance(size, int) and size > 0), None)

    def __repr__(self) -> str:
        return f"Causal({self.name!r}, {self.family})"

    def module(self, run: Run, dtype: torch.dtype) -> nn.Module:
        """Its own code, on the device that torch.device(...) sets.

        Raises      ValueError for a field of the run that its config says, and for what its code
                    does not build: its own words, in one line
        """
        for field in OWN:
            if (value := getattr(run, field)) != getattr(Run, field):  # 0 is said too
                raise ValueError(f"{field}={value!r}: of a {self.family} its config says that")
        attention = "sdpa" if run.attention == "flash" else run.attention
        asked = None if attention is None else {"attn_implementation": attention}
        module: Any
        with of_transformers(self.family):
            module = _text_part(self.settings, self.text, dtype, asked or {})
            if hasattr(module.config, "use_cache"):
                module.config.use_cache = False
            if run.checkpointing == "block":
                module.gradient_checkpointing_enable({"use_reentrant": False})
        return module

    def left_out(self) -> int | None:
        """Parameters of the parts that a step of text does not run; None if they cannot be built.

        A multimodal model has a tower for pictures or sound, and what leads from it to the text.
        Tied tables count as often as they are named, since some wholes (mistral3) tie by default
        what their text_config does not.
        """
        if self.text is self.settings:
            return 0
        thinks = thinker(self.config) is not self.config
        try:
            with torch.device("meta"), of_transformers(self.family):
                whole = self.settings
                if thinks:  # beside its thinker a whole has what speaks
                    whole = settings_of(self.family, self.config)
                whole = _whole(whole, torch.bfloat16, {})
                part = _text_part(self.settings, self.text, torch.bfloat16, {})
        except ValueError:
            return None
        return _size(whole, once=False) - _size(part, once=False)

    @property
    def parameter_count(self) -> int:
        """Parameters of the part that is traced; tied ones count once."""
        return _size(self.on_meta())

    def on_meta(self) -> nn.Module:
        """Its own code without memory, in bf16."""
        with torch.device("meta"):
            return self.module(Run(), torch.bfloat16)

    def left_out_line(self, width: int = 2) -> list[str]:
        """What is left out of a multimodal model, in a line; none of another model.

        width       bytes of a parameter
        """
        if self.text is self.settings:
            return []
        left = self.left_out()
        size = "not counted" if left is None else f"{left:,} parameters, {text(left * width)}"
        return [f"left out: all parts of this {self.family} but the text ({size})"]

    def notes(self, module: nn.Module) -> tuple[str, ...]:
        """What a reader of a trace must know: what is left out, how experts were routed."""
        told = self.left_out_line(next(module.parameters()).element_size())
        if any(hasattr(part, "_is_expert_parallel") for part in module.modules()):
            if getattr(self.text, "_experts_implementation", None) == "grouped_mm":
                told.append(GROUPED)
        return tuple(told)


def read(source: str | os.PathLike[str] | Mapping[str, Any]) -> Model | Causal:
    """The model of a config: described where its type is, else as its own code has it."""
    config, _ = load(source)
    return Model.from_config(source) if has_config(config.get("model_type")) else Causal(source)


def _text_part(settings: Any, part: Any, dtype: torch.dtype, asked: dict[str, Any]) -> Any:
    """A causal language model of text; of a type that has none, the whole without its towers."""
    import transformers

    auto = transformers.AutoModelForCausalLM
    for config in (part, settings):
        known = type(config) in auto._model_mapping
        made: Any = auto._model_mapping[type(config)] if known else None
        if made is None:
            continue
        own = made.config_class  # of InternLM3's it is Llama's, of which its config is no part
        if own is type(part) or own not in config.sub_configs.values():
            return auto.from_config(config, dtype=dtype, **asked)
        if part is settings:
            named = own.__name__
            raise ValueError(f"{made.__name__} is made of a {named}; give the config of that part")
    if part is settings:
        raise ValueError(f"it has no causal language model of {settings.model_type!r}")
    whole: Any = _whole(settings, dtype, asked)
    body = whole.base_model
    if not hasattr(body, "language_model"):
        raise ValueError(f"it has no causal language model of {part.model_type!r}")
    for name in [name for name, _ in body.named_children()]:
        if name != "language_model":
            setattr(body, name, None)
    return whole


def _whole(settings: Any, dtype: torch.dtype, asked: dict[str, Any]) -> nn.Module:
    import transformers

    for name in ("ImageTextToText", "CausalLM", "MultimodalLM"):
        auto: Any = getattr(transformers, f"AutoModelFor{name}")
        if type(settings) in auto._model_mapping:
            return auto.from_config(settings, dtype=dtype, **asked)
    raise ValueError(f"it has no model of text of {settings.model_type!r}")


def _size(module: nn.Module, *, once: bool = True) -> int:
    named = module.named_parameters(remove_duplicate=once)
    return sum(parameter.numel() for _, parameter in named)
