"""Answers that check themselves: `check("ex-weights-1", answer)` prints ○, ✓ or ✗ and a hint.

The exercises of a chapter stand in a file of its label (`weights.py`), a question each:

    exercise(
        "ex-weights-1",
        answer=lambda: weights(Model.preset("gpt2").parameter_count, "bf16"),
        hint="Count the embedding once: GPT-2 ties it to the head.",
        wrong={lambda: weights(163_037_184, "bf16"): "You counted the tied embedding twice."},
    )

The answer is computed by memlab when it is asked for, never typed in a second time.
"""

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from difflib import get_close_matches

from .question import Exercise, Value

__all__ = ["check", "exercise", "hints", "ids"]

_table: dict[str, Exercise] = {}
_loaded: list[str] = []
_OWN = {"field", "judge", "number", "question"}  # modules without exercises


def exercise(
    name: str,
    *,
    answer: Callable[[], Value],
    hint: str,
    unit: str = "B",
    wrong: Mapping[Callable[[], Value], str] | None = None,
) -> None:
    """Add a question to the table: its id, its answer and what to say to a wrong one.

    Unit        "B": whole bytes, which a learner may also write as text ("1.5 GiB"); any other
                word ("bytes per parameter", "GPUs") is only printed beside the answer
    Shapes      wrong: what a typical slip gives -> the sentence that helps
    Raises      ValueError if the id is taken
    """
    if name in _table:
        raise ValueError(f"exercise {name!r} exists already; an id names one question")
    _table[name] = Exercise(name, answer, hint, unit, dict(wrong or {}))


def check(name: str, answer: object) -> None:
    """Print ○ for `...`, ✓ for the right answer, ✗ and a hint for a wrong one.

    Raises      ValueError for an unknown id, with the closest known ones
    """
    print(_exercise(name).judge(answer))


def ids() -> list[str]:
    """The ids of all exercises, sorted."""
    _load()
    return sorted(_table)


def hints() -> dict[str, list[str]]:
    """Every sentence a learner may be told, by exercise: what a translator works on."""
    _load()
    return {name: [one.hint, *one.wrong.values()] for name, one in sorted(_table.items())}


def units() -> list[str]:
    """What is said of answers that are no bytes, "{1} tokens", for a translator."""
    _load()
    found = {one.unit for one in _table.values()}
    return [f"{{1}} {unit}" for unit in sorted(found - {"", "B"})]


def _exercise(name: str) -> Exercise:
    _load()
    if name not in _table:
        close = get_close_matches(str(name), _table, n=3, cutoff=0.4)
        known = ", ".join(close or sorted(_table)) or "none yet"
        raise ValueError(f"no exercise {name!r}; {'closest' if close else 'known'}: {known}")
    return _table[name]


def _load() -> None:
    for module in pkgutil.iter_modules(__path__):
        if module.name not in _OWN and module.name not in _loaded:
            _loaded.append(module.name)
            importlib.import_module(f"{__name__}.{module.name}")
