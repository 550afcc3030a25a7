"""What of a type's tensors follows from the numbers of its config: fitted to many small models.

It is long because the draw of configs, the letters and the fits share the same models.
"""

import random
from typing import Any

from exact_sums import Sum, fit
from type_keys import Keys
from type_samples import CACHE, Flat, Probe, probe

PROBES, LEAST_PROBES, TRIES = 48, 30, 5
ABSENT = 999_983  # of a number that is null: a prime that is no size
MOST_LAYERS = 7
MOST_PINS, MOST_ASKED = 8, 25  # keys that keep one value; keys that may be the cause
Sample = tuple[dict[str, int], dict[str, bool], int, tuple[int, ...] | None]
Row = tuple[list[tuple[str, bool]], Sum, list[Sum]]
WIDE = ("hidden_size", "n_embd", "d_model", "dim", "embedding_size", "emb_dim", "model_dim")
MANY = tuple(
    "num_attention_heads n_head num_heads n_heads decoder_attention_heads "
    "encoder_attention_heads".split()
)


class NoSum(ValueError):
    """A type whose tensors do not follow from its config's numbers here."""


class Fitted:
    """What of a type was found, and its table."""

    def __init__(self, family: str) -> None:
        self.keys = keys = Keys(family)
        self.family = family
        self.chance = random.Random(family)
        self.fixed = {key for key in keys.names if self._cannot_vary(key)}
        self.probes: list[Probe] = [keys.first]
        self.rows: dict[str, list[Row]] = {}
        self.no_cache = ""
        self._pins = 0
        self.fit()

    def fit(self) -> None:
        """Find the rows, with as few keys fixed as need be.

        Raises      NoSum
        """
        while (key := self._try_rows()) is not None:
            self.fixed.add(key)
            self._pins += 1
            if self._pins > MOST_PINS:
                raise NoSum(f"more than {MOST_PINS} keys of its config change it otherwise")
            self.probes = [p for p in self.probes if not self.pinned(p)]

    def _cannot_vary(self, key: str) -> bool:
        tried, effect = self.keys.tried[key], self.keys.effects[key]
        return not tried or (bool(effect) and not self.keys.varied(key))

    def _try_rows(self) -> str | None:
        """Fit every pattern; or the key that must keep its value for one of them to follow.

        Raises      NoSum where no such key is found
        """
        keys = self.keys
        self._more()
        changing = [key for key in keys.names if keys.effects[key] and key not in self.fixed]
        self.letters = [k for k in changing if any(is_whole(p.told(k)) for p in self.probes)]
        self.truths = [k for k in changing if any(is_truth(p.told(k)) for p in self.probes)]
        self.nulls = [k for k in self.letters if any(p.told(k) is None for p in self.probes)]
        self.made = self._pseudo()
        self.rows = {}
        self.no_cache = next((p.no_cache for p in self.probes if p.no_cache), "")
        for pattern in sorted({pattern for p in self.probes for pattern in p.rows}):
            if pattern.startswith(CACHE) and self.no_cache:
                continue
            found = self._explained(pattern, self.probes)
            if found is None and pattern.startswith(CACHE):
                self.no_cache = f"the sizes of its cache do not follow ({pattern})"
            elif found is None:
                return self._culprit(pattern)
            else:
                self.rows[pattern] = found
        return None

    def _culprit(self, pattern: str) -> str:
        keys = self.keys
        core = {*WIDE, *MANY, keys.layers, "vocab_size", "intermediate_size"}
        able = [*self.truths, *self.letters]
        order = [k for k in able if pattern in keys.effects[k]]
        order += [k for k in able if k not in order]
        order = [key for key in order if key.split(".")[-1] not in core and key not in core]
        for key in order[:MOST_ASKED]:
            usual = keys.base.get(key)
            left = [p for p in self.probes if p.config.get(key) == usual]
            if 12 <= len(left) < len(self.probes) and self._explained(pattern, left) is not None:
                return key
        raise NoSum(f"{pattern} does not follow from the config's numbers")

    # -- configs --------------------------------------------------------------------------------

    def _more(self) -> None:
        self.kinds = self._kinds()
        for _ in range(TRIES * PROBES):
            if len(self.probes) > PROBES:
                break
            made = probe(self.random())
            if made is not None:
                self.probes.append(made)
                self.kinds = self._kinds()
        if len(self.probes) < LEAST_PROBES:
            raise NoSum(f"only {len(self.probes)} of its changed configs are built")

    def random(self, many: float = 0.5) -> Flat:
        """The small config with some of its keys changed."""
        chance, keys = self.chance, self.keys
        made = dict(keys.base)
        layers = keys.base.get(keys.layers, 4)
        if keys.layers and keys.effects[keys.layers]:
            layers = made[keys.layers] = chance.randint(2, MOST_LAYERS)
        for key in keys.names:
            effect, tried = keys.effects[key], keys.tried[key]
            if key == keys.layers or key in self.fixed or key in keys.first.lists:
                continue
            value: Any = keys.base.get(key)
            if key in keys.beside or key in keys.beside.values():
                continue
            if effect and is_whole(value):
                if chance.random() < many:
                    made[key] = chance.choice([*tried, *tried, 2 * value, 3 * value, 5 * value])
                elif chance.random() < 0.1:
                    made.pop(key, None)
            elif effect and chance.random() < 0.25:
                made[key] = chance.choice(tried)
            elif not effect and chance.random() < 0.15:
                made[key] = chance.choice(tried)
            elif effect and value is None and chance.random() < 0.3:
                made[key] = chance.choice(list(tried))
            elif chance.random() < 0.05:
                made.pop(key, None)
        if keys.beside and chance.random() < 0.8:
            key = chance.choice(sorted(keys.beside))
            times, other = chance.choice((2, 3, 5)), keys.beside[key]
            if not self.fixed & {key, other}:
                made[key], made[other] = times * keys.base[key], times * keys.base[other]
        for key, value in keys.first.lists.items():
            if keys.tried.get(key) and chance.random() < 0.6:
                kinds = self.kinds.get(key) or sorted(set(value), key=str)
                made[key] = [chance.choice(kinds) for _ in range(layers)]
            else:
                made.pop(key, None)
        return made

    def more(self, count: int) -> list[Probe]:
        found = [probe(self.random(0.4)) for _ in range(count)]
        return [made for made in found if made is not None]

    def _kinds(self) -> dict[str, list[Any]]:
        """What layers may be, by the lists that say it."""
        made: dict[str, set[Any]] = {}
        for key in self.keys.first.lists:
            made[key] = {each for p in self.probes for each in p.lists.get(key, ())}
            made[key] |= {each for tried in self.keys.tried.get(key, ()) for each in tried}
        return {key: sorted(each, key=str) for key, each in made.items()}

    # -- what is known of a config --------------------------------------------------------------

    def pinned(self, p: Probe) -> bool:
        """Whether a config changes what this type's table knows one value of."""
        return any(p.config.get(key) != self.keys.base.get(key) for key in self.fixed)

    def _pseudo(self) -> dict[str, tuple[str, Any, Any]]:
        """Letters that are made of others: {name: (how, one, two)}."""
        made: dict[str, tuple[str, Any, Any]] = {}
        for one in self.letters:
            for two in self.letters:
                if one.split(".")[-1] in WIDE and two.split(".")[-1] in MANY:
                    made[f"{one} / {two}"] = ("/", one, two)
        layers = self.keys.layers
        for key in self.letters:
            if any(w in key for w in ("step", "period", "interval", "freq", "every", "pattern")):
                made[f"{layers} // {key}"] = ("//", layers, key)
                made[f"{layers} ^ {key}"] = ("^", layers, key)
            other = key.replace("period", "offset")
            if other != key and other in self.letters:
                made[f"{layers} @ {key}"] = ("@", layers, (key, other))
            if any(w in key for w in ("first", "dense", "start")) and key != layers:
                made[f"{layers} < {key}"] = ("<", layers, key)
        for key, kinds in self.kinds.items():
            if self.keys.effects.get(key):
                for kind in kinds:
                    made[f"n {key} {kind}"] = ("n", key, kind)
        return made

    def features(self, p: Probe) -> dict[str, int]:
        found: dict[str, int] = {}
        for key in self.letters:
            value = p.told(key)
            found[key] = value if is_whole(value) else ABSENT
        for name, (how, one, two) in self.made.items():
            if how == "n":
                found[name] = sum(each == two for each in p.lists.get(one, ()))
                continue
            if how == "@":
                step, start = found[two[0]], found[two[1]]
                found[name] = len([i for i in range(found[one]) if i % step == start])
                continue
            left, right = found[one], found[two]
            if right < 1 or ABSENT in (left, right):
                found[name] = ABSENT
            elif how == "<":
                found[name] = min(left, right)
            else:
                found[name] = -(-left // right) if how == "^" else left // right
        return found

    def _flags(self, p: Probe) -> dict[str, bool]:
        made = {key: bool(p.config.get(key, p.told(key))) for key in self.truths}
        return made | {f"{key} null": p.told(key) is None for key in self.nulls}

    # -- rows -----------------------------------------------------------------------------------

    def _explained(self, pattern: str, probes: list[Probe]) -> list[Row] | None:
        splits: list[tuple[Any, Any]] = [(None, None)]
        each = [p.rows.get(pattern, []) for p in probes]
        pairs = [(p, self.features(p), self._flags(p)) for p in probes]
        if any(len({dims for _, dims in found}) > 1 for found in each):
            splits = self._splits(pattern, probes)
            if not splits:
                return None
        found = []
        for key, kind in splits:
            samples: list[Sample] = []
            for p, given, flags in pairs:
                here = [
                    dims
                    for number, dims in p.rows.get(pattern, [])
                    if key is None or (number >= 0 and p.lists[key][number] == kind)
                ]
                if len(set(here)) > 1:
                    return None
                samples.append((given, flags, len(here), here[0] if here else None))
            names = self._names(pattern)
            made = _explain(samples, self._flag_names(pattern), names, 3)
            if made is None:
                made = _explain(samples, self._flag_names(), [*self.letters, *self.made], 2)
            if made is None:
                return None
            found += made
        return found

    def _splits(self, pattern: str, probes: list[Probe]) -> list[tuple[Any, Any]]:
        for key, kinds in self.kinds.items():
            if all(
                len({dims for n, dims in p.rows.get(pattern, []) if p.lists[key][n] == kind}) < 2
                for p in probes
                for kind in kinds
                if key in p.lists and all(n < len(p.lists[key]) for n, _ in p.rows.get(pattern, []))
            ):
                return [(key, kind) for kind in kinds]
        return []

    def _names(self, pattern: str) -> list[str]:
        names = [key for key in self.letters if pattern in self.keys.effects[key]]
        if self.keys.layers in self.letters and self.keys.layers not in names:
            names.append(self.keys.layers)
        made = []
        for name, (how, one, two) in self.made.items():
            if how in "n@" or one in names or two in names:
                made.append(name)
        return names + made

    def _flag_names(self, pattern: str = "") -> list[str]:
        every = [*self.truths, *(f"{key} null" for key in self.nulls)]
        if not pattern:
            return every
        return [f for f in every if pattern in self.keys.effects[f.removesuffix(" null")]]


def is_truth(value: Any) -> bool:
    return isinstance(value, bool)


def is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _explain(
    samples: list[Sample], flags: list[str], names: list[str], depth: int
) -> list[Row] | None:
    """The rows that make these counts and dims, under conditions where they need some."""
    present = [sample for sample in samples if sample[2]]
    if not present:
        return []
    whole = _fitted(samples, present, names)
    if whole is not None:
        return [([], *whole)]
    if not depth:
        return None
    for flag in sorted(flags, key=lambda f: -_told_apart(samples, f)):
        sides = [[s for s in samples if s[1][flag] is value] for value in (True, False)]
        if min(len(side) for side in sides) < 3:
            continue
        rest = [f for f in flags if f != flag]
        made: list[Row] = []
        for value, side in zip((True, False), sides, strict=True):
            found = _explain(side, rest, names, depth - 1)
            if found is None:
                break
            made += [([(flag, value), *when], count, dims) for when, count, dims in found]
        else:
            return made
    return None


def _told_apart(samples: list[Sample], flag: str) -> float:
    """How well a flag says whether there is a tensor."""
    there = [sum(bool(s[2]) for s in samples if s[1][flag] is v) for v in (True, False)]
    size = [sum(s[1][flag] is v for s in samples) or 1 for v in (True, False)]
    return abs(there[0] / size[0] - there[1] / size[1])


def _fitted(
    samples: list[Sample], present: list[Sample], names: list[str]
) -> tuple[Sum, list[Sum]] | None:
    if len(present) < 6 or len({len(s[3] or ()) for s in present}) > 1:
        return None
    dims: list[Sum] = []
    count = fit([s[2] for s in samples], [s[0] for s in samples], names, degree=2)
    if count is None:
        return None
    sizes = [name for name in names if " " not in name or " / " in name]
    for at in range(len(present[0][3] or ())):
        found = fit([(s[3] or ())[at] for s in present], [s[0] for s in present], sizes)
        if found is None:
            return None
        dims.append(found)
    return count, dims
