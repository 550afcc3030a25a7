"""A pasted adapter_config.json: which controls it sets, or the field that this page has none for.

The shell reads more of such a file: memlab.files.adapter_config. What both read they read alike;
the page knows no patterns, and of targets the three sets of its control. It is loaded into the
page's engine when somebody pastes such a file.
"""

from __future__ import annotations

import json

from ..adapters import Lora
from ..adapters.lora import linear_layers
from ..base.message import Message, dumps
from ..base.quoted import shown
from ..files.adapter_fields import NO_BYTE, READ, REFUSED
from ..model.module_names import module_names
from ..model.presets import HUB, PRESETS
from . import adapter_words
from . import words as say
from .adapter_controls import BASE, LORA, QLORA, WHOLE
from .adapter_tables import CHOSEN, which_of
from .adapters_resident import carries
from .command import command
from .controls import OTHER_MODEL, checked
from .question import model_of
from .serve_controls import TRAIN
from .supported import why

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    from ..model import Model
    from .question import State

FILE = "adapter_config.json"  # where the pasted one is expected
RANK = 8  # peft's own, where a file says none
# Of the fields that the shell reads those that the page takes at these values alone.
PLAIN: State = REFUSED | {
    "peft_type": "LORA",
    "task_type": "CAUSAL_LM",
    "exclude_modules": None,
    "target_parameters": None,
    "rank_pattern": None,
    "layers_to_transform": None,
    "modules_to_save": None,
    "use_dora": False,
}


def read(words: str, state: str) -> str:
    """What a file sets of a state of the controls, both in JSON, and what to say of it, as JSON.

    Whatever is wrong comes back as one line, and nothing is set then.
    """
    return dumps(outcome(words, state))


def outcome(words: str, state: str) -> State:
    """The same in Python's own values, with its messages whole."""
    try:
        sets, told = taken(json.loads(words), json.loads(state))
    except (ValueError, TypeError) as error:
        return {"error": why(error)}
    return {"sets": sets, "said": told}


def taken(said: Any, given: Any) -> tuple[State, str]:
    """The controls that a file sets, and the sentence that names the fields they are from.

    Raises      ValueError for a field of which the page has no figures, by its name, and for a
                model beside which adapters are not described
    """
    named = preset(said.get("base_model_name_or_path"))
    sets: State = {"use": TRAIN} | ({"model": named} if named else {})
    state = checked(given | sets)
    if state.get("trained") not in BASE:
        state["trained"] = LORA  # a file does not say how the base is stored: QLoRA stays one
    for field in sorted(said):
        value = said[field]
        if field in PLAIN:
            right = value in (None, False, "", [], {}) or value == PLAIN[field]
            right = right and not (field == "layers_to_transform" and value == 0)
        else:
            right = field in READ or field in NO_BYTE
            right = right and (field, value) != ("init_lora_weights", "mica")
        if field == "lora_dropout":
            right = percent(value or 0) is not None
        if not right:
            raise refused(field, state)
    rank = said.get("r", RANK)
    sets |= {"trained": state["trained"], "rank": rank, "targets": which(said, state)}
    sets["lora_dropout"] = dropped = percent(said.get("lora_dropout") or 0)
    checked(given | sets)
    fields = f"r={rank}, target_modules" + (f", lora_dropout={dropped}%" if dropped else "")
    if named:
        return sets, Message(adapter_words.ADAPTER_OF, fields=fields, model=named)
    return sets, Message(adapter_words.ADAPTER_READ, fields=fields)


def percent(share: Any) -> int | None:
    """A probability in whole percent, as the page's control has it; nothing for any other."""
    if isinstance(share, (int, float)) and 0 <= share < 1:
        found = round(100 * share)
        return found if abs(found - 100 * share) < 1e-9 else None
    return None


def which(said: State, state: State) -> str:
    """Which of the control's sets of layers the file's targets are."""
    family = model_type(state)
    if not carries(family):
        raise ValueError(Message(say.NO_ADAPTERS, family=family))
    model, told = model_of(state), said.get("target_modules")
    whole = isinstance(told, str) and told.lower() == "all-linear"
    found = every(model) if whole else listed(model, told)
    name = which_of(model, Lora(RANK, tuple(found)), CHOSEN) if found else ""
    if not name:
        raise refused("target_modules", state)
    return name


def model_type(state: State) -> str:
    """The family of the preset or of the config."""
    if state["model"] == OTHER_MODEL:
        return str(state["config"]["model_type"])
    return str(PRESETS[state["model"]]["family"])


def every(model: Model) -> list[str]:
    """What peft calls all linear layers; none beside projections of the embedding, also linear."""
    return list(linear_layers(model)) if model.embed_dim == model.d_model else []


def listed(model: Model, told: Any) -> list[str]:
    """The matrices whose modules are listed; none, where not all that is listed is one."""
    inside = module_names(model, list(linear_layers(model)))
    found: list[str] = []
    for module in told if isinstance(told, list) else []:
        ends = [name for name in inside if f".{inside[name]}".endswith(f".{module}")]
        if not ends:
            return []
        found += [name for name in ends if name not in found]
    return found


def preset(name: Any) -> str:
    """The preset of a repository's name, or nothing."""
    name = name.lower() if isinstance(name, str) else ""
    return HUB.get(name, name if name in PRESETS else "")


def refused(field: str, state: State) -> ValueError:
    """The field, and the command line that can."""
    words = f"{command(state | {'trained': WHOLE})} --adapter {FILE}"
    if state["trained"] == QLORA:
        words += f" --lora-base {BASE[QLORA]}"
    return ValueError(Message(adapter_words.ADAPTER_FIELD, field=shown(field), command=words))
