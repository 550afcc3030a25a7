"""A model that somebody names: what the command line takes the name for, without a network."""

from __future__ import annotations

from ..base.message import Message, dumps
from ..base.quoted import shown
from ..model.hub_names import ADDRESS, found, repository
from ..model.presets import PRESETS
from ..model.sizes import about, near, parameters
from . import named_words as say
from .serve_controls import CHOICES, SERVE

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

CONFIG = "/blob/main/config.json"  # where the hub shows it


def named(words: str, use: str) -> str:
    """What a text in the place of a model means, as JSON."""
    return dumps(meant(words, use))


def meant(words: str, use: str) -> dict[str, Any]:
    """The same in Python's own values.

    Returns     line: what to say; model and sets: what to choose, where it is settled; names: of
                presets that are meant, where several are; address: of a config.json to paste
    """
    name = words.strip()
    if name.lower() in PRESETS:
        return {"model": name.lower(), "line": Message(say.TAKEN, model=name.lower())}
    if parameters(name):
        return {"line": about(name), "names": near(parameters(name))}
    if not repository(name):
        return {"line": Message(say.NO_MODEL, name=shown(name)[1:-1])}
    what = found(name)
    own = (name[len(ADDRESS) :] if name.startswith(ADDRESS) else name).rstrip("/")
    if what is None:
        return {"line": Message(say.NO_HUB, name=own), "address": ADDRESS + own + CONFIG}
    if what.stored == "":
        return {"model": what.preset, "line": what.told(name)}
    formats = [value for each, _, values in CHOICES if each == "dtype" for value, _ in values]
    if what.stored is None or use != SERVE:
        return {"line": what.refusal(name), "names": [what.preset]}
    if what.stored not in formats:
        told = Message(say.NO_FORMAT, told=what.told(name))
        return {"line": told, "names": [what.preset]}
    return {"model": what.preset, "sets": {"dtype": what.stored}, "line": what.told(name)}
