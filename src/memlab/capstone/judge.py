"""Whether what a script ran keeps the rules of its case, rule by rule, and what would help.

It asks no torch: what was run is a dictionary, memlab.capstone.observed. Long, because all that it
may say stands beside the rules.
"""

from __future__ import annotations

import ast

from ..base.frozen import dataclass
from ..base.message import Listed, Localized, Message
from ..units import parse, text
from ..verdict import DOES_NOT_FIT, FITS, room_on
from .cases import STATED

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    from .cases import Case

NEAR, ROUGH = 5, 15  # percent between a prediction and the peak: both points, or one
INPUTS = 64 << 20  # bytes that may cross in any case: the tokens, and numbers that are printed
# Percent of what is computed: a loss has a row less than there are tokens, and the backward pass of
# the first layer makes no gradient of its input.
FORWARD, BACKWARD = 98, 90

FIT, ENDED = "fits", "it ends"
UPDATES, MODEL, SEQUENCES, LENGTH = "updates", "model", "sequences", "length"
TRAINED, STORED, STATES = "what is trained", "weights", "optimizer states"
WORK, DEADLINE, MOVED = "computing", "deadline", "copies"
PREDICTED, MOMENT, TERM, LEAST = "prediction", "moment", "largest term", "the least that stands"

OF_FIT = "{1}: the peak is {2}; up to {3} fits for certain, and nothing above {4}"
FAILED = "it was not run to its end: {1}"
OF_UPDATES = "updates of the optimizer: {1}; two are needed, because the first makes the states"
OF_MODEL = "{1}: all of its matrices were there"
OTHER_MODEL = "{1}: {2} of its matrices are missing, such as one of {3} × {4}"
OF_SEQUENCES = "{1} sequences per update; the case asks for {2}"
OF_LENGTH = "sequences of {1} tokens; the case asks for {2}"
NO_CALL = "no sequence of tokens went through the embedding"
OF_TRAINED = "{1} weights are trained; the case asks for {2} at least"
OF_STORED = "a weight is stored in {1} bits; the case asks for {2} at least"
OF_STATES = "{1} bits of optimizer state for each trained weight; the case asks for {2} at least"
OF_WORK = (
    "forward passes computed {1}% of what this model computes for these tokens, and backward "
    "passes {2}% of what a plain one takes; layers, tokens or logits are missing where it is less"
)
OF_DEADLINE = "an update computes {1} times a forward pass; the deadline allows {2}"
OF_MOVED = "{1} per update cross between host and GPU; the case allows {2}"
NOTHING_SAID = "{1} is empty or not there; the script states it in a line of its own"
OF_PREDICTED = "predicted: {1}; the peak: {2}; {3}% off"
OF_STATED = "stated: {1}; found: {2}"
OF_LEAST = "stated: {1}; found: {2} on a GPU that has {3} for tensors; {4}% off"

LARGEST_NOW = "At the peak, in {1}, the largest term is {2}: {3} of {4}."
HELPS = "The rules leave: {1}."
NO_RULE_LEFT = "No single known change that the rules leave lowers this term."
CHECKPOINT = "gradient checkpointing"
MICRO_BATCHES = "smaller micro-batches, of which an update accumulates more"
CHUNKS = "a loss computed in chunks of rows"
FUSED = "an optimizer without temporaries: fused=True or foreach=False"
IN_BACKWARD = "each weight updated in the backward pass, as soon as its gradient is complete"
EIGHT_BITS = "optimizer states of 8 bits"
ADAPTERS = "adapters instead of all weights"
FOUR_BITS = "a frozen base in 4 bits"
OFFLOAD = "tensors that backward needs, kept on the host meanwhile"
# Words that a translator is given.
SENTENCES = tuple(
    each for name, each in dict(globals()).items() if name.isupper() and isinstance(each, str)
)


@dataclass(frozen=True)
class Rule:
    """A rule, and what was run.

    kept        whether it is kept
    said        one sentence with the figures, kept or not
    """

    name: str
    kept: bool
    said: str


