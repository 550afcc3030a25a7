"""The shapes of the tensors of every type that memlab does not describe, for the page's calculator.

    python tools/type_tables.py --write [TYPE ...]   into book/calculator/types.json

A type's own code is built on the meta device from some hundred small configs (tools/type_fits.py).
What of a tensor's shape, and of how many there are, follows exactly from the numbers of the config
is written down as sums of products, in the letters that memlab.page.sums reads, and held against
fresh configs by the page's own functions. A type where one tensor does not follow is left out, with
the reason. It is long because a table is written here in one piece and held against configs.
"""

import argparse
import collections
import contextlib
import io
import json
import logging
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import causal_types
from exact_sums import Sum, fit
from type_fits import Fitted, NoSum, Row, is_whole
from type_keys import COMMON
from type_samples import CACHE, LINEAR, Probe, probe, small, usual, whole

from memlab.families import config_types, has_config
from memlab.lab import causal_cache
from memlab.lab.causal import Causal
from memlab.lab.quiet import quiet
from memlab.model import type_kinds
from memlab.page import pasted, sums, types

OUT = Path(__file__).resolve().parent.parent / "book" / "calculator" / "types.json"
CHECKS, TRIES, ROUNDS = 22, 5, 6
THINK = ("qwen2_5_omni", "qwen3_omni_moe")  # read as their thinkers, which are types of their own


