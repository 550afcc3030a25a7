"""TRL's trainers for supervised texts, preferences and rewards, made for memlab.lab.trainers."""

import contextlib
import os
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from unittest import mock

from .hugging_face import hugging_face, tokenizer
from .lora import LoRALinear


def sft(model: Any, rows: Any, how: dict[str, Any], stack: ExitStack) -> Any:
    import datasets
    import trl

    beside = ("quantization_config", "peft_config")
    told: dict[str, Any] = {name: how.pop(name) for name in beside if name in how}
    arguments = trl.SFTConfig(dataset_kwargs={"skip_prepare_dataset": True}, **how)
    data = datasets.Dataset.from_list(rows)
    told |= {"train_dataset": data, "processing_class": tokenizer()}
    return trl.SFTTrainer(model, arguments, **told)


def dpo(model: Any, rows: Any, how: dict[str, Any], stack: ExitStack) -> Any:
    import datasets
    import trl

    class Tokenized(trl.DPOTrainer):  # type: ignore[misc]
        def _prepare_dataset(self, dataset: Any, *_: Any) -> Any:
            return dataset

    precomputed, adapted = how.pop("precomputed"), how.pop("adapted")
    stack.enter_context(mock.patch.dict(os.environ, {"TQDM_DISABLE": "1"}))
    datasets.disable_progress_bars()
    stack.callback(datasets.enable_progress_bars)
    other = None if precomputed or isinstance(model, str) else like(model)
    arguments = trl.DPOConfig(precompute_ref_log_probs=precomputed, **how)
    data = datasets.Dataset.from_list(rows)
    told = {"train_dataset": data, "processing_class": tokenizer()}
    trainer = Tokenized(model, other, arguments, **told)
    if adapted:
        _turn_off(trainer, model, stack)
    return trainer


def grpo(model: Any, rows: Any, how: dict[str, Any], stack: ExitStack) -> Any:
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
    told = {"train_dataset": datasets.Dataset.from_list(rows), "processing_class": tokenizer()}
    if isinstance(model, str):
        return trl.GRPOTrainer(model, reward, arguments, **told)
    with mock.patch(
        "trl.trainer.grpo_trainer.create_model_from_path", lambda *_, **__: like(model)
    ):
        return trl.GRPOTrainer(model, reward, arguments, **told)


def like(model: Any) -> Any:
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
