"""Sums of products of letters, {"BTD": 4, "BV": 2} for 4·B·T·D + 2·B·V: added, and compared.

tools/peaks.py keeps of a step's moments those that no other one covers.
"""

import json

from memlab.page.peak import LEAST, TERMS
from memlab.step.moments import HILLS

_FACTORS: dict = {}
AT_LEAST = {"T": "UW"}


def add(to, products, times=1, letter=""):
    for word, number in products.items():
        word = "".join(sorted(word + letter))
        to[word] = to.get(word, 0) + times * number
        if not to[word]:
            del to[word]


def above(some, others):
    return all(one >= other for one, other in zip(some, others, strict=True))


def covers(one, other):
    """Whether a sum is at least as large as another one whatever the sizes, down to LEAST.

    What the other one has more of must be found in longer products that the first has more of.
    """
    more = {word: n - other.get(word, 0) for word, n in one.items() if n > other.get(word, 0)}
    less = {word: n - one.get(word, 0) for word, n in other.items() if n > one.get(word, 0)}
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


def interned(moments):
    """The moments of all kinds with each sum stored once: {"sums": [...], "kinds": {...}}."""
    sums: list[dict[str, int]] = []
    places: dict[str, int] = {}
    kinds = {}
    for kind, found in moments.items():
        rows = []
        for hill, parts in found:
            row = [HILLS.index(hill)]
            for name in TERMS:
                key = json.dumps(parts.get(name, {}), sort_keys=True)
                if key not in places:
                    places[key] = len(sums)
                    sums.append(parts.get(name, {}))
                row.append(places[key])
            rows.append(row)
        kinds[kind] = rows
    return {"hills": HILLS, "terms": TERMS, "sums": sums, "kinds": kinds}
