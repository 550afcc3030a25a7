"""A config.json in the class of the installed transformers that reads it."""

import contextlib
import io
from collections.abc import Iterator, Mapping
from typing import Any

from ..model import kind
from ..model.model import MOST_LAYERS
from .quiet import quiet

LAYERS = (
    *("num_hidden_layers", "num_layers", "n_layers", "n_layer", "num_blocks"),
    *("decoder_layers", "encoder_layers", "num_encoder_layers", "num_decoder_layers"),
)


def thinker(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The config around the text: the whole, or the thinker of a model that also speaks."""
    inner = config.get("thinker_config")
    alone = not isinstance(config.get("text_config"), Mapping)
    if alone and isinstance(inner, Mapping) and isinstance(inner.get("text_config"), Mapping):
        return inner
    return config


def check_layers(config: Mapping[str, Any]) -> None:
    """Before a class is built of it: a million layers would take minutes, and all of the memory."""
    for key, value in config.items():
        if isinstance(value, Mapping):
            check_layers(value)
        elif key in LAYERS and type(value) is int:
            if value > MOST_LAYERS:
                raise ValueError(f"{key}={value:,} is more than {MOST_LAYERS:,}, the deepest known")
            if value < 1 and key == LAYERS[0]:
                raise ValueError(f"{key}={value:,}; at least 1 is needed")


def settings_of(family: str, config: Mapping[str, Any]) -> Any:
    """The config in its class."""
    with of_transformers(family):
        import transformers

        known = transformers.CONFIG_MAPPING
        found = known[family] if family in known else None
    if found is None:
        own = " (its code is its own: see auto_map)" if "auto_map" in config else ""
        raise ValueError(
            f"model_type {family!r} is not in transformers {transformers.__version__}{own}; "
            "install a release that has it, or trace FILE.py:FUNCTION"
        )
    asked = {k: v for k, v in config.items() if k not in ("dtype", "torch_dtype")}
    with of_transformers(family):
        return found.from_dict(asked)


def check_kind(settings: Any, config: Mapping[str, Any]) -> None:
    """Refuse what its class makes of a config that does not say its architecture.

    An encoder has a causal form too, whose config says is_decoder: true; so do the decoders of some
    encoder-decoders. What is made for masked words, and is told no such thing, is an encoder.

    Raises      WrongKind
    """
    import transformers

    if config.get("architectures") or config.get("is_decoder"):
        return
    if getattr(settings, "is_encoder_decoder", False):
        raise kind.wrong(settings.model_type, kind.ENCODER_DECODER)
    masked = type(settings) in transformers.AutoModelForMaskedLM._model_mapping
    if masked and getattr(settings, "is_decoder", None) is False:
        raise kind.wrong(settings.model_type, kind.ENCODER)


@contextlib.contextmanager
def of_transformers(family: str) -> Iterator[None]:
    """Without its greetings; what it raises in one line, as a ValueError."""
    with quiet(), contextlib.redirect_stderr(io.StringIO()):
        try:
            yield
        except ModuleNotFoundError as error:
            if error.name == "transformers":
                raise ValueError("this needs transformers: pip install transformers") from error
            raise ValueError(f"{family} needs {error.name}: pip install {error.name}") from error
        except Exception as error:  # whatever the code of some model raises about its config
            words = " ".join(str(error).split()) or type(error).__name__
            raise ValueError(f"transformers does not build this {family}: {words[:300]}") from error
