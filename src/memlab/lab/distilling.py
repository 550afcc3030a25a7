"""TRL's two trainers that distil, for memlab.lab.trainers: with a teacher of random weights."""

import copy
import os
from contextlib import ExitStack
from typing import Any
from unittest import mock

from ..run.teacher import Teacher
from .hugging_face import tokenizer
from .quiet import quiet
from .subject import DTYPES, settings_of


def distillation(model: Any, rows: Any, how: dict[str, Any], stack: ExitStack) -> Any:
    """DistillationTrainer, whose completions all have the length that they may have."""
    import datasets
    import trl

    length, teacher = how.pop("completion"), how.pop("teacher")
    told = {"generation_kwargs": {"min_new_tokens": length}, "max_completion_length": length}
    return trl.DistillationTrainer(
        model,
        taught_by(model, teacher),
        trl.DistillationConfig(**told, **how),
        train_dataset=datasets.Dataset.from_list(rows),
        processing_class=tokenizer(),
    )


def gkd(model: Any, rows: Any, how: dict[str, Any], stack: ExitStack) -> Any:
    """GKDTrainer in a step on texts that are there: it generates none, which is another phase.

    lmbda=0 would still generate where random.random() gives 0, hence the number below.
    """
    import datasets

    stack.enter_context(mock.patch.dict(os.environ, {"TRL_EXPERIMENTAL_SILENCE": "1"}))
    with quiet():
        from trl.experimental import gkd as theirs
    teacher = how.pop("teacher")
    how.pop("completion")
    arguments = theirs.GKDConfig(**how)
    arguments.lmbda = -1.0
    return theirs.GKDTrainer(
        model,
        taught_by(model, teacher),
        arguments,
        train_dataset=datasets.Dataset.from_list(rows),
        processing_class=tokenizer(),
    )


def taught_by(model: Any, teacher: Teacher | None) -> Any:
    """A model of transformers that the teacher describes; without one, of the student's shape.

    Of a student that is the name of a model the teacher is that name.
    """
    if isinstance(model, str):
        return model
    with quiet():
        import transformers
    dtype = next(model.parameters()).dtype
    config = copy.deepcopy(model.config)  # trainers turn the student's cache off in its own
    if teacher is not None:
        config = transformers.AutoConfig.for_model(**settings_of(teacher.model))
        dtype = DTYPES.get(teacher.weights or "", dtype)
    return transformers.AutoModelForCausalLM.from_config(config, dtype=dtype)
