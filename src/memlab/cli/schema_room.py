"""The documents of check, its capstone and doctor, field by field."""

from __future__ import annotations

from ..files.learner import STATES
from .schema_parts import field, record, several

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

_ANSWER = record(
    {
        "exercise": field("text", "its id"),
        "state": field("text", "what became of it", enum=list(STATES)),
        "slip": field("text?", "the hint for this answer, in English; null: it is not wrong"),
    }
)
_CHAPTER = record(
    {
        "chapter": field("text", "its label"),
        "solved": field("count", "exercises with the right answer"),
        "total": field("count", "exercises of the chapter"),
        "files": several({"type": "string"}, "the notebooks that have them"),
        "exercises": several(_ANSWER, "in the order of their ids"),
    }
)
_NOTE = record(
    {
        "file": field("text", "a notebook; a learner's name where there is none"),
        "note": field("text", "what is odd about it"),
        "read": field("flag", "false where it could not be read"),
    }
)
_LEARNER = record(
    {
        "learner": field("text?", "the folder, or what the file's name says; null: no --class"),
        "chapters": several(_CHAPTER, "those of which a notebook is there"),
        "notes": several(_NOTE, "about the files"),
    }
)
_SLIP = record(
    {
        "exercise": field("text", "its id"),
        "slip": field("text", "the hint, in English"),
        "learners": field("count", "how many made it"),
    }
)
_RULE = record(
    {
        "rule": field("text", "its name"),
        "kept": field("flag", "whether the script keeps it"),
        "said": field("text", "what was run, in one sentence"),
    }
)
_CASE = record(
    {
        "case": field("count", "its number"),
        "file": field("text", "the script"),
        "points": field("count", "of 10"),
        "solved": field("flag", "whether all rules are kept and it fits"),
        "tight": field("flag", "whether all rules are kept and it may fit"),
        "rules": several(_RULE, "those of the case, then what the script states"),
        "advice": several({"type": "string"}, "what would help; empty where it fits"),
    }
)
_SCRIPTS = record(
    {
        "learner": field("text?", "the folder, or what the file's name says; null: no --class"),
        "points": field("count", "of all cases"),
        "cases": several(_CASE, "those of which a script is there"),
        "notes": several(_NOTE, "about the files"),
    }
)
_LINE = record(
    {
        "name": field("text", "what was looked at"),
        "state": field("text", "what it means", enum=["ready", "optional", "missing"]),
        "found": field("text", "what is there"),
        "do": field("text", "what to do about it; may be empty"),
    }
)

ROOM: dict[str, dict[str, Any]] = {
    "check": {
        "learners": several(_LEARNER, "one without --class"),
        "slips": several(_SLIP, "of all learners, chapter by chapter"),
    },
    "check --capstone": {"learners": several(_SCRIPTS, "one without --class")},
    "doctor": {
        "ready": field("flag", "whether nothing that is needed is missing"),
        "checks": several(_LINE, "in the order in which they are printed"),
    },
}
