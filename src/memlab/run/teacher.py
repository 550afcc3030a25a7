"""The teacher of a run that distils: another model, which judges and is never trained.

In a module of its own because only a run with a teacher loads it: the page's engine has none.
"""

from __future__ import annotations

from ..base.frozen import dataclass
from ..model import Model
from ..model.latent import Latent
from .adapters import shown

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    from .run import Run

FORMATS = ("fp32", "bf16", "fp16")


@dataclass(frozen=True)
class Teacher:
    """A model whose distribution over the next token the trained one learns, and its format.

    model       its shape; it needs the vocabulary of the student
    weights     fp32, bf16 or fp16; None: what its config says, where a student that TRL loads is
                in fp32; the student's where it says nothing
    Source      trl, trainer/distillation_trainer.py: __init__, which gives dtype=None to
                create_model_from_path; transformers 5.23, from_pretrained: dtype="auto" then
    Raises      ValueError and TypeError that name the field, its value and what would be right
    """

    model: Model
    weights: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.model, Model):
            given = f"teacher={self.model!r} is a {type(self.model).__name__}"
            raise TypeError(f"{given}; Model.preset(...) makes one")
        if self.weights is not None and self.weights not in FORMATS:
            raise ValueError(
                f"a teacher's weights={self.weights!r} are not described; known: "
                + ", ".join(FORMATS)
            )

    def told(self) -> str:
        """What a title says of it."""
        return f"taught by {self.model.name}" + (f" in {self.weights}" if self.weights else "")


def check(run: Run, loops: tuple[str, ...]) -> None:
    """Refuse a teacher where nobody asks one, and what is not described beside one.

    loops       those that have a teacher
    Raises      ValueError and TypeError that name the field, its value and what would be right
    """
    teacher, loop = run.teacher, run.loop
    if teacher is not None and not isinstance(teacher, Teacher):
        raise TypeError(f"teacher={teacher!r}; a memlab.run.teacher.Teacher or None is needed")
    if loop not in loops:
        name = "" if teacher is None else teacher.model.name
        needs = " or ".join(f"loop={each!r}" for each in loops)
        raise ValueError(f"teacher={name!r} is for {needs}; this is {loop!r}")
    for field, needed in (("loss", "plain"), ("adapter", None)):
        if getattr(run, field) != needed:
            raise ValueError(
                f"{field}={shown(getattr(run, field))} beside a teacher is not described"
            )
    if run.devices.ranks > 1:
        raise ValueError(f"loop={loop!r}: one device alone is described")


def check_vocabulary(student: Model, teacher: Model) -> None:
    """Raises ValueError where the two have not the same words."""
    if student.vocab != teacher.vocab:
        raise ValueError(
            f"the teacher {teacher.name} has V={teacher.vocab:,}, the student {student.name} "
            f"V={student.vocab:,}: their distributions are compared word by word, so they need "
            "the same vocabulary"
        )


def as_dict(teacher: Teacher) -> dict[str, Any]:
    """The teacher as JSON has it: every field of its model, and the format."""
    fields = {name: getattr(teacher.model, name) for name in MODEL}
    fields |= {"config": dict(fields["config"]), "dense_layers": list(fields["dense_layers"])}
    if teacher.model.latent is not None:
        fields["latent"] = {name: getattr(teacher.model.latent, name) for name in LATENT}
    return {"model": fields, "weights": teacher.weights}


def from_dict(given: dict[str, Any]) -> Teacher:
    """The teacher that `as_dict` wrote.

    Raises      ValueError for a field that does not exist
    """
    for what, inner, known in (("teacher", given, TEACHER), ("model", given["model"], MODEL)):
        for name in inner:
            if name not in known:
                raise ValueError(f"{what} has no field {name!r}; known: {', '.join(known)}")
    fields = dict(given["model"])
    fields["dense_layers"] = tuple(fields.get("dense_layers") or ())
    if isinstance(fields.get("latent"), dict):
        fields["latent"] = Latent(**fields["latent"])
    return Teacher(Model(**fields), given.get("weights"))


TEACHER: tuple[str, ...] = Teacher.__fields__  # type: ignore[attr-defined]
MODEL: tuple[str, ...] = Model.__fields__  # type: ignore[attr-defined]
LATENT: tuple[str, ...] = Latent.__fields__  # type: ignore[attr-defined]
