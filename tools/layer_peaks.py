"""The highest moments of a step as sums in which the number of layers is a letter like any other.

What is held at a moment belongs to one layer, or to none. While one layer is computed, all others
below it hold the same, and so do all above it, but for those at the ends and its own neighbours. So
the moments of one layer tell those of every layer of its kind, whatever their number:

    held = what is held outside of the layers below and above, and by which those at the ends differ
         + layers below · what each of them holds + layers above · what each of them holds

and a layer without experts, say, is counted apart from one with them. Every other layer of the same
step is held against these sums. Long, because the one method is told from its idea to its proof.
"""

import random

import numpy as np
from products import add, copied, covers

from memlab.page.peak import (
    EARLY,
    EVERY,
    FIRST,
    INNER,
    KINDS,
    LAST,
    LAYERS,
    LEAST,
    OTHER,
    OUTSIDE,
    THIRD,
    place_of,
    tally,
    value,
)

AFTER = ("optimizer", "zero_grad")  # the first of them has no event, if all states are there
# Letters of the layers below, and above, of each kind.
BELOW, ABOVE = LAYERS[:KINDS], LAYERS[KINDS:]
_CHANCE = random.Random(0)
# A moment that is lower at one of these sizes is not above another one: a quick look.
SAMPLES = [
    {letter: least + _CHANCE.choice((0, 1, 9, 99, 9999)) for letter, least in LEAST.items()}
    | {digit: _CHANCE.choice((2, 3, 7, 70)) for digit in (*BELOW, *ABOVE)}
    for _ in range(24)
]


class Part:
    """A stretch of the step in one layer, or outside of all of them, as `place` says.

    weights     of each layer, how often what it holds counts: a number for each letter
    """

    def __init__(self, kinds, layer):
        self.layer, last = layer, len(kinds) - 1
        if layer is None:
            near, self.place = {0, last}, OUTSIDE
        else:
            near = {0, last, layer - 1, layer, layer + 1} & set(range(len(kinds)))
            self.place = place_of(kinds, layer, tally(kinds[:layer]), tally(kinds))
        self.weights = {each: {"": 1} for each in near} | {None: {"": 1}}
        self.deep: dict[tuple, list[int]] = {}
        for each, kind in enumerate(kinds):
            if each == layer:
                continue
            side = BELOW if layer is None or each < layer else ABOVE
            alike = self.deep.setdefault((side, kind), [])
            if each not in near:
                alike.append(each)
        for (side, kind), alike in self.deep.items():
            if alike:
                counted = [n for n in near if n != layer and self._side(n) == side]
                less = sum(kinds[n] == kind for n in counted)
                self.weights[alike[0]] = {side[kind]: 1, "": -less}

    def _side(self, layer):
        return BELOW if self.layer is None or layer < self.layer else ABOVE

    @property
    def known(self):
        """How many sides and kinds of layers it tells of."""
        return sum(map(bool, self.deep.values()))


def shown(kinds):
    """One layer for each place, the one that tells most of the others; None is outside."""
    made: dict[int, tuple] = {}
    for layer in range(len(kinds)):
        part = Part(kinds, layer)
        if part.known > made.get(part.place, (None, -1))[1]:
            made[part.place] = layer, part.known
    return {None} | {layer for layer, _ in made.values()}


class Held:
    """What is held of each term by each layer, while the events of a step pass by."""

    def __init__(self, changes):
        self.changes = changes  # of each event: layer, term, {letters: number}, +1 or -1
        self.by_layer = {}

    def pass_by(self, at):
        if (change := self.changes[at]) is not None:
            layer, name, products, sign = change
            add(self.by_layer.setdefault(layer, {}).setdefault(name, {}), products, sign)

    def told(self, part):
        """All that is held in a part, by term."""
        for alike in part.deep.values():
            first = [copied(self.by_layer.get(each, {})) for each in alike]
            if any(other != first[0] for other in first):
                raise ValueError(f"layers {alike} differ while {part.layer} is computed")
        made: dict[str, dict[str, int]] = {name: {} for name in EVERY}
        for layer, weights in part.weights.items():
            for name, products in self.by_layer.get(layer, {}).items():
                for letter, times in weights.items():
                    add(made[name], products, times, letter)
        return made


def moments_of(log, kinds, changes, sizes):
    """What no other moment of a hill covers: [(hill, place, {term: {letters: number}})], in order.

    kinds       of each layer, from 0 on
    changes     of each event: (layer, term, {letters: number}, +1 or -1), or None
    sizes       of the letters, in this step
    """
    step = [cut for cut in parts_of(log) if cut[0] >= log.marks["second.forward"]]
    parts = {layer: Part(kinds, layer) for layer in (None, *range(len(kinds)))}
    held, hills = Held(changes), hills_of(log, changes)
    for at in range(step[0][0]):
        held.pass_by(at)
    kept: dict[int | None, dict[str, list]] = {layer: {} for layer in shown(kinds)}
    before: dict = {}
    for start, end, layer, phase in step:
        if phase in AFTER:  # fused: it makes nothing beside the states
            before = copied(held.told(parts[None]))
            break
        _search(hills, held, (start, end), parts[layer], kept.get(layer))
    found = [
        (hill, parts[layer].place, told)
        for layer in sorted(kept, key=lambda n: -1 if n is None else n)
        for hill, moments in kept[layer].items()
        for _, _, told in moments
    ]
    found = merged(found, kinds)
    _check(log, step, kinds, (changes, hills), found, sizes)
    found.append(("optimizer", OUTSIDE, before))
    return found


