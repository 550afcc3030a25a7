"""Look for what breaks: odd questions for the shell, damaged files, valid configs at random.

    python tools/fuzz.py [SECONDS] [SEED] [shell|files|steps ...]

60 seconds from seed 0 if nothing is said; the kinds take turns, `steps` (real training, which needs
transformers) only where it is asked for. Each finding is printed once, with the kind and the seed
that make it again: `python tools/fuzz.py 0 SEED KIND`. Exit status 1 if there was one.
"""

import random  # noqa: F401, used by the tests
import sys
import tempfile
import time

from fuzz_files import SNAPSHOT, TARGETS, TIMELINE, attempt, case  # noqa: F401, likewise

KINDS = ("shell", "files", "steps")
USUAL = ("shell", "files")


def findings(kind, seed, folder):
    """What is wrong with one seed of a kind: (what was tried, what it did)."""
    if kind == "files":
        found = [(each, attempt(each, seed, folder)) for each in TARGETS]
    elif kind == "shell":
        import fuzz_shell

        found = [(kind, fuzz_shell.attempt(seed, folder))]
    else:
        import fuzz_steps

        found = [(kind, fuzz_steps.attempt(seed, folder))]
    return [(what, wrong) for what, wrong in found if wrong]


def _place(wrong):
    """Where it happened: findings of one kind in one place are told once."""
    return wrong.partition(" at ")[2].partition(" ")[0]


def main(arguments):
    numbers = [each for each in arguments if each.replace(".", "").isdigit()]
    kinds = [each for each in arguments if each not in numbers] or USUAL
    if unknown := sorted(set(kinds) - set(KINDS)):
        print(f"unknown {', '.join(unknown)}; known: {', '.join(KINDS)}", file=sys.stderr)
        return 2
    seconds = float(numbers[0]) if numbers else 60
    seed = int(numbers[1]) if len(numbers) > 1 else 0
    end, told, counts = time.monotonic() + seconds, {}, dict.fromkeys(kinds, 0)
    with tempfile.TemporaryDirectory() as folder:
        while True:
            for kind in kinds:
                counts[kind] += 1
                for what, wrong in findings(kind, seed, folder):
                    key = (what, wrong.split(":")[0], _place(wrong))
                    if key not in told:
                        told[key] = seed
                        print(f"{kind}, seed {seed}: {what}: {wrong[:400]}", flush=True)
            seed += 1
            if time.monotonic() >= end:
                break
    tried = ", ".join(f"{count:,} {kind}" for kind, count in counts.items())
    print(f"{tried} in {seconds:g} s, {len(told)} kinds of findings")
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
