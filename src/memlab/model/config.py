"""Reading a Hugging Face config.json: the fields of `Model`, and nothing half believed.

Which keys there are stands in memlab.families, what their values may be in memlab.model.believed.
"""

from __future__ import annotations

from ..base.message import Message
from ..families import RECORDED, REQUIRED, config_types, has_config, record_of
from . import believed, kind, latent, mixtures

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from typing import Any


class UnknownFamily(ValueError):
    """A config of a type that memlab does not describe."""


class NotRecorded(UnknownFamily):
    """A config of a type that was recorded, which says what its recordings do not follow."""


def read(source: str | os.PathLike[str] | Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments of `Model` from a config.json: a file, the folder it is in, or a dict.

    Raises      UnknownFamily, WrongKind, ValueError for a missing key or a file that is not JSON,
                FileNotFoundError, TypeError for a source of another kind
    """
    config, name = load(source)
    kind.check(config)
    family = config.get("model_type")
    if family is None:
        every = ", ".join(config_types())
        raise ValueError(f"the config has no 'model_type'; known families: {every}")
    if not isinstance(family, str) or not (has_config(family) or family in RECORDED):
        every = ", ".join(config_types())
        raise UnknownFamily(f"unknown model_type {family!r}; known families: {every}")
    believed.check(family, config)
    known = record_of(family)
    if known.recorded is not None:
        _check_recorded(family, known.recorded, config)
    rows = known.shape
    fields = {field: _value(config, family, *rows[field]) for field in sorted(rows)}
    if fields.get("d_ff") is None:  # gpt2 and its contemporaries
        fields["d_ff"] = 4 * fields["d_model"]
    believed.check_heads(family, fields)
    if known.recorded is not None:
        _check_square(family, fields)
    if known.mixture:
        fields |= mixtures.read(family, config, fields)
    if known.latent:
        fields["latent"] = latent.read(family, config)
    if family == "opt" and config.get("_remove_final_layer_norm"):
        fields["final_norm"] = False  # checkpoints fine-tuned before transformers 4.20.1
    return {"name": name or family, "family": family, "config": dict(config)} | fields


def _check_recorded(family: str, pinned: Mapping[str, Any], config: Mapping[str, Any]) -> None:
    from ..families.recorded import own_of, recording, variant

    for key, usual in own_of(family).values():
        value = config.get(key, usual)
        if type(value) is not int or value < 1:
            raise ValueError(f"{key}={value!r}: a whole number of at least 1 is needed")
    if said := variant(pinned, config):
        known = recording(family)["family"]["weights"]
        if said not in known:
            others = "; recorded too: " + ", ".join(filter(None, known)) if len(known) > 1 else ""
            raise NotRecorded(
                f"{said.replace(' ', ', ')} is not supported for {family}, whose network was "
                f"recorded as its class has it{others}"
            )


def _check_square(family: str, fields: Mapping[str, Any]) -> None:
    """Of a type whose code does not ask head_dim everywhere."""
    from ..families.recorded import recording

    width, heads, head = fields["d_model"], fields["heads"], fields.get("head_dim")
    if head is not None and recording(family)["family"]["square"] and width != heads * head:
        raise ValueError(f"head_dim={head}: {family} needs D={width} to be N={heads} times as much")


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
    from pathlib import Path

    from ..base.untrusted import read_json

    path = Path(source)
    if path.is_dir():
        path = path / "config.json"
    if not path.is_file():
        raise FileNotFoundError(f"no config file at {path}")
    config = read_json(path, infinity=True)
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
    known = record_of(family)
    other = known.other_names.get(key)
    if other is not None and other in config:
        key = other
    value = config.get(key, default)
    if value is REQUIRED or (value is None and default is REQUIRED):
        raise ValueError(Message("the {family} config has no {key}", family=family, key=repr(key)))
    whole = bool if isinstance(default, bool) else int
    if value is None:
        if default is not None and key not in known.nullable:
            raise TypeError(f"{key} is null; {whole.__name__} is needed, or leave it out")
        return None
    if type(value) is not whole:
        raise TypeError(f"{key}={value!r} is a {type(value).__name__}; {whole.__name__} is needed")
    return value
