"""Sums of products of letters, {"BTD": 4, "BV": 2} for 4·B·T·D + 2·B·V: added, and compared.

tools/peaks.py keeps of a step's moments those that no other one covers.
"""

import json

from memlab.page.peak import LEAST, TERMS
from memlab.step.core.moments import HILLS

_FACTORS: dict = {}
AT_LEAST = {"T": "UWY", "G": "Q", "p": "he", "r": "hw", "u": "e", "c": "w", "b": "g"}


def add(to, products, times=1, letter=""):
    """Add so many of some products, each times a letter that stands before all others: a digit."""
    for word, number in products.items():
        word = letter + word
        if total := to.get(word, 0) + times * number:
            to[word] = total
        else:
            to.pop(word, None)


def covers(one, other):
    """Whether a sum is at least as large as another one whatever the sizes, down to LEAST.

    What the other one has more of must be found in longer products that the first has more of.
    """
    more = {word: n - other.get(word, 0) for word, n in one.items() if n > other.get(word, 0)}
    less = {word: n - one.get(word, 0) for word, n in other.items() if n > one.get(word, 0)}
    less |= {word: -n for word, n in one.items() if n < 0 and word not in other}
    for word in sorted(less, key=len, reverse=True):
        needed = less[word]
        for longer in sorted(more, key=len):
            factor = times_longer(longer, word)
            if factor and more[longer]:
                taken = min(more[longer], -(-needed // factor))
                more[longer] -= taken
                needed -= taken * factor
                if needed <= 0:
                    break
        else:
            return False
    return True


def times_longer(longer, word):
    """How many times as large as a product another one is at least; 0 if nothing is known."""
    if (longer, word) not in _FACTORS:
        _FACTORS[longer, word] = _times_longer(longer, word)
    return _FACTORS[longer, word]


def _times_longer(longer, word):
    left = list(longer)
    for letter in word:
        # T + 1 and T rounded up are at least T.
        found = next((each for each in (letter, *AT_LEAST.get(letter, "")) if each in left), None)
        if found is None:
            return 0
        left.remove(found)
    factor = 1
    for letter in left:
        factor *= LEAST[letter]
    return factor


def copied(held):
    return {name: dict(products) for name, products in held.items() if products}


LOOK_BACK = 60  # sums among which the nearest is looked for


def interned(moments, terms=TERMS):
    """The moments of all kinds, each sum and each row of sums stored once.

    sums        {letters: number}, or the difference from the sum that stands "=" places before
    rows        a hill, places, and a sum for each term; each number less that of the row before
    kinds       by name: first row, how many; first row, how many; ...
    """
    sums: list[dict[str, int]] = []
    at: dict[str, int] = {}
    rows: dict[tuple, int] = {}
    kinds = {}
    for kind, found in moments.items():
        spans: list[int] = []
        for hill, place, parts in found:
            row = [HILLS.index(hill), place]
            for name in terms:
                key = json.dumps(parts.get(name, {}), sort_keys=True)
                if key not in at:
                    at[key] = len(sums)
                    sums.append(parts.get(name, {}))
                row.append(at[key])
            number = rows.setdefault(tuple(row), len(rows))
            if spans and sum(spans[-2:]) == number:
                spans[-1] += 1
            else:
                spans += [number, 1]
        kinds[kind] = spans
    before = [[0] * (2 + len(terms)), *rows]
    flat = [n for row, last in zip(rows, before, strict=False) for n in less(row, last)]
    told = [nearest(sums, number) for number in range(len(sums))]
    return {"hills": HILLS, "terms": terms, "sums": told, "rows": flat, "kinds": kinds}


def less(row, other):
    return [one - two for one, two in zip(row, other, strict=True)]


def nearest(sums, number):
    """A sum as its difference from one before it, where that is shorter."""
    found = best = sums[number]
    for back in range(1, min(number, LOOK_BACK) + 1):
        other = sums[number - back]
        apart = {"=": back}
        for word in [*found, *(word for word in other if word not in found)]:
            if count := found.get(word, 0) - other.get(word, 0):
                apart[word] = count
        if len(apart) < len(best):
            best = apart
    return best
