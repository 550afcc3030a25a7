"""What a CONFIG on the command line is: a preset, or a config file; and what to do about a name."""

from __future__ import annotations

import os
import re

from ..base.suggestion import did_you_mean
from ..model import Model, presets
from ..model.hub_names import ADDRESS

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from ..recipe import Recipe

    Found = TypeVar("Found")

ANSWERED = "estimate says what stays of any causal model, trace what its step holds"
# Of a model that reads more than text: the part of its config that says how.
TOWERS = {"vision_config": "pictures", "audio_config": "sound", "speech_config": "speech"}


def model_of(name: str) -> Model:
    """A preset, whatever its capitals, or the model of a config file; of a multimodal one its text.

    Raises      ValueError for something that is neither; what `Model.from_config` raises
    """
    try:
        return named_or(name, Model.from_config)
    except ValueError as error:
        # a preset, which most ask about, reads none of these
        from ..model.config import NotRecorded, UnknownFamily, load
        from ..model.kind import WrongKind

        if isinstance(error, NotRecorded):
            raise NotRecorded(f"{error}; {ANSWERED}") from None

        if isinstance(error, (UnknownFamily, WrongKind)):
            from ..model.type_kinds import check

            check(load(name)[0])  # its type may say more of what it is than its architecture
            part = _text_part(name)
            if part is None:
                raise UnknownFamily(_what_it_is(name)) from None
            return part
        if not str(error).startswith("quantization_config="):
            raise
        import shlex

        more = f"a serving engine loads it as it is: memlab serve {shlex.quote(name)} --on CARD"
        raise ValueError(f"{error}; {more}") from None


def _text_part(name: str) -> Model | None:
    """The described text inside a multimodal config; None where torch is not there to ask."""
    from ..model.config import load

    config = load(name)[0]
    if not isinstance(config.get("text_config", config.get("thinker_config")), dict):
        return None
    try:
        from ..lab.text_part import text_part
    except ModuleNotFoundError:
        return None
    return text_part(name)


def _what_it_is(name: str) -> str:
    """A type that is not described: what its config says that it reads, and who answers."""
    from ..model.config import load

    config = load(name)[0]
    reads = [what for key, what in TOWERS.items() if isinstance(config.get(key), dict)]
    more = f", a model that reads {' and '.join(reads)} beside text" if reads else ""
    family = config.get("model_type")
    return f"unknown model_type {family!r}{more}; memlab models lists the families; {ANSWERED}"


def left_out(name: str, model: Model, recipe: Recipe) -> list[str]:
    """A line about the parts of a multimodal model that are not counted; none of any other."""
    if name.lower() in presets():
        return []
    from ..model.config import load

    if load(name)[0].get("model_type") == model.family:
        return []
    from ..lab.text_part import left_out as line

    return line(name, recipe)


def named_or(name: str, read: Callable[[str], Found]) -> Model | Found:
    """A preset, or what is read of a config file.

    Raises      ValueError for something that is neither; what `read` raises
    """
    if name.lower() in presets():
        return Model.preset(name.lower())
    if os.path.exists(name):
        return read(name)
    if "://" in name or (name.count("/") == 1 and name[0] not in "./~"):
        raise ValueError(f"{name!r} is no file, and memlab reads no hub: {_instead(name)}")
    from ..model.sizes import about

    if size := about(name):
        raise ValueError(size)
    near = did_you_mean(name.lower(), presets())
    raise ValueError(f"{name!r} is neither a file nor a preset; {near}`memlab models` lists them")


def _instead(name: str) -> str:
    """What to do about the name of a repository that is no preset's: how to get its config."""
    wanted = name.removeprefix(ADDRESS).rstrip("/")
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", wanted):
        return "download the model's config.json, and give its path"
    folder = wanted.rpartition("/")[2]
    near = did_you_mean(folder.lower(), presets())
    return (
        f"get its config with `hf download {wanted} config.json --local-dir {folder}`, and give "
        f"the folder; {near}`memlab models` lists the presets"
    )
