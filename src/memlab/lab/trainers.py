"""Trainers of libraries run for real on a CPU: transformers' Trainer and five of TRL.

Each trains a small model of random weights for three steps under a tracker; the third is the one
that is looked at, for by then the optimizer's states are there and nothing is made for the first
time. The tests hold what `memlab.step` derives of such a step against these.
"""

import contextlib
import io
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch

from ..adapters.lora import WRAPPED
from ..base.gc_paused import no_garbage
from ..measure.step_tracker import StepTracker
from ..model import Model
from ..run import Run
from ..run.loops import LOOPS, TAUGHT
from ..step.loops.evaluation import BATCHES
from . import distilling, trl_trainers
from .hugging_face import hugging_face
from .lora import adapt
from .quiet import quiet
from .train import one_thread
from .trainer_rows import STEPS, rows_of
from .with_peft import on_codes, scales_of, unfused, wrapped

# A config.json that is small enough for a test.
CONFIG = {
    "model_type": "llama",
    "num_hidden_layers": 3,
    "hidden_size": 64,
    "intermediate_size": 176,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 1024,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}


def highest(precision: str | None, run: Run, folder: Any, config: Any = CONFIG, **more: Any) -> int:
    """The peak of the third step that a library's trainer takes.

    precision   fp32, bf16 or autocast; None: as the trainer comes, given the name of a model whose
                config says bf16. What of the run is None is not said to the trainer either
    run         its loop is trainer, sft, dpo, grpo, distillation or gkd; batch, tokens
                and the rest as for `simulate`
    folder      where the trainer may write
    config      a config.json as a dict
    more        further arguments of TrainingArguments
    Unit        bytes of storages
    """
    tracker, first, last = watched(precision, run, folder, config, **more)
    return max(event.total for event in tracker.timeline[first:last])


def watched(
    precision: str | None,
    run: Run,
    folder: Any,
    config: Any = CONFIG,
    *,
    prepared: Callable[[StepTracker, Any, Any], None] = lambda tracker, model, optimizer: None,
    **more: Any,
) -> tuple[StepTracker, int, int]:
    """A tracker that saw three steps, and where the last of them begins and ends.

    prepared    called with the tracker, the model and the optimizer, as the trainer wraps them
    """
    transformers = hugging_face()
    tracker: Any = StepTracker()
    found: dict[str, int] = {}

    class Third(transformers.TrainerCallback):  # type: ignore[misc, name-defined]
        def on_train_begin(self, args: Any, state: Any, control: Any, **told: Any) -> None:
            prepared(tracker, told["model"], told["optimizer"])

        def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.global_step == 2:
                found["first"], tracker.follow = len(tracker.timeline), True

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.global_step == 3:
                found["last"] = len(tracker.timeline)
                control.should_training_stop = run.eval_batch is None

        def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            events = tracker.timeline[found["last"] :]
            highest = max(event.total for event in events)
            tracker.evaluation = getattr(tracker, "evaluation", highest)  # of the first of them
            control.should_training_stop = True

    with ExitStack() as stack:
        trainer = made(precision, run, folder, config, stack, more)
        trainer.add_callback(Third())
        if LOOPS[run.loop].rolls_out:
            _after_rollout(trainer, tracker, found)
        for kind in (one_thread(), no_garbage(), tracker):
            stack.enter_context(kind)
        others = (getattr(trainer, name, None) for name in ("ref_model", "teacher_model"))
        for model in (trainer.model, *others):
            if model is not None:
                tracker.label(model)
                tracker.label(scales_of(model), "weights")
        stack.enter_context(unfused(trainer.model))
        trainer.train()
    return tracker, found["first"], found["last"]


def made(
    precision: str | None, run: Run, folder: Any, config: Any, stack: ExitStack, more: Any
) -> Any:
    """The trainer with its rows and its model, which say nothing until the stack is left."""
    stack.enter_context(quiet())
    stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
    rows = rows_of(run, config["vocab_size"])
    model = named(run, folder, config) if precision is None else decoder(precision, run, config)
    return MADE[run.loop](model, rows, _how(precision, run, folder) | more, stack)


