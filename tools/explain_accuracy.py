"""Turn each cause in many runs, and ask memlab.explain which one it was.

    python tools/explain_accuracy.py [--held] [--less] [COUNT]

COUNT figures (default: all), drawn with a fixed seed; held: of runs at which no ranking was made;
less: causes that make a run need less.

A figure is the peak of a run in which one cause is turned. Each is asked for five times: in bytes,
as PyTorch counts them; in whole MiB; as a tracker's; with what a tracker sees beside it, the bytes
of each term and whether steps leave some behind; and, of the models that people train, as
nvidia-smi shows it: with what the allocator adds by a replay of that very run and one of the
contexts that others have read, in whole MiB. The first four have no noise in them; of the fifth
causes are left out that add less than the contexts differ by, for no card shows them.

Of causes that make the same figure in the same run nobody can tell which it was, so a ranking can
be right in one of them alone: that makes the most that any can reach, which is printed too.
explain says of such causes that they have as many bytes, in one entry. So two shares are printed:
in how many cases the cause that was turned stands first, those of one entry in the order of their
priors; and in how many it stands in the first entry, with how many causes that has on average, for
an entry of all causes would always be right. No entry makes the third figure better: how many looks
it takes to come to the cause, one after the other down the list. Below it stands which causes came
first in the place of others.

A cause that adds less than the figure shows leaves no gap, and nothing to explain: such cases are
counted, as missed, and their share is printed.
"""

import random
import sys
from collections import Counter
from itertools import product
from typing import Any

from memlab import Model, Recipe, Run
from memlab.explain.case import Case
from memlab.explain.causes import CAUSES, CONTEXTS, LESS
from memlab.explain.explanation import rounding
from memlab.explain.findings import cause_of
from memlab.explain.search import Search
from memlab.explain.watched import Watched, terms
from memlab.step.core.allocator_replay import replayed
from memlab.step.loops.loop import stored_as

MODELS = ("tiny-llama", "qwen3-0.6b", "llama-3-8b")
RECIPES = ("fp32", "bf16", "autocast", "adamw8bit")
SAID: tuple[dict[str, Any], ...] = (
    {"batch": 1, "tokens": 512},
    {"batch": 4, "tokens": 256, "checkpoint": "block"},
    {"batch": 2, "tokens": 512, "loss": "chunked", "micro_batches": 2},
    {"batch": 4, "tokens": 256, "implementation": "memlab", "optimizer_impl": "forloop"},
)


# Other models, other sizes and other code, for a figure that nobody has looked at.
HELD_MODELS = ("llama-3.2-1b", "qwen3-4b", "mistral-7b-v0.3")
HELD_SAID: tuple[dict[str, Any], ...] = (
    {"batch": 3, "tokens": 384},
    {"batch": 2, "tokens": 640, "checkpoint": "block", "optimizer_impl": "fused"},
    {"batch": 6, "tokens": 128, "loop": "trainer", "micro_batches": 3},
    {"batch": 5, "tokens": 192, "implementation": "memlab", "loss": "chunked"},
)
MIB = 2**20


def turned(models=MODELS, every=SAID, less=False):
    """(base case, the cause that is turned in it, the case with it), wherever it adds bytes.

    less        wherever it takes some away; of a cause with a number that of its `turn`, one row
                fewer, texts half as long, two micro-batches, twice the ranks
    """
    found = []
    sign = -1 if less else 1
    for name, recipe, said in product(models, RECIPES, every):
        model = Model.preset(name)
        said = said | {"tokens": 128} if name == "tiny-llama" else said
        if recipe == "adamw8bit" and "optimizer_impl" in said:
            continue
        chosen = Recipe.named(recipe)
        base = Case(model, chosen, Run(**said), stored=stored_as(chosen))
        for cause in LESS if less else CAUSES:
            try:
                known = cause.level == "tensors" and (less or cause.sized is None)
                case = cause.turn(base) if known else None
                if case is not None and sign * (case.peak() - base.peak()) > 0:
                    found.append((base, cause, case))
            except ValueError:
                pass
    return found


