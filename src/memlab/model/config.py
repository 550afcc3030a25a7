"""Reading a Hugging Face config.json: the fields of `Model`, and nothing half believed.

Every key has its row in memlab.model.fields; what a value may be stands in memlab.model.believed.
"""

from __future__ import annotations

from ..base.message import Message
from . import believed, kind, latent, mixtures
from .families import LATENTS, MIXTURES
from .shape_keys import KEYS as KEYS
from .shape_keys import NULLABLE, OTHER_NAMES
from .shape_keys import REQUIRED as REQUIRED

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from typing import Any


class UnknownFamily(ValueError):
    """A config of a type that memlab does not describe."""


def read(source: str | os.PathLike[str] | Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments of `Model` from a config.json: a file, the folder it is in, or a dict.

    Raises      UnknownFamily, WrongKind, ValueError for a missing key or a file that is not JSON,
                FileNotFoundError, TypeError for a source of another kind
    """
    config, name = load(source)
    kind.check(config)
    family = config.get("model_type")
    if family is None:
        raise ValueError(f"the config has no 'model_type'; known families: {', '.join(KEYS)}")
    if not isinstance(family, str) or family not in KEYS:
        raise UnknownFamily(f"unknown model_type {family!r}; known families: {', '.join(KEYS)}")
    believed.check(family, config)
    rows = KEYS[family]
    fields = {field: _value(config, family, *rows[field]) for field in sorted(rows)}
    if family == "gpt2" and fields["d_ff"] is None:
        fields["d_ff"] = 4 * fields["d_model"]
    believed.check_heads(family, fields)
    if family in MIXTURES:
        fields |= mixtures.read(family, config, fields)
    if family in LATENTS:
        fields["latent"] = latent.read(family, config)
    if family == "opt" and config.get("_remove_final_layer_norm"):
        fields["final_norm"] = False  # checkpoints fine-tuned before transformers 4.20.1
    return {"name": name or family, "family": family, "config": dict(config)} | fields


def load(source: Any) -> tuple[Mapping[str, Any], str | None]:
    """The configuration as a dict, and a name for the model."""
    if isinstance(source, dict):
        return source, None
    import os  # when a file is read: presets and dicts need none of these
    from collections.abc import Mapping

    if isinstance(source, Mapping):
        return source, None
    if not isinstance(source, (str, os.PathLike)):
        kind = type(source).__name__
        raise TypeError(f"config is a {kind}; a path or a dict is needed")
    import json
    from pathlib import Path

    path = Path(source)
    if path.is_dir():
        path = path / "config.json"
    if not path.is_file():
        raise FileNotFoundError(f"no config file at {path}")
    try:
        config = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_once)
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    except RecursionError:
        raise ValueError(f"{path} is nested too deeply for a config") from None
    if not isinstance(config, dict):
        raise ValueError(f"{path} holds a {type(config).__name__}; a JSON object is needed")
    return config, _named(path) if path.name == "config.json" else path.stem


def _named(path: Any) -> str:
    """The folder's name; in a cache of Hugging Face, whose folders are hashes, the model's."""
    full = path.absolute()  # as it was given: the cache's files are links to others
    for part in full.parts:
        if part.startswith("models--"):
            return str(part[len("models--") :].replace("--", "/"))
    return str(full.parent.name)


def _value(config: Mapping[str, Any], family: str, key: str, default: Any) -> Any:
    other = OTHER_NAMES.get(family, {}).get(key)
    if other is not None and other in config:
        key = other
    value = config.get(key, default)
    if value is REQUIRED or (value is None and default is REQUIRED):
        raise ValueError(Message("the {family} config has no {key}", family=family, key=repr(key)))
    whole = bool if isinstance(default, bool) else int
    if value is None:
        if default is not None and (family, key) not in NULLABLE:
            raise TypeError(f"{key} is null; {whole.__name__} is needed, or leave it out")
        return None
    if type(value) is not whole:
        raise TypeError(f"{key}={value!r} is a {type(value).__name__}; {whole.__name__} is needed")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose keys stand there once each."""
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} stands there twice")
    return made
