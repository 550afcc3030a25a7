"""What kind of model a config.json is of, by what it says: causal ones are described here.

Class names of transformers end with what they are made for: BertForMaskedLM, GPT2LMHeadModel.
"""

from __future__ import annotations

from ..base.message import Message

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

CAUSAL = ("ForCausalLM", "LMHeadModel")
MADE_FOR = "For"
# Of a model that reads more than text: the one that memlab describes is its text part.
TEXT_INSIDE = ("ConditionalGeneration", "MultimodalLM")

WRONG = (
    "{name} is {kind}: configs of causal language models are supported, which predict the next "
    "token (architectures ...ForCausalLM, or is_decoder true). For any other model run your "
    "training script, memlab rehearse -- python train.py, or trace a step that you write, memlab "
    "trace FILE.py:FUNCTION"
)
DIFFUSERS = "a part of a diffusers pipeline"
ENCODER_DECODER = "an encoder-decoder"
ENCODER = "an encoder"
FOR_ANOTHER = "made for another task"
HEADLESS = "a model without an output head"


class WrongKind(ValueError):
    """A config of a model that is no causal language model."""


def check(config: Mapping[str, Any]) -> None:
    """Refuse a config that says that it is of another kind; one that says nothing is believed.

    Raises      WrongKind
    """
    name, kind = named(config), ""
    if decodes(config):
        return
    if "model_type" not in config and isinstance(config.get("_class_name"), str):
        name, kind = config["_class_name"], DIFFUSERS
    elif config.get("is_encoder_decoder") is True:
        kind = ENCODER_DECODER
    elif MADE_FOR in name:
        task = name.split(MADE_FOR)[-1]
        if task == "MaskedLM":
            kind = ENCODER
        elif task[:1].isupper() and task not in TEXT_INSIDE:
            kind = FOR_ANOTHER
    elif name.endswith("Model"):
        kind = HEADLESS
    if kind:
        raise wrong(name or config.get("model_type"), kind)


def named(config: Mapping[str, Any]) -> str:
    """The architecture that a config names, if it does."""
    told = config.get("architectures")
    name = told[0] if isinstance(told, (list, tuple)) and told else ""
    return name if isinstance(name, str) else ""


def decodes(config: Mapping[str, Any]) -> bool:
    """Whether a config says itself that it predicts the next token."""
    name = named(config)
    return config.get("is_decoder") is True or any([name.endswith(end) for end in CAUSAL])


def wrong(name: Any, kind: str) -> WrongKind:
    """The error for a model of this name and kind."""
    return WrongKind(Message(WRONG, name=str(name)[:60], kind=kind))