def decoder(precision: str, run: Run, config: Any = CONFIG) -> Any:
    """The model of transformers that a config describes, with random weights.

    Adapters are memlab's, whose code the trainers' own need not know; of several ranks, and beside
    the experts of a mixture, peft's
    """
    transformers = hugging_face()
    made = transformers.AutoConfig.for_model(**config)
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    model = transformers.AutoModelForCausalLM.from_config(made, dtype=dtype)
    if run.lora is not None and (run.devices.ranks > 1 or set(WRAPPED) & set(run.lora.targets)):
        return wrapped(model, Model.from_config(config), run)
    if run.lora is not None:
        adapt(model, run.lora.rank, tuple(f"{name}_proj" for name in run.lora.targets))
    return model


def named(run: Run, folder: Any, config: Any) -> Any:
    """The folder of a model in bf16, whose name TRL's trainers take; for Trainer that model."""
    transformers = hugging_face()
    made = transformers.AutoConfig.for_model(**config)
    model = transformers.AutoModelForCausalLM.from_config(made, dtype=torch.bfloat16)
    path = str(Path(folder, "model"))
    model.save_pretrained(path)
    if run.loop != "trainer":
        return path
    return transformers.AutoModelForCausalLM.from_pretrained(path)


def _how(precision: str | None, run: Run, folder: Any) -> dict[str, Any]:
    tokens = run.tokens or 0
    how: dict[str, Any] = dict(
        output_dir=str(folder),
        per_device_train_batch_size=run.batch,
        gradient_accumulation_steps=run.micro_batches,
        max_steps=STEPS,
        use_cpu=True,
        disable_tqdm=True,
        dataloader_pin_memory=False,
        report_to=[],
        save_strategy="no",
    )
    if precision is not None:
        how |= {"gradient_checkpointing": run.checkpointing == "block"}
        how |= {"bf16": precision == "autocast"}
    if run.lora is not None and run.lora.base is not None:
        how |= on_codes(run)
    if run.texts == "padded" and run.loop in ("sft", "dpo"):
        how["pad_to_multiple_of"] = tokens
    if run.texts == "packed" and run.loop == "sft":
        how |= {"padding_free": True, "max_length": None}
    if run.loop == "trainer":
        how |= {"texts": run.texts, "gathers": run.eval_logits}
    if run.eval_batch is not None:
        how |= {"eval_strategy": "steps", "eval_steps": 3}
        how["per_device_eval_batch_size"] = run.eval_batch
    if run.loop == "dpo":
        how |= {"precomputed": run.reference == "precomputed", "adapted": run.lora is not None}
    length = tokens - 1 if run.completion is None else run.completion
    if run.loop == "grpo":
        how |= {"completion": length, "judged": run.reference == "model"}
    if run.loop in TAUGHT:
        how |= {"completion": length, "teacher": run.teacher}
    return how


def _trainer(model: Any, rows: Any, how: dict[str, Any], stack: ExitStack) -> Any:
    transformers = hugging_face()
    texts, gathers = how.pop("texts"), how.pop("gathers")
    told: dict[str, Any] = {"train_dataset": rows}
    if texts == "packed":
        told["data_collator"] = transformers.DataCollatorWithFlattening()
    if "eval_steps" in how:
        told["eval_dataset"] = rows[:1] * (how["per_device_eval_batch_size"] * (gathers or BATCHES))
    if gathers:
        told["compute_metrics"] = lambda _: {}
    return transformers.Trainer(model, transformers.TrainingArguments(**how), **told)


def _after_rollout(trainer: Any, tracker: Any, found: dict[str, int]) -> None:
    """The third step begins when its completions are there: generating them is another phase."""
    compute = trainer.compute_loss

    def watched(*arguments: Any, **named: Any) -> Any:
        if trainer.state.global_step == 2 and "rolled out" not in found:
            found["first"] = found["rolled out"] = len(tracker.timeline)
        return compute(*arguments, **named)

    trainer.compute_loss = watched


MADE = {
    "trainer": _trainer,
    "sft": trl_trainers.sft,
    "dpo": trl_trainers.dpo,
    "grpo": trl_trainers.grpo,
    "distillation": distilling.distillation,
    "gkd": distilling.gkd,
}
