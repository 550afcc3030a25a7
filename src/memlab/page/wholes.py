"""Models that read images or audio beside text: the text inside their config.json, and the rest.

The text is recognised by its place, text_config or that of a thinker_config, and by its model_type;
what else there is by the names of the other parts. The shell has the same of the classes of
transformers: memlab.lab.text_part.
"""

from __future__ import annotations

from ..families import record_of
from . import config_words as say
from .text_sizes import OF_WHOLES, SIZES

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    Config = dict[str, Any]

SEEN = ("vision", "image", "visual")
HEARD = ("audio", "speech", "acoustic")


def as_own_model(text: Config, config: Config) -> Config:
    """The config of the text inside a whole as that of a model of its own.

    Sizes that it leaves out are those of its class, and what was saved in which format the whole
    says, as in memlab.lab.text_part.
    """
    told = filled(text, config["model_type"])
    for key in ("_name_or_path", "architectures"):  # of another model, from which it was made
        told.pop(key, None)
    saved = config.get("dtype", config.get("torch_dtype"))
    if saved is not None:
        told.pop("torch_dtype", None)
        told["dtype"] = saved
    for key in ("quantization_config", "_name_or_path"):
        if config.get(key) is not None:
            told[key] = config[key]
    return told


def filled(text: Config, whole: str) -> Config:
    """A text's config with the sizes of the classes where it leaves them out: the whole's first."""
    made, names = dict(text), record_of(text["model_type"]).other_names
    words = OF_WHOLES.get(whole, "") + " " + SIZES[text["model_type"]]
    for word in words.split():
        key, _, size = word.partition("=")
        if key not in made and names.get(key) not in text:
            made[key] = int(size)
    return made


def without(whole: Config) -> str:
    """What of a whole a figure of its text leaves out, by the names of its parts.

    whole       the config whose text_config it is: memlab.page.pasted.part_with_text
    """
    seen, heard = False, False
    for key in whole:
        part = whole[key]
        if key == "text_config" or not key.endswith("_config") or not isinstance(part, dict):
            continue
        name = f"{key} {part.get('model_type')}"
        seen = seen or any([word in name for word in SEEN])
        heard = heard or any([word in name for word in HEARD])
    if seen and heard:
        return say.NO_VISION_NOR_AUDIO
    return say.NO_VISION if seen else say.NO_AUDIO if heard else say.NO_OTHER_PARTS
