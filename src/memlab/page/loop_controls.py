"""What the page asks about the program that trains: the controls, and where they stand at first."""

from __future__ import annotations

from ..model.presets import PRESETS
from ..run.loops import LOOPS, TRL

LABELS = {name: loop.label for name, loop in LOOPS.items()}
ALL = 0  # tokens that are learned: all but the first
# Name, label, values in order with their labels; or name, label, least, most of a whole number.
LIKE = "like"  # the student, whatever it is
CHOICES = (
    ("loop", "Training framework", list(LABELS.items())),
    (
        "teacher",
        "Teacher model",
        [(LIKE, "the student's architecture")] + [(name, name) for name in sorted(PRESETS)],
    ),
    (
        "teacher_weights",
        "Teacher's dtype",
        [(LIKE, "that of its config"), ("bf16", "bf16"), ("fp32", "fp32")],
    ),
)
START = {"teacher": LIKE, "teacher_weights": LIKE}
NUMBERS = (("completion", "Completion length, in tokens (0: loss on all tokens)", ALL, 4194304),)
LEARNS = TRL  # loops that may learn an answer alone