@dataclass(frozen=True)
class Judged:
    """All that is said of a script.

    rules       of the case: all of them, and `fits`, solve it
    statements  of the learner: prediction, moment, largest term
    solved, tight   whether rules are kept and it fits, or may fit
    points      of 10
    advice      sentences; empty where it fits
    """

    rules: tuple[Rule, ...]
    statements: tuple[Rule, ...]
    solved: bool
    tight: bool
    points: int
    advice: tuple[str, ...]


def stated(source: str | bytes) -> dict[str, str]:
    """What a script says in lines such as PEAK = "18.2 GiB", read and never executed.

    Raises      SyntaxError for what is no Python
    """
    found = {}
    for line in ast.parse(source).body:
        if isinstance(line, ast.Assign) and isinstance(line.value, ast.Constant):
            for target in line.targets:
                if isinstance(target, ast.Name) and isinstance(line.value.value, str):
                    found[target.id] = line.value.value
    return {name: found.get(name, "") for name in (*STATED, "LEAST")}


def judged(case: Case, seen: dict[str, Any] | None, words: dict[str, str]) -> Judged:
    """Hold what was run against the case.

    seen        memlab.capstone.observed; None where a script has no program, only statements
    words       what the script states
    """
    if case.cannot and words["LEAST"]:
        return _refused(case, words["LEAST"])
    if seen is None or seen["failure"]:
        why = Localized("" if seen is None else seen["failure"])
        rule = Rule(ENDED, False, Message(FAILED, why))
        return Judged((rule,), (), False, False, 0, ())
    verdict = room_on(case.gpu).verdict(seen["peak"], seen["reserved"])
    limits = text(verdict.room.surely), text(verdict.room.at_most)
    said = Message(OF_FIT, verdict.word, text(seen["peak"]), *limits)
    fits = Rule(FIT, verdict.word == FITS, said)
    rules = (*_rules(case, seen), fits)
    kept = all(rule.kept for rule in rules[:-1])
    tight = kept and verdict.word not in (FITS, DOES_NOT_FIT)
    statements, earned = _statements(seen, words)
    solved = kept and fits.kept
    advice = () if verdict.word == FITS else _advice(case, seen)
    return Judged(rules, statements, solved, tight, points(solved, tight) + earned, advice)


def points(solved: bool, tight: bool) -> int:
    """Of the 10 of a case, those for a script that keeps all rules; statements earn 4 more."""
    return 6 if solved else 3 if tight else 0


def _rules(case: Case, seen: dict[str, Any]) -> list[Rule]:
    """All but whether it fits, in the order in which one would look."""
    updates = seen["updates"]
    rules = [Rule(UPDATES, updates >= 2, Message(OF_UPDATES, updates))]
    if lost := seen["lost"]:
        rows, columns, _ = lost[0]
        gone = sum(count for *_, count in lost)
        said = Message(OTHER_MODEL, Localized(case.model), gone, rows, columns)
        rules.append(Rule(MODEL, False, said))
    else:
        rules.append(Rule(MODEL, True, Message(OF_MODEL, Localized(case.model))))
    per_update = sum(rows * count for rows, _, count in seen["calls"]) / max(1, updates)
    lengths = sorted({tokens for _, tokens, _ in seen["calls"]})
    said = Message(OF_SEQUENCES, _short(per_update), case.sequences)
    rules.append(Rule(SEQUENCES, per_update == case.sequences, said))
    long = Message(OF_LENGTH, Listed(", ", lengths), case.tokens) if lengths else NO_CALL
    rules.append(Rule(LENGTH, lengths == [case.tokens], long))
    said = Message(OF_TRAINED, f"{seen['trained']:,}", f"{case.trained:,}")
    rules.append(Rule(TRAINED, seen["trained"] >= case.trained, said))
    said = Message(OF_STORED, seen["bits"], case.weights)
    rules.append(Rule(STORED, seen["bits"] >= case.weights, said))
    bits = seen["states"] // max(1, seen["trained"])
    rules.append(Rule(STATES, bits >= case.states, Message(OF_STATES, bits, case.states)))
    whole = case.forward * max(1, updates)
    forward = round(100 * seen["forward"] / whole)
    backward = round(100 * seen["backward"] / (whole * (case.plain - 1)))
    enough = forward >= FORWARD and backward >= BACKWARD
    rules.append(Rule(WORK, enough, Message(OF_WORK, forward, backward)))
    times = (seen["forward"] + seen["backward"]) / whole
    said = Message(OF_DEADLINE, f"{times:.2f}", _short(case.forwards))
    rules.append(Rule(DEADLINE, times <= case.forwards, said))
    most = case.moved << 30
    moved = seen["moved"] // max(1, updates)
    said = Message(OF_MOVED, text(moved), text(most))
    rules.append(Rule(MOVED, moved <= most + INPUTS, said))
    return rules