class Entry:
    """The table of a type, in the letters that the page reads."""

    def __init__(self, fitted: Fitted, *, by_keys: bool) -> None:
        self.fitted, keys = fitted, fitted.keys
        used = {name for rows in fitted.rows.values() for row in rows for name in _named(row)}
        made = [name for name in fitted.made if name in used]
        told = {each for name in made for each in _flatly(fitted.made[name])}
        told |= {name.removesuffix(" null") for name in used} | {keys.layers}
        self.order = [key for key in keys.names if key in told and key not in fitted.truths]
        self.order = [key for key in self.order if key not in keys.first.lists]
        self.rules = {key: self._rules(key) for key in self.order}
        self.lists = [key for key in keys.first.lists if any(f"n {key} " in n for n in made)]
        self.list_rules = {key: self._list_rule(key) for key in self.lists}
        self.said_by: dict[str, tuple[str, str]] = {}
        for key, rule in self.list_rules.items():
            if by_keys and rule and rule[1] and (found := self._rule_of_key(key, rule)):
                self.said_by[key] = found
                self.order.append(found[0])
                self.rules[found[0]] = [str(rule[1]), sums.MUST]
                fitted.fixed.discard(found[0])
        self.made = [*made, *self._asked_beside(made)]
        if len(self.order) + len(self.made) > len(sums.LETTERS):
            raise NoSum("more numbers of its config count than there are letters")
        self.flags = [key for key in fitted.truths if key in used]

    def _asked_beside(self, made: list[str]) -> list[str]:
        """What the rules of absent keys need that no row needs."""
        asked = {n for rule in self.rules.values() for each in rule for n in _words(each)}
        return [name for name in self.fitted.made if name in asked and name not in made]

    def _rules(self, key: str) -> list[Any]:
        """What an absent key is, and what a null is: a sum, MUST, or NONE."""
        return [self._rule(key, absent=True), self._rule(key, absent=False)]

    def _rule(self, key: str, *, absent: bool) -> Any:
        fitted, found, given = self.fitted, [], []
        for _ in range(10):
            config = fitted.random()
            config.pop(key, None)
            if not absent:
                config[key] = None
            made = probe(config, shapes=False)
            if made is None or fitted.pinned(made):
                continue
            found.append(made.told(key))
            given.append(fitted.features(made))
        if len(found) < 4:
            return sums.MUST
        if all(each is None for each in found):
            return sums.NONE if key in fitted.nulls else sums.MUST
        if not all(is_whole(each) for each in found):
            return sums.MUST
        names = [name for name in self.order if name != key]
        names += [n for n, (how, *_) in fitted.made.items() if how == "/" and key not in n]
        sum_ = fit(found, given, names, degree=2)
        return sums.MUST if sum_ is None else sum_

    def table(self) -> dict[str, Any]:
        fitted, keys = self.fitted, self.fitted.keys
        rows: dict[str, list[Any]] = {}
        cached = []
        for pattern, found in fitted.rows.items():
            for when, count, dims in found:
                row: list[Any] = [self._said(count), [self._said(each) for each in dims]]
                conditions = self._conditions(when)
                if pattern.startswith(CACHE):
                    if not fitted.no_cache:
                        cached.append([pattern[len(CACHE) :].split(".")[0], *row, conditions])
                    continue
                row += [int(pattern.endswith(LINEAR)), conditions]
                same = rows.setdefault(json.dumps(row[1:]), row)
                if same is not row:
                    same[0] = f"{same[0]}+{row[0]}"
        read = {*self.order, *self.flags, *self.lists, *fitted.fixed}
        linked = {*keys.beside, *keys.beside.values()}
        free = [k for k in keys.names if keys.tried[k] and (not keys.effects[k] or k in linked)]
        free = [k for k in free if k not in read]
        acts = [k for k in free if "act" in k and isinstance(keys.base.get(k), str)]
        known = {*self.order, *self.flags, *self.lists, *free}
        fixed = {key: self._allowed(key) for key in keys.names if key not in known}
        made = {
            "inside": keys.first.inner,
            "layers": self._said([(1, (keys.layers,))]) if keys.layers in self.order else "",
            "keys": [
                [key, *map(self._ruled, self.rules[key]), self._least(key)] for key in self.order
            ],
            "made": [self._how(name) for name in self.made],
            "flags": [[key, self._usual(key)] for key in self.flags],
            "lists": [[key, self._rule_said(key), fitted.kinds[key]] for key in self.lists],
            "rows": list(rows.values()),
            "cache": cached,
            "fixed": fixed,
            "must": [key for key in fixed if self._must(key)],
            "acts": acts,
            "free": [key for key in free if key not in acts],
            "alias": keys.alias,
        }
        bound(made)
        return made

    def _rule_said(self, key: str) -> list[Any] | None:
        rule = self.list_rules[key]
        if rule is None:
            return None
        how, size, start, one, two = rule
        if key not in self.said_by:
            return [how, str(size), str(start), one, two]
        name, shift = self.said_by[key]
        letter = self._letter(name)
        return [how, letter, f"{letter}+-1" if shift == "last" else shift, one, two]

    def _letter(self, name: str) -> str:
        every = [*self.order, *self.made]
        return sums.LETTERS[every.index(name)]

    def _said(self, sum_: Sum) -> str:
        parts = []
        for count, word in sum_:
            letters = "".join(self._letter(name) for name in word)
            front = "" if count == 1 and letters else "-" if count == -1 and letters else str(count)
            parts.append("-1" + letters if front == "-" else front + letters)
        return "+".join(parts)

    def _ruled(self, rule: Any) -> str:
        return rule if isinstance(rule, str) else self._said(rule) or "0"

    def _how(self, name: str) -> list[Any]:
        how, one, two = self.fitted.made[name]
        if how == "n":
            return [how, self.lists.index(one), two]
        left = self._letter(one)
        if how == "@":
            return [how, left, [self._letter(each) for each in two]]
        return [how, left, self._letter(two)]

    def _conditions(self, when: list[tuple[str, bool]]) -> list[list[Any]]:
        made: list[list[Any]] = []
        for flag, value in when:
            if flag.endswith(" null"):
                made.append([self._letter(flag.removesuffix(" null")), int(value)])
            else:
                made.append([self.flags.index(flag), int(value)])
        return made

    def _least(self, key: str) -> int:
        if key in [name for name, _ in self.said_by.values()]:
            return 1
        return min(v for p in self.fitted.probes if is_whole(v := p.told(key)))

    def _usual(self, key: str) -> bool | None:
        config = dict(self.fitted.keys.base)
        config.pop(key, None)
        made = probe(config, shapes=False)
        told = made.told(key) if made else None
        return told if isinstance(told, bool) else None

    def _allowed(self, key: str) -> list[Any]:
        keys = self.fitted.keys
        found = [keys.base.get(key, keys.usual.get(key))]
        return [pasted.finite(each) for each in found]

    def _must(self, key: str) -> bool:
        """Whether a key that has one value here is another where a config leaves it out."""
        keys = self.fitted.keys
        if key not in keys.base:
            return False
        config = dict(keys.base)
        config.pop(key)
        made = probe(config)
        return made is None or made.rows != keys.first.rows

    def _list_rule(self, key: str) -> list[Any] | None:
        """How the layers' kinds follow where a config does not list them: in numbers."""
        lists = [self._listed(key, count, {}) for count in (5, 13, 14, 26, 27)]
        kinds = sorted({each for found in lists for each in found or ()}, key=str)
        if not all(lists) or not 1 <= len(kinds) <= 2:
            return None
        for one, two in ((kinds[0], kinds[-1]), (kinds[-1], kinds[0])):
            for size in range(27):
                for how, start in [("first", 0), *(("each", start) for start in range(size))]:
                    if all(_follows(found or [], how, size, start, one, two) for found in lists):
                        return [how, size, start, one, two]
        return None

    def _listed(self, key: str, layers: int, more: dict[str, Any]) -> list[Any] | None:
        """The kinds of so many layers as the class makes them."""
        keys = self.fitted.keys
        config = {k: v for k, v in keys.base.items() if k not in keys.first.lists}
        made = probe(config | {keys.layers: layers} | more, shapes=False)
        return made.lists.get(key) if made else None

    def _rule_of_key(self, key: str, rule: list[Any]) -> tuple[str, str] | None:
        """The key of a config that says a rule's number, and what the rule's other number is."""
        how, _, start, one, two = rule
        keys = self.fitted.keys
        for name in keys.names:
            if not keys.effects[name] or name in self.order or name in keys.first.lists:
                continue
            shifts = {str(start): lambda size: start, "last": lambda size: size - 1}
            for shift, first in shifts.items():
                found = [(n, self._listed(key, 13, {name: n})) for n in (2, 3, 5)]
                if all(kinds and _follows(kinds, how, n, first(n), one, two) for n, kinds in found):
                    return name, shift
        return None


