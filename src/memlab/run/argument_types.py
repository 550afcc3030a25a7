"""What every door is given: a Model and a Run, and nothing else in their place."""

from __future__ import annotations

from ..model import Model
from .run import Run


def check_types(model: object, run: object) -> None:
    """Refuse a name or a dict in the place of a model or a run, at every door.

    Raises      TypeError that says how one is made
    """
    if not isinstance(model, Model):
        raise TypeError(f"model={model!r} is a {type(model).__name__}; Model.preset(...) makes one")
    if not isinstance(run, Run):
        raise TypeError(f"run={run!r} is a {type(run).__name__}; a memlab.Run is needed")
