"""The text part of a multimodal model, where memlab describes its type: gemma3, llama4, mistral3.

Such a config says of its text only what differs from the type's defaults, so its classes in
transformers fill it in. What reads pictures or sound is left out, and counted.
"""

import os

from ..families import has_config
from ..model import Model
from ..model.config import load
from ..recipe import Recipe
from .causal import Causal


def text_part(source: str | os.PathLike[str]) -> Model | None:
    """The model of the text inside a config.json; None where that is not described.

    Keeps       the name of the whole, and the format in which the whole was saved
    Raises      what `memlab.lab.causal.Causal` raises for the whole
    """
    config, _ = load(source)
    if not isinstance(config.get("text_config", config.get("thinker_config")), dict):
        return None
    whole = Causal(source)
    family = whole.text.model_type
    if whole.text is whole.settings or not has_config(family):
        return None
    said = whole.text.to_diff_dict() | {"model_type": family}
    saved = config.get("dtype", config.get("torch_dtype"))
    if saved is not None:
        said["dtype"] = saved
    try:
        model = Model.from_config(said)
    except ValueError:  # a key that is not described: a trace reads it all the same
        return None
    return model.replace(name=whole.name)


def left_out(source: str | os.PathLike[str], recipe: Recipe) -> list[str]:
    """Which parameters of the whole a figure about its text leaves out, in a line.

    The parts that are not trained keep the format that they were saved in: 4 bytes a parameter
    beside weights in fp32, 2 beside any other.
    """
    return Causal(source).left_out_line(4 if recipe.weights == "fp32" else 2)