def bound(table: dict[str, Any]) -> None:
    """Let a window be as narrow as any: a cache holds it or all tokens, and nothing else asks."""
    windows = {dims[1] for kind, _, dims, _ in table["cache"] if kind == "near"}
    asked = [table["layers"], *(count for count, *_ in table["rows"])]
    asked += [each for _, dims, *_ in table["rows"] for each in dims]
    for kind, count, dims, _ in table["cache"]:
        asked += [count, *(dims[:1] if kind == "near" else dims)]
    asked += [rule for _, absent, null, _ in table["keys"] for rule in (absent, null)]
    asked += [each for how, *of in table["made"] if how != "n" for one in of for each in one]
    asked += [each for _, rule, _ in table["lists"] if rule for each in rule[1:3]]
    for row, letter in zip(table["keys"], sums.LETTERS, strict=False):
        if letter in windows and not any(letter in each for each in asked):
            row[3] = 1


def _follows(found: list[Any], how: str, size: int, start: int, one: Any, two: Any) -> bool:
    """Whether kinds of layers are those of a rule, as memlab.page.sums reads it."""
    if how == "first":
        return found == [one if layer < size else two for layer in range(len(found))]
    return found == [one if layer % size == start else two for layer in range(len(found))]


def _named(row: Row) -> list[str]:
    when, count, dims = row
    return [flag for flag, _ in when] + [n for each in (count, *dims) for n in _words(each)]


def _words(sum_: Any) -> list[str]:
    return [] if isinstance(sum_, str) else [name for _, word in sum_ for name in word]


def _flatly(how: tuple[str, Any, Any]) -> list[str]:
    if how[0] == "n":
        return []
    return [how[1], *(how[2] if isinstance(how[2], tuple) else (how[2],))]


def _wrong(fitted: Fitted, table: dict[str, Any]) -> Probe | None:
    """Hold a table against fresh configs: the first that it answers wrong, or None.

    Raises      NoSum where it answers too few
    """
    right = 0
    for _ in range(TRIES * CHECKS):
        config = fitted.random(0.4)
        made = probe(config)
        if made is None:
            continue
        try:
            known = types.known(table, pasted.flat(whole(config)), fitted.family)
            sizes = sums.Sizes(table, known)
            ours = sums.tensors(table, sizes)
            kept = sums.cache(table, sizes, 2, 100, 2)
        except ValueError:
            continue
        if collections.Counter(_spread(ours)) != collections.Counter(_real(made)):
            return made
        if table["cache"] and not made.no_cache:
            if kept != causal_cache.cache(made.model, 2, 100):
                table["cache"], fitted.no_cache = [], "the table of its cache is wrong for some"
        right += 1
        if right == CHECKS:
            return None
    raise NoSum(f"its table answers only {right} fresh configs")


def _spread(found: list[tuple[int, tuple[int, ...], bool]]) -> dict[tuple[Any, ...], int]:
    made: dict[tuple[Any, ...], int] = {}
    for copies, dims, linear in found:
        made[(*dims, linear)] = made.get((*dims, linear), 0) + copies
    return made


