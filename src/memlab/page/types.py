"""Models of types that memlab does not describe: what stays of them, by tables of their tensors.

The tables are made by tools/type_tables.py, one for each type; the page fetches them when such a
config is given. A config is flat here: a key inside an object has that object's name before it.
"""

from __future__ import annotations

import json

from ..base.message import Message
from ..base.quoted import shown
from ..model.tensors import Tensor
from ..recipe.resident import tensor_bytes
from ..run.fields import BETWEEN
from ..terms.optimizer import numel, shared_state
from ..units import text
from . import config_words
from . import words as say
from .formula_text import stored
from .pasted import MOST_LAYERS, REFUSED, WHOLE, described, part_with_text
from .sentences import beside, of_keys
from .sums import Sizes, cache, tensors
from .table_peak import Missing

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    from ..recipe import Recipe
    from ..run import Run
    from ..verdict import Room
    from .table_peak import Lookup, Rows

    Config = dict[str, Any]

FILE = "types"  # the name by which the page asks for the tables


class TypedModel:
    """A model by its config and the table of its type.

    family      its model_type
    copies      [(how many, shape, whether of a linear layer)]
    Raises      ValueError, in one line, for a type without a table, and for a config that its
                table does not tell whole; highest.Missing
    """

    def __init__(self, config: Config, lookup: Lookup) -> None:
        family = config["model_type"]
        found = lookup(FILE, family)
        if found == "?":
            raise Missing(FILE)
        self.family = family = str(config.get(WHOLE, family))
        if not found:
            raise _of_text(config) or ValueError(
                Message(config_words.UNKNOWN_TYPE, family=shown(family))
            )
        told = json.loads(found)
        self._table = table = told["table"]
        if table is None:
            reason = say.NO_TABLE if told["built"] else config_words.NOT_BUILT
            raise ValueError(Message(reason, family=family))
        self._common = told["common"]
        self._config = known(table, config, family)
        acts(table, self._config, told["activations"], family)
        self._sizes = Sizes(table, self._config, family)
        layers = self._sizes.sum(table["layers"])
        if layers > MOST_LAYERS:
            raise ValueError(Message(say.TOO_DEEP, layers=f"{layers:,}", most=f"{MOST_LAYERS:,}"))
        self.copies = tensors(table, self._sizes)
        self.name = Message(say.YOURS, family=family)
        self.without, self.trace = "", say.TRACE
        if table["inside"]:
            from .wholes import without

            whole = part_with_text(config)
            self.without, self.trace = without(whole), config_words.TRACE_TEXT
        self.parameter_count = sum([copies * numel(shape) for copies, shape, _ in self.copies])

    def at_rest(self, recipe: Recipe, run: Run) -> Rows:
        """The rows that stay from step to step.

        Formula     that of memlab.lab.causal_at_rest
        Raises      ValueError for several devices, and for an optimizer that asks for components
        """
        if run.devices.ranks > 1:
            raise ValueError(Message(say.ONE_DEVICE, family=self.family))
        for field in run.said():
            if field not in BETWEEN:
                raise ValueError(Message(say.NOT_BESIDE, field=field, family=self.family))
        if recipe.optimizer.startswith("muon"):
            raise ValueError(Message(say.NO_MUON, optimizer=recipe.optimizer, family=self.family))
        figures: dict[str, int] = {}
        for copies, shape, linear in self.copies:
            each = tensor_bytes(Tensor("", shape, "other", linear=linear), recipe)
            for term in each:
                figures[term] = figures.get(term, 0) + copies * each[term]
        figures["optimizer"] += shared_state(recipe.optimizer)
        count = self.parameter_count
        return {name: (figures[name], stored(name, count, recipe)) for name in figures}

    def cache(self, run: Run, width: int = 2) -> int:
        """Bytes that all of its layers keep of the same tokens; 0 if that is not known.

        width       bytes of one value: 2, as in bf16
        """
        return cache(self._table, self._sizes, run.batch, run.tokens or 0, width)

    def left_out(self, run: Run, room: Room) -> list[str]:
        """What the total does not hold, and what of the config was not read: one line each."""
        held = self.cache(run)
        told: list[str] = [beside(room)]
        told.append(Message(say.CACHE, size=text(held)) if held else say.NO_CACHE)
        told.append(say.ONLY_IN_A_STEP)
        if self._table["inside"]:
            told.append(Message(say.BUT_TEXT, family=self.family))
        return told + of_keys(self._keys())

    def _keys(self) -> dict[str, list[str]]:
        table = self._table
        read = [row[0] for row in table["keys"] + table["flags"] + table["lists"]]
        read += [key for key in table["fixed"]] + ["model_type", WHOLE]
        still = table["free"] + table["acts"]
        made: dict[str, list[str]] = {"read": [], "no effect": [], "not known": []}
        for key in sorted(self._config):
            if key in read:
                continue
            none = key in still or key.split(".")[-1] in self._common
            made["no effect" if none else "not known"].append(key)
        return made


def _of_text(config: Config) -> ValueError | None:
    """What is wrong with the text inside a whole that has no table, where its type is described."""
    inner = "text_config."
    text = {key[len(inner) :]: config[key] for key in config if key.startswith(inner)}
    try:
        described({"model_type": config["model_type"], "text_config": text})
    except (ValueError, TypeError) as error:
        return ValueError(Message(config_words.OF_ITS_TEXT, problem=error.args[0]))
    return None


def known(table: Config, config: Config, family: str) -> Config:
    """A flat config by the names that its table has for its keys.

    Raises      ValueError, by name, for a key with a value that the table says nothing about
    """
    made: Config = {}
    config = _inside(table, config)
    for key in sorted(config):
        value = config[key]
        name = table["alias"].get(key, key)
        last = key.split(".")[-1]
        if last in REFUSED and value:
            words = config_words.QUANTIZED if last == REFUSED[0] else config_words.NOT_IN_TABLE
            raise ValueError(Message(words, key=last, value=shown(value), family=family))
        if name in made and made[name] != value:
            raise _apart(key, value, family)
        made[name] = value
    for key in table["must"]:
        if key not in made:
            raise ValueError(Message(say.NEEDS_KEY, key=key))
    for key in sorted(made):
        value = made[key]
        allowed = table["fixed"].get(key)
        if allowed is not None and not [one for one in allowed if _same(one, value)]:
            raise _apart(key, value, family)
    return made


def _apart(key: str, value: Any, family: str) -> ValueError:
    return ValueError(
        Message(config_words.NOT_IN_TABLE, key=key, value=shown(value), family=family)
    )


def _inside(table: Config, config: Config) -> Config:
    """The keys of a whole whose config was written before it had a text_config of its own."""
    inner = table["inside"] + "."
    if not table["inside"] or [key for key in config if key.startswith(inner)]:
        return config
    rows = table["keys"] + table["flags"] + table["lists"]
    names = [row[0] for row in rows] + table["free"] + table["acts"] + list(table["fixed"])
    names += list(table["alias"])
    return {inner + key if inner + key in names else key: config[key] for key in config}


def _same(one: Any, two: Any) -> bool:
    return bool(one == two) and isinstance(one, bool) == isinstance(two, bool)


def acts(table: Config, config: Config, plain: list[str], family: str) -> None:
    """Refuse an activation that may have parameters of its own.

    Raises      ValueError
    """
    for key in table["acts"]:
        if config.get(key) is not None and config[key] not in plain:
            raise _apart(key, config[key], family)
