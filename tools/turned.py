"""Turn each cause in many runs, and ask memlab.explain which one it was.

    python tools/turned.py [COUNT]      so many figures (default: all), drawn with a fixed seed

A figure is the peak of a run in which one cause is turned, without noise. Each is asked for three
times: as a card's number, as a tracker's, and with what a tracker sees beside it, the bytes of each
term and whether steps leave some behind. What is printed is in how many cases the cause that was
turned stands first, and among the first three, of the causes alone. Two causes that leave the same
bytes in the same terms cannot be told apart by anybody; such ties count as they stand in the list.
"""

import random
import sys
from itertools import product
from typing import Any

from memlab import Model, Recipe, Run
from memlab.explain.case import Case
from memlab.explain.causes import CAUSES
from memlab.explain.search import Search
from memlab.explain.watched import Watched, terms
from memlab.step.loop import stored_as

MODELS = ("tiny-llama", "qwen3-0.6b", "llama-3-8b")
RECIPES = ("fp32", "bf16", "autocast", "adamw8bit")
SAID: tuple[dict[str, Any], ...] = (
    {"batch": 1, "tokens": 512},
    {"batch": 4, "tokens": 256, "checkpoint": "block"},
    {"batch": 2, "tokens": 512, "loss": "chunked", "micro_batches": 2},
    {"batch": 4, "tokens": 256, "implementation": "memlab", "optimizer_impl": "forloop"},
)


def turned(models=MODELS):
    """(base case, the cause that is turned in it, the case with it), wherever it adds bytes."""
    found = []
    for name, recipe, said in product(models, RECIPES, SAID):
        model = Model.preset(name)
        said = said | {"tokens": 128} if name == "tiny-llama" else said
        if recipe == "adamw8bit" and "optimizer_impl" in said:
            continue
        chosen = Recipe.named(recipe)
        base = Case(model, chosen, Run(**said), stored=stored_as(chosen))
        for cause in CAUSES:
            try:
                case = cause.turn(base) if cause.level == "tensors" else None
                if case is not None and case.peak() > base.peak():
                    found.append((base, cause, case))
            except ValueError:
                pass
    return found


def seen_of(base, cause, case):
    """What a tracker knows after three steps or more: each term, and whether steps leave bytes."""
    more = case.peak() - base.peak()
    return Watched(terms(case.contents()), more if cause.counted else 0)


def place(base, cause, case, level="tensors", watched=None):
    """Where the cause stands in the list, from 1 on; 0: it does not."""
    seen = case.peak()
    found = Search(base, seen - base.peak(), seen, level, watched).alone()[0]
    names = [one.name for one in found]
    return names.index(cause.name) + 1 if cause.name in names else 0


def score(places):
    """In how many cases it is the first, and among the first three."""
    return sum(at == 1 for at in places), sum(0 < at <= 3 for at in places)


def drawn(count=None, models=MODELS):
    """So many of them, and always the same ones."""
    every = turned(models)
    return random.Random("turned").sample(every, min(count or len(every), len(every)))


def main(count=None):
    cases = drawn(count)
    asked = {
        "a card's number": [place(b, c, k, level="device") for b, c, k in cases],
        "a tracker's number": [place(b, c, k) for b, c, k in cases],
        "a tracker's terms": [place(b, c, k, watched=seen_of(b, c, k)) for b, c, k in cases],
    }
    for how, places in asked.items():
        first, three = score(places)
        share = f"{first / len(cases):.1%} first, {three / len(cases):.1%} among three"
        print(f"{how}: {share}, of {len(cases)} figures")
        missed = [each[1].name for each, at in zip(cases, places, strict=True) if at != 1]
        for name in sorted(set(missed), key=lambda name: -missed.count(name)):
            whole = sum(cause.name == name for _, cause, _ in cases)
            print(f"    not first: {missed.count(name):3} of {whole:3}  {name}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