def _real(made: Probe) -> dict[tuple[Any, ...], int]:
    found: dict[tuple[Any, ...], int] = {}
    for pattern, each in made.rows.items():
        if pattern.startswith(CACHE):
            continue
        for _, dims in each:
            shape = (*dims, pattern.endswith(LINEAR))
            found[shape] = found.get(shape, 0) + 1
    return found


def table_of(family: str) -> tuple[dict[str, Any], str]:
    """The table of a type, and why it has no cache.

    Raises      NoSum
    """
    try:
        return _table_of(family, by_keys=True)
    except NoSum:  # a list of kinds follows a key otherwise than it seemed: the key has one value
        return _table_of(family, by_keys=False)


def _table_of(family: str, *, by_keys: bool) -> tuple[dict[str, Any], str]:
    fitted = Fitted(family)
    for _ in range(ROUNDS):
        table = Entry(fitted, by_keys=by_keys).table()
        made = _wrong(fitted, table)
        if made is None:
            return table, fitted.no_cache
        fitted.probes += [made, *fitted.more(ROUNDS)]
        fitted.fit()
    raise NoSum("its table is wrong for a fresh config, however many it was fitted to")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("types", nargs="*", metavar="TYPE")
    parser.add_argument("--write", action="store_true", help=f"into {OUT.name}")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # torch's, about speed
    logging.disable(logging.CRITICAL)
    import transformers

    transformers.utils.logging.set_verbosity(logging.CRITICAL + 1)
    kept: dict[str, Any] = json.loads(OUT.read_text("utf-8")) if OUT.exists() else {}
    found, why = kept.get("types", {}), kept.get("refused", {})
    for family in options.types or [name for name in names() if not has_config(name)]:
        began = time.perf_counter()
        found.pop(family, None)
        why.pop(family, None)
        said = ""
        try:
            found[family], said = table_of(family)
        except Exception as error:  # NoSum, or whatever the code of some model raises
            why[family] = (" ".join(str(error).split()) or type(error).__name__)[:200]
        line = why.get(family) or (f"no cache: {said}" if said else "and its cache")
        print(f"{family:28} {time.perf_counter() - began:5.1f} s  {line}", flush=True)
        if options.write:
            _write(found, why, kept.get("unbuilt", []))
    if options.write:
        _write(found, why, unbuilt(sorted(why)))
    print(f"{len(found)} types have a table, {len(why)} none")


def names() -> list[str]:
    """Every type that the page is asked about: causal ones, and wholes whose text is not described.

    What such a whole is of is told by its text_config, or by that of its thinker.
    """
    import transformers
    from transformers.models.auto import modeling_auto as auto

    wholes = {**auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES}
    wholes |= auto.MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES
    made = {*causal_types.names()}
    for name in wholes:
        inner = getattr(transformers.CONFIG_MAPPING[name](), "text_config", None)
        told = getattr(inner, "model_type", "")
        if not type_kinds.kind_of(name) and not has_config(told) and name not in THINK:
            made.add(name)
    return sorted(made)


def unbuilt(families: Iterable[str]) -> list[str]:
    """The types of which no model of text alone is built, of a small config or of the class's own.

    Where the page has no table of a type it names the command that answers, if one does.
    """
    return [each for each in families if not (_builds(small, each) or _builds(usual, each))]


def _builds(config: Callable[[str], dict[str, Any]], family: str) -> bool:
    try:
        with quiet(), contextlib.redirect_stderr(io.StringIO()):
            return Causal(whole(config(family))).parameter_count > 0
    except Exception:  # whatever the code of some model raises about its config
        return False


def _write(found: dict[str, Any], why: dict[str, str], without: list[str]) -> None:
    found = {name: found[name] for name in found if not has_config(name)}  # described since
    left = [name for name in names() if name not in {*config_types(), *found, *why}]
    why = why | {
        name: f"not tried yet: python tools/type_tables.py --write {name}" for name in left
    }
    made: dict[str, Any] = {"common": sorted(COMMON), "activations": _activations()}
    made |= {"types": {name: found[name] for name in sorted(found)}}
    made |= {"refused": {name: why[name] for name in sorted(why)}, "unbuilt": without}
    OUT.write_text(json.dumps(made, separators=(",", ":")) + "\n", encoding="utf-8")


def _activations() -> list[str]:
    """The activations without parameters of their own."""
    from transformers.activations import ACT2FN

    made = []
    for name in sorted(ACT2FN):
        try:
            if not list(ACT2FN[name].parameters()):
                made.append(name)
        except Exception:  # one that needs more than its name
            continue
    return made


if __name__ == "__main__":
    main()