def hills_of(log, changes):
    """The hill of the moment after each event, as memlab.step.core.moments tells them.

    Logits that the last step left are none of this one's.
    """
    made, logits, first = [], 0, log.marks["second.forward"]
    for start, end, _, phase in [(0, parts_of(log)[0][0], None, ""), *parts_of(log)]:
        for at in range(start, end):
            if at == first:
                logits = 0
            if changes[at] is not None and changes[at][1] == "logits":
                logits += log.events[at][1]
            made.append("loss" if logits else phase)
    return made


def _search(hills, held, span, part, kept):
    """The moments of one stretch that no other one of their hill covers, put among its place's."""
    start, end = span
    if kept is None:
        for at in range(start, end):
            held.pass_by(at)
        return
    total: dict[str, int] = {}
    for products in held.told(part).values():
        add(total, products)
    seen = np.array([float(value(total, sizes)) for sizes in SAMPLES])
    for at in range(start, end):
        held.pass_by(at)
        change = held.changes[at]
        if change is None:
            continue
        layer, _, products, sign = change
        for letter, times in part.weights.get(layer, {}).items():
            add(total, products, sign * times, letter)
            seen = seen + sign * times * sampled(products, letter)
        hill = hills[at]
        if sign < 0 and hills[at - 1] == hill:
            continue  # the last one was higher
        if (held.changes[at + 1] or (0,))[-1] > 0 and hills[at + 1] == hill:
            continue  # the next one is
        alike = kept.setdefault(hill, [])
        heights = np.array([k[1] for k in alike]).reshape(-1, len(SAMPLES))
        higher = np.flatnonzero((heights >= seen).all(axis=1))
        if any(covers(alike[n][0], total) for n in reversed(higher)):
            continue
        alike[:] = [k for k in alike if not ((seen >= k[1]).all() and covers(total, k[0]))]
        alike.append((dict(total), seen, copied(held.told(part))))


_SAMPLED: dict = {}


def sampled(products, letter):
    """A sum at each of the samples."""
    key = (*products.items(), letter)
    if key not in _SAMPLED:
        more = {letter + word: number for word, number in products.items()}
        _SAMPLED[key] = np.array([float(value(more, sizes)) for sizes in SAMPLES])
    return _SAMPLED[key]


def merged(found, kinds):
    """Those that are what they are within, but for sides that their place does not have, with it.

    Within are the places that have layers of all kinds below and above.
    """
    inner = [[place, hill, told] for hill, place, told in found if place in INNER]
    first, last = kinds[0], kinds[-1]
    gone, kind = {FIRST: BELOW, LAST: ABOVE}, {FIRST: first, LAST: last}
    if KINDS - 1 in kinds:
        kind |= {EARLY: 0, OTHER: 1, THIRD: 2}
        for place in (EARLY, OTHER, THIRD):
            seen = kinds[: kinds.index(kind[place], 1)]
            gone[place] = "".join(BELOW[each] for each in range(KINDS) if each not in seen)
    else:
        gone |= {EARLY: BELOW[1 - first], OTHER: BELOW[1 - first]}
        kind |= {EARLY: first, OTHER: 1 - first}
    made = []
    for hill, place, told in found:
        if place in INNER:
            continue
        for each in inner if place in gone else ():
            alike = each[0] & INNER[kind[place]] and each[1] == hill
            if alike and without(each[2], gone[place]) == told:
                each[0] |= place
                break
        else:
            made.append((hill, place, told))
    return made + [(hill, place, told) for place, hill, told in inner]


def without(told, letters):
    """Sums less all products with one of these letters."""
    made = {}
    for name, products in told.items():
        made[name] = {w: n for w, n in products.items() if not set(letters) & set(w)}
    return copied(made)


def parts_of(log):
    """The stretches of both steps: first event, the one after the last, layer, phase."""
    cuts = [(at, 0, None, name.split(".")[1]) for name, at in log.marks.items()]
    cuts += [(at, 1, layer, None) for at, layer in log.entered]
    cuts.sort(key=lambda cut: cut[:2])
    made, phase = [], ""
    for (at, _, layer, name), following in zip(cuts, [*cuts[1:], (len(log.events),)], strict=True):
        phase = name or phase
        if following[0] > at:
            made.append((at, following[0], layer, phase))
    return made


def _check(log, step, kinds, told_of, found, sizes):
    """Every layer's highest moment of each hill is the one that the sums tell of it."""
    changes, hills = told_of
    tops: dict[tuple, int] = {}
    total = 0
    for start, end, layer, phase in [(0, step[0][0], None, ""), *step]:
        if phase in AFTER:
            break
        for at in range(start, end):
            total += log.events[at][1] if changes[at] is not None else 0
            if phase:
                where = layer, hills[at]
                tops[where] = max(tops.get(where, 0), total)
    for (layer, wanted), top in tops.items():
        place = Part(kinds, layer).place
        all_sizes = sizes | counts(kinds, layer)
        told = [
            sum(value(products, all_sizes) for products in parts.values())
            for hill, places, parts in found
            if places & place and hill == wanted
        ]
        highest = max(told, default=0)
        if highest != top:
            raise ValueError(f"layer {layer}, {wanted}: {top:,} held, {highest:,} told")


def counts(kinds, layer):
    """The layers below and above of each kind."""
    below = kinds if layer is None else kinds[:layer]
    above = [] if layer is None else kinds[layer + 1 :]
    made = {BELOW[kind]: below.count(kind) for kind in range(KINDS)}
    return made | {ABOVE[kind]: above.count(kind) for kind in range(KINDS)}