def seen_of(base, cause, case):
    """What a tracker knows after three steps or more: each term, and whether steps leave bytes."""
    more = case.peak() - base.peak()
    return Watched(terms(case.contents()), more if cause.counted else 0)


def asked(base, cause, case, level="tensors", watched=None, printed=1, more=0):
    """The causes in their order, and those of the first entry; `printed` in whole ones of these."""
    seen = round((case.peak() + more) / printed) * printed
    search = Search(base, seen - base.peak(), seen, level, watched, rounding(seen, level))
    causes = search.alone()[0]
    first = search.entries(causes)[:1]
    names = [[cause_of(one.name) for one in some] for some in (causes, *first)]
    return names[0], [name for some in names[1:] for name in some]


def on_a_card(base, cause, case):
    """As nvidia-smi shows it."""
    drawn = random.Random(f"{base} {cause.name}")
    more = replayed(case.model, case.recipe, case.run.replace(holds=())).added + drawn.choice(
        CONTEXTS
    )
    return asked(base, cause, case, level="device", printed=MIB, more=more)


def place(base, cause, case, level="tensors", watched=None, printed=1):
    """Where the cause stands in the list, from 1 on; 0: it does not."""
    names, _ = asked(base, cause, case, level, watched, printed)
    return names.index(cause.name) + 1 if cause.name in names else 0


def most(cases, every, printed=1):
    """In how many any ranking can be right: in one of all causes that make one figure of a run."""
    alike = Counter((base, round(case.peak() / printed)) for base, _, case in every)
    return sum(1 / alike[base, round(case.peak() / printed)] for base, _, case in cases)


def score(places):
    """In how many cases it is the first, and among the first three."""
    return sum(at == 1 for at in places), sum(0 < at <= 3 for at in places)


def drawn(count=None, models=MODELS, said=SAID, less=False):
    """So many of them, and always the same ones."""
    every = turned(models, said, less)
    return random.Random("turned").sample(every, min(count or len(every), len(every)))


def main(count=None, held=False, less=False):
    which: Any = (HELD_MODELS, HELD_SAID, less) if held else (MODELS, SAID, less)
    cases, every = drawn(count, *which), turned(*which)
    least = max(CONTEXTS) - min(CONTEXTS)
    people = [each for each in cases if abs(each[2].peak() - each[0].peak()) > least]
    people = [each for each in people if not each[0].model.name.startswith("tiny")]
    ways = {
        "PyTorch's number in bytes": (cases, lambda b, c, k: asked(b, c, k, level="allocated")),
        "the same in whole MiB": (
            cases,
            lambda b, c, k: asked(b, c, k, level="allocated", printed=MIB),
        ),
        "a tracker's number": (cases, asked),
        "a tracker's terms": (cases, lambda b, c, k: asked(b, c, k, watched=seen_of(b, c, k))),
        "nvidia-smi's number": (people, on_a_card),
    }
    for how, (some, ask) in ways.items():
        found = [(cause.name, *ask(base, cause, case)) for base, cause, case in some]
        places = [names.index(true) + 1 if true in names else 0 for true, names, _ in found]
        first, three = score(places)
        share = f"{first / len(some):.1%} first, {three / len(some):.1%} among three"
        print(f"{how}: {share}, of {len(some)} figures")
        if "number in" in how or "MiB" in how:
            reach = most(some, every, MIB if "MiB" in how else 1) / len(some)
            print(f"    at most {reach:.1%} can be")
        among = [len(entry) for true, _, entry in found if true in entry]
        looks = [at for at in places if at]
        print(
            f"    in the first entry: {len(among) / len(some):.1%}, "
            f"of {sum(among) / max(1, len(among)):.2f} causes on average; "
            f"{sum(looks) / max(1, len(looks)):.2f} looks to the cause; "
            f"no gap: {sum(not names for _, names, _ in found) / len(some):.1%}"
        )
        pairs = Counter((true, *names[:1]) for true, names, _ in found if names[:1] != [true])
        for (true, *other), times in pairs.most_common(8):
            print(f"    {times:3} {true}, behind {other[0] if other else 'nothing: no gap'}")


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    main(int(words[0]) if words else None, held="--held" in sys.argv, less="--less" in sys.argv)
