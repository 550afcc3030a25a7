"""The tensors of a model from sums of products of its config's numbers.

tools/type_tables.py writes them. A sum is text, "2ab+c" for 2 · a · b + c. A letter stands for a
key of the config, or for what is made of other letters; each type of model has its own letters, in
the order of its table.
"""

from __future__ import annotations

from ..base.message import Message
from ..base.quoted import shown
from . import words as say
from .config_words import NOT_IN_TABLE
from .pasted import plain

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    Table = dict[str, Any]
    Config = dict[str, Any]

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
MUST, NONE = "!", "-"  # of a key that is absent or null: it must not be; it stays nothing


class Sizes:
    """What the letters of a type are worth in one config.

    Raises      ValueError, by name, for a value that the table does not have
    """

    def __init__(self, table: Table, config: Config, family: str = "") -> None:
        self._table, self._config, self._family = table, config, family
        self._known: dict[str, int | None] = {}
        self._lists: dict[int, list[Any]] = {}
        self._asked: list[str] = []

    def sum(self, words: str) -> int:
        """The worth of a sum."""
        total = 0
        for part in words.split("+"):
            if not part:
                continue
            letters = part.lstrip("-0123456789")
            front = part[: len(part) - len(letters)]
            count = int(front) if front else 1
            for letter in letters:
                size = self.of(letter)
                if size is None:
                    raise ValueError(
                        Message(say.NEEDS_KEY, key=self._table["keys"][_at(letter)][0])
                    )
                count *= size
            total += count
        return total

    def of(self, letter: str) -> int | None:
        """The worth of a letter, or None of a key that is null."""
        if letter not in self._known:
            at, keys = _at(letter), self._table["keys"]
            self._known[letter] = self._key(keys[at]) if at < len(keys) else self._made(at)
        return self._known[letter]

    def holds(self, conditions: list[list[Any]]) -> bool:
        """Whether a row is there: [[number of a flag, its value]], [[letter, if it is null]]."""
        for which, wanted in conditions:
            if isinstance(which, str):
                found: Any = self.of(which) is None
            else:
                key, usual = self._table["flags"][which]
                found = self._config.get(key, usual)
                if not isinstance(found, bool):
                    raise self._apart(key, found)
            if found != bool(wanted):
                return False
        return True

    def _key(self, row: list[Any]) -> int | None:
        key, absent, null, least = row
        value = plain(key, self._config[key]) if key in self._config else None
        if value is None:
            rule = null if key in self._config else absent
            if rule == MUST:
                raise ValueError(Message(say.NEEDS_KEY, key=key))
            return None if rule == NONE else self._from(key, rule)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(Message(say.LEAST_KEY, key=key, value=shown(value), least=least))
        return value

    def _from(self, key: str, rule: str) -> int:
        if key in self._asked:
            raise ValueError(Message(say.NEEDS_KEY, key=key))
        self._asked.append(key)
        found = self.sum(rule)
        self._asked.remove(key)
        return found

    def _made(self, at: int) -> int:
        how, one, two = self._table["made"][at - len(self._table["keys"])]
        if how == "n":
            return len([each for each in self._list(one) if each == two])
        if how == "@":
            step, start = [self.sum(each) for each in two]
            return len([layer for layer in range(self.sum(one)) if layer % step == start])
        left, right = self.sum(one), self.sum(two)
        if how == "<":
            return min(left, right)
        if right < 1 or (how == "/" and left % right):
            raise ValueError(Message(say.NO_PARTS, parts=self._named(two), whole=self._named(one)))
        return -(-left // right) if how == "^" else left // right

    def _apart(self, key: str, value: Any) -> ValueError:
        words = {"key": key, "value": shown(value), "family": self._family}
        return ValueError(Message(NOT_IN_TABLE, **words))

    def _named(self, words: str) -> str:
        keys = self._table["keys"]
        return str(keys[_at(words)][0]) if words in LETTERS and _at(words) < len(keys) else words

    def _list(self, at: int) -> list[Any]:
        if at not in self._lists:
            self._lists[at] = self._read(*self._table["lists"][at])
        return self._lists[at]

    def _read(self, key: str, rule: list[Any] | None, values: list[Any]) -> list[Any]:
        layers = self.sum(self._table["layers"])
        found = self._config.get(key)
        if found is not None:
            if not isinstance(found, list) or len(found) != layers:
                raise ValueError(Message(say.NO_LAYERS, key=key, layers=layers))
            for each in found:
                if isinstance(each, bool) != isinstance(values[0], bool) or each not in values:
                    raise self._apart(key, each)
            return found
        if rule is None:
            raise ValueError(Message(say.NEEDS_KEY, key=key))
        how, step, shift, one, two = rule
        size, start = self.sum(step), self.sum(shift)
        if how == "first":
            return [one if layer < size else two for layer in range(layers)]
        if size < 1:
            raise ValueError(Message(say.NEEDS_KEY, key=key))
        return [one if layer % size == start % size else two for layer in range(layers)]


def _at(letter: str) -> int:
    return LETTERS.find(letter)


def tensors(table: Table, sizes: Sizes) -> list[tuple[int, tuple[int, ...], bool]]:
    """How many tensors of each shape there are, and whether they are weights of linear layers."""
    made = []
    for count, dims, linear, conditions in table["rows"]:
        if sizes.holds(conditions):
            copies = sizes.sum(count)
            if copies < 0:
                raise ValueError(say.NO_ORDER)
            if copies:
                made.append((copies, tuple([sizes.sum(each) for each in dims]), bool(linear)))
    return made


def cache(table: Table, sizes: Sizes, batch: int, tokens: int, width: int) -> int:
    """Bytes of what layers keep for the next call, of so many tokens; 0 where that is not known.

    Formula     sum over layers of B · min(T, W) · values · b, and B · (state + inputs · b)
    Raises      ValueError as `Sizes`
    """
    total = 0
    for kind, count, dims, conditions in table["cache"]:
        layers = sizes.sum(count) if sizes.holds(conditions) else 0
        if not layers:
            continue
        each = [sizes.sum(one) for one in dims]
        if kind == "state":
            held = each[0] + each[1] * width
        else:
            read = min(tokens, each[1]) if kind == "near" else tokens
            held = each[0] * read * width
        total += batch * held * layers
    return total
