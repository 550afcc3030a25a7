"""The third step of a library's trainer, marked for whoever counts it, on a CPU or a GPU."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from ..run import Run
from .hugging_face import hugging_face
from .trainers import made


def third_step(
    precision: str,
    run: Run,
    folder: Any,
    config: Any,
    *,
    begins: Callable[[], None],
    ends: Callable[[], None],
    **more: Any,
) -> None:
    """Call `begins` and `ends` around the third step of a trainer, on whichever device it chooses.

    more        further arguments of TrainingArguments; without use_cpu=False it stays on the CPU
    """

    class Third(hugging_face().TrainerCallback):  # type: ignore[misc, name-defined]
        def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.global_step == 2:
                begins()

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.global_step == 3:
                ends()
                control.should_training_stop = True

    with ExitStack() as stack:
        trainer = made(precision, run, folder, config, stack, more)
        trainer.add_callback(Third())
        trainer.train()
