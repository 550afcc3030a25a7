"""The families whose network nobody wrote down: a file of data/networks stands for their record.

What such a file says of its type was read from the type's own config class and modules when it was
recorded (memlab.lab.network_type), so nothing about it is typed here.
"""

from __future__ import annotations

import json
from functools import lru_cache

from .. import EVERY, FLAGS, HERE, NOTHING, REQUIRED, ROTARY, STEP, Family

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

NUMBER = "number"
SHARE = "partial_rotary_factor"  # which newer configs have among their rope_parameters


@lru_cache(2)
def recording(name: str) -> dict[str, Any]:
    """The file of a type: memlab.step.networks.recording says what is in it."""
    with open(f"{HERE}../data/networks/{name}.json", encoding="utf-8") as file:
        found: dict[str, Any] = json.load(file)
    return found


@lru_cache(8)
def record(name: str) -> Family:
    """The record of a type that was recorded."""
    told = recording(name)["family"]
    rows = told["shape"].items()
    known = EVERY | ROTARY | dict.fromkeys(told["free"], NOTHING)
    return Family(
        shape={field: (key, *(usual or [REQUIRED])) for field, (key, *usual) in rows},
        effects=known | dict.fromkeys([*told["pinned"], *dict(own_of(name).values())], STEP),
        flags=FLAGS | {"learned_positions": told["positions"]},
        layers_path=told["layers_path"],
        embedding_path=told["embedding_path"],
        modules=told["modules"],
        network=("recorded", name),
        attentions=tuple(told["attentions"]),
        activation=("", ()),
        turned=told["pinned"].get(SHARE, 1.0),
        proven=told["proven"],
        recorded=told["pinned"],
    )


def own_of(name: str) -> dict[str, tuple[str, int]]:
    """Sizes that other types do not have: letter -> its key and the value of the class."""
    told = recording(name)["family"].get("own", {})
    return {letter: (key, usual) for letter, (key, usual) in told.items()}


def variant(pinned: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """What a config says otherwise than the one that was recorded, of the keys that matter.

    pinned      these keys, with the values of the class; NUMBER where any number does the same
    Returns     words, mlp_bias=true; nothing where all is as the class has it
    """
    words = []
    for key in sorted(pinned):
        value = config.get(key, pinned[key])
        if key == SHARE:
            rotary = config.get("rope_scaling") or config.get("rope_parameters") or {}
            value = rotary.get(key, value)
        if pinned[key] == NUMBER and type(value) in (int, float) and value:
            continue
        if isinstance(value, dict) and isinstance(pinned[key], dict):
            value = {**pinned[key], **value}
        if value != pinned[key]:
            words.append(f"{key}={json.dumps(value, separators=(',', ':'))}".replace(" ", ""))
    return " ".join(words)


def sized(word: str, size: Any) -> int:
    """A size in letters: 2·K·H+N·H, H/2, H-64.

    size        a letter's
    """
    total = 0
    for term in word.replace("-", "+-").split("+"):
        letters, _, by = term.removeprefix("-").partition("/")
        made = 1
        for part in letters.split("·"):
            made *= int(part) if part.isdigit() else size(part)
        made //= int(by or 1)
        total += -made if term[0] == "-" else made
    return total
