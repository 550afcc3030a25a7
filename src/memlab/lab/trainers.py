"""Trainers of libraries run for real on a CPU: transformers' Trainer and five of TRL.

Each trains a small model of random weights for three steps under a tracker; the third is the one
that is looked at, for by then the optimizer's states are there and nothing is made for the first
time. The tests hold what `memlab.step` derives of such a step against these. The module is long
because each trainer takes its model, its rows and its arguments in a form of its own.
"""

import contextlib
import io
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any
from unittest import mock

import torch

from ..base.garbage import no_garbage
from ..measure.step_tracker import StepTracker
from ..model import Model
from ..programs import DISTILLED
from ..run import Run
from ..step.evaluation import BATCHES
from . import distilling
from .lora import LoRALinear, adapt
from .quiet import quiet
from .train import one_thread
from .with_peft import wrapped

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
STEPS = 4
ROLLED_OUT = ("grpo", "distillation")  # which make the texts that they learn


def highest(precision: str, run: Run, folder: Any, config: Any = CONFIG, **more: Any) -> int:
    """The peak of the third step that a library's trainer takes.

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
    precision: str,
    run: Run,
    folder: Any,
    config: Any = CONFIG,
    *,
    prepared: Callable[[StepTracker, Any], None] = lambda tracker, model: None,
    **more: Any,
) -> tuple[StepTracker, int, int]:
    """A tracker that saw three steps, and where the last of them begins and ends.

    prepared    called with the tracker and the model as the trainer has wrapped it
    """
    transformers = hugging_face()
    tracker: Any = StepTracker()
    found: dict[str, int] = {}

    class Third(transformers.TrainerCallback):  # type: ignore[misc, name-defined]
        def on_train_begin(self, args: Any, state: Any, control: Any, **told: Any) -> None:
            prepared(tracker, told["model"])

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
        stack.enter_context(quiet())
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        make = MADE[run.loop]
        how = _how(precision, run, folder) | more
        rows = _rows(run, config["vocab_size"])
        trainer = make(decoder(precision, run, config), rows, how, stack)
        trainer.add_callback(Third())
        if run.loop in ROLLED_OUT:
            _after_rollout(trainer, tracker, found)
        for kind in (one_thread(), no_garbage(), tracker):
            stack.enter_context(kind)
        others = (getattr(trainer, name, None) for name in ("ref_model", "teacher_model"))
        for model in (trainer.model, *others):
            if model is not None:
                tracker.label(model)
        trainer.train()
    return tracker, found["first"], found["last"]


def hugging_face() -> Any:
    """transformers, imported without its warnings."""
    with quiet():
        import transformers

        _ = transformers.Trainer  # loaded when it is asked for, with warnings of its own
    transformers.logging.set_verbosity_error()
    return transformers


def decoder(precision: str, run: Run, config: Any = CONFIG) -> Any:
    """The model of transformers that a config describes, with random weights.

    Adapters are memlab's, whose code the trainers' own need not know; of several ranks peft's
    """
    transformers = hugging_face()
    made = transformers.AutoConfig.for_model(**config)
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    model = transformers.AutoModelForCausalLM.from_config(made, dtype=dtype)
    if run.lora is not None and run.devices.ranks > 1:
        return wrapped(model, Model.from_config(config), run)
    if run.lora is not None:
        adapt(model, run.lora.rank, tuple(f"{name}_proj" for name in run.lora.targets))
    return model


def _rows(run: Run, vocab: int) -> list[dict[str, Any]]:
    tokens = run.tokens or 0
    sizes = (STEPS * run.batch * run.micro_batches * run.devices.data, 2, tokens)
    short = run.texts == "padded" and run.loop in ("sft", "dpo")  # their collators pad
    pairs = torch.randint(1, vocab, sizes)[:, :, short:].tolist()
    prompt = 1 if run.completion is None else tokens - run.completion
    if run.loop in ROLLED_OUT:
        return [{"prompt": " ".join("a" * prompt)} for _ in pairs]
    if run.loop == "gkd":
        learned = [0] * prompt + [1] * (tokens - prompt)
        return [{"prompt": "a", "input_ids": row, "completion_mask": learned} for row, _ in pairs]
    if run.loop != "dpo":
        rows = [{"input_ids": row, "labels": row} for row, _ in pairs]
        if run.texts == "padded" and run.loop == "trainer":
            rows = [row | {"attention_mask": [1] * (tokens - 1) + [0]} for row in rows]
        return rows
    return [
        {"prompt_ids": a[:prompt], "chosen_ids": a[prompt:], "rejected_ids": b[prompt:]}
        for a, b in pairs
    ]


def _how(precision: str, run: Run, folder: Any) -> dict[str, Any]:
    tokens = run.tokens or 0
    how: dict[str, Any] = dict(
        output_dir=str(folder),
        per_device_train_batch_size=run.batch,
        gradient_accumulation_steps=run.micro_batches,
        gradient_checkpointing=run.checkpoint == "block",
        bf16=precision == "autocast",
        max_steps=STEPS,
        use_cpu=True,
        disable_tqdm=True,
        dataloader_pin_memory=False,
        report_to=[],
        save_strategy="no",
    )
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
    if run.loop in DISTILLED:
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


def _sft(model: Any, rows: Any, how: dict[str, Any], stack: ExitStack) -> Any:
    import datasets
    import trl

    arguments = trl.SFTConfig(dataset_kwargs={"skip_prepare_dataset": True}, **how)
    data = datasets.Dataset.from_list(rows)
    return trl.SFTTrainer(model, arguments, train_dataset=data, processing_class=tokenizer())


def _dpo(model: Any, rows: Any, how: dict[str, Any], stack: ExitStack) -> Any:
    import datasets
    import trl

    class Tokenized(trl.DPOTrainer):  # type: ignore[misc]
        def _prepare_dataset(self, dataset: Any, *_: Any) -> Any:
            return dataset

    precomputed, adapted = how.pop("precomputed"), how.pop("adapted")
    stack.enter_context(mock.patch.dict(os.environ, {"TQDM_DISABLE": "1"}))
    datasets.disable_progress_bars()
    stack.callback(datasets.enable_progress_bars)
    other = None if precomputed else _like(model)
    arguments = trl.DPOConfig(precompute_ref_log_probs=precomputed, **how)
    data = datasets.Dataset.from_list(rows)
    told = {"train_dataset": data, "processing_class": tokenizer()}
    trainer = Tokenized(model, other, arguments, **told)
    if adapted:
        _turn_off(trainer, model, stack)
    return trainer


def _grpo(model: Any, rows: Any, how: dict[str, Any], stack: ExitStack) -> Any:
    import datasets
    import trl

    completion, judged = how.pop("completion"), how.pop("judged")

    def reward(completions: Any, **_: Any) -> Any:
        return [float(len(text) % 3) for text in completions]

    arguments = trl.GRPOConfig(
        max_completion_length=completion,
        generation_kwargs={"min_new_tokens": completion},
        num_generations=how["per_device_train_batch_size"],
        beta=0.1 if judged else 0.0,
        **how,
    )
    with mock.patch(
        "trl.trainer.grpo_trainer.create_model_from_path", lambda *_, **__: _like(model)
    ):
        return trl.GRPOTrainer(
            model,
            reward,
            arguments,
            train_dataset=datasets.Dataset.from_list(rows),
            processing_class=tokenizer(),
        )


def _distillation(model: Any, rows: Any, how: dict[str, Any], stack: ExitStack) -> Any:
    return distilling.distillation(model, rows, how, stack, tokenizer())


def _gkd(model: Any, rows: Any, how: dict[str, Any], stack: ExitStack) -> Any:
    return distilling.gkd(model, rows, how, stack, tokenizer())


def _after_rollout(trainer: Any, tracker: Any, found: dict[str, int]) -> None:
    """The third step begins when its completions are there: generating them is another phase."""
    compute = trainer.compute_loss

    def watched(*arguments: Any, **named: Any) -> Any:
        if trainer.state.global_step == 2 and "rolled out" not in found:
            found["first"] = found["rolled out"] = len(tracker.timeline)
        return compute(*arguments, **named)

    trainer.compute_loss = watched


def _like(model: Any) -> Any:
    """A second model of the same shape: the reference."""
    transformers = hugging_face()
    dtype = next(model.parameters()).dtype
    return transformers.AutoModelForCausalLM.from_config(model.config, dtype=dtype)


def _turn_off(trainer: Any, model: Any, stack: ExitStack) -> None:
    """memlab's adapters in the place of peft's: TRL's own code asks for them without a reference.

    peft is not needed so: TRL takes the model for one of peft's, and its adapters go off and on.
    """

    @contextlib.contextmanager
    def off(*_: Any, **__: Any) -> Iterator[None]:
        with mock.patch.object(LoRALinear, "forward", lambda self, x: self.base(x)):
            yield

    trainer.ref_model, model.peft_config = None, {}
    for name, value in {"is_peft_model": lambda _: True, "use_adapter": off}.items():
        stack.enter_context(mock.patch(f"trl.trainer.dpo_trainer.{name}", value))


def tokenizer() -> Any:
    """Of few words: next to nothing is tokenized, but the trainers want one."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = Tokenizer(models.WordLevel({"<pad>": 0, "<end>": 1, "a": 2}, unk_token="<pad>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    told = {"pad_token": "<pad>", "eos_token": "<end>"}
    return hugging_face().PreTrainedTokenizerFast(tokenizer_object=words, **told)


MADE = {
    **{"trainer": _trainer, "sft": _sft, "dpo": _dpo, "grpo": _grpo},
    **{"distillation": _distillation, "gkd": _gkd},
}