def _statements(seen: dict[str, Any], words: dict[str, str]) -> tuple[tuple[Rule, ...], int]:
    """What the learner stated, each held against the rehearsal; and the points for it."""
    found, earned = [], 0
    for name, rule in zip(STATED, (PREDICTED, MOMENT, TERM), strict=True):
        if not words[name]:
            found.append(Rule(rule, False, Message(NOTHING_SAID, Localized(name))))
        elif name == "PEAK":
            off, size = _off(words[name], seen["peak"])
            earned += 2 if off <= NEAR else 1 if off <= ROUGH else 0
            said = Message(OF_PREDICTED, text(size), text(seen["peak"]), off)
            found.append(Rule(rule, off <= NEAR, said))
        else:
            right = seen["phase"] if name == "PHASE" else _largest(seen)
            kept = words[name] == right
            earned += kept
            both = Localized(words[name]), Localized(right)  # words of the script stay as they are
            found.append(Rule(rule, kept, Message(OF_STATED, *both)))
    return tuple(found), earned


def _refused(case: Case, said: str) -> Judged:
    """The statement that nothing fits, with the figure that proves it."""
    least = sum(case.least.values())
    off, size = _off(said, least)
    room = text(room_on(case.gpu).at_most)
    rule = Rule(LEAST, off <= NEAR, Message(OF_LEAST, text(size), text(least), room, off))
    earned = 10 if rule.kept else 6 if off <= ROUGH else 0
    return Judged((rule,), (), rule.kept, False, earned, ())


def _off(said: str, found: int) -> tuple[int, int]:
    """By how many percent a stated size is off, rounded up, and its bytes.

    Raises      ValueError for what is no size
    """
    size = parse(said)
    return -(-abs(size - found) * 100 // max(1, found)), size


def _largest(seen: dict[str, Any]) -> str:
    terms: dict[str, int] = seen["terms"]
    return max(terms, key=lambda term: terms[term], default="")


def _advice(case: Case, seen: dict[str, Any]) -> tuple[str, ...]:
    """What is largest now, and the known changes that lower it and that the rules leave."""
    term = _largest(seen)
    sizes = text(seen["terms"].get(term, 0)), text(seen["peak"])
    several = any(rows > 1 for rows, _, _ in seen["calls"])
    full = seen["trained"] >= case.of_model.parameter_count
    again = (seen["forward"] + seen["backward"]) / max(1, seen["updates"]) / case.forward
    deadline = case.again and again + 0.5 < case.forwards
    fat = seen["states"] // max(1, seen["trained"]) > case.states
    known = {
        "activations": {CHECKPOINT: deadline, MICRO_BATCHES: several, OFFLOAD: case.moved > 0},
        "logits": {CHUNKS: True, MICRO_BATCHES: several},
        "gradients": {IN_BACKWARD: not several, ADAPTERS: full and case.rank > 0},
        "optimizer": {EIGHT_BITS: fat, ADAPTERS: full and case.rank > 0, IN_BACKWARD: full},
        "weights": {FOUR_BITS: seen["bits"] > case.weights, ADAPTERS: full and case.rank > 0},
    }.get(term, {})
    if seen["phase"] == "optimizer":  # whose temporaries are nothing else
        known = {FUSED: seen["terms"].get("other", 0) > seen["peak"] // 10} | known
    helps = [words for words, applies in known.items() if applies]
    largest = Message(LARGEST_NOW, seen["phase"], term, *sizes)
    return largest, Message(HELPS, Listed("; ", helps)) if helps else NO_RULE_LEFT


def _short(number: float) -> str:
    return f"{number:g}"
