"""The loops of libraries run for real on a CPU: transformers' Trainer, three of TRL, nanoGPT's."""

import contextlib
import io
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from unittest import mock

import torch
from real_steps import hugging_face, quiet

from memlab import Model, Run
from memlab.base.garbage import no_garbage
from memlab.lab.lora import LoRALinear, adapt
from memlab.lab.train import one_thread
from memlab.measure.step_tracker import StepTracker
from memlab.step import simulate

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
OPTIMIZER = "fused"  # the loop that Trainer takes by itself


@dataclass(frozen=True)
class Peaks:
    """Bytes of one step: before it, and its highest moment inside backward, outside, and after."""

    before: int
    backward: int
    elsewhere: int
    after: int


def derived(precision: str, run: Run) -> Peaks:
    """What the simulation says of the step that `trained` runs."""
    log = simulate(Model.from_config(CONFIG), precision, run).log
    marks = sorted((at, name) for name, at in log.marks.items() if name.startswith("second."))
    tops = {"backward": 0, "elsewhere": 0}
    for (first, name), (last, _) in zip(marks, marks[1:], strict=False):
        part = "backward" if ".backward" in name else "elsewhere"
        tops[part] = max([tops[part], *(total for _, _, total in log.events[first:last])])
    after = log.events[log.marks["second.optimizer"] : log.marks["second.end"]]
    return Peaks(log.events[marks[0][0] - 1][2], **tops, after=max(total for *_, total in after))


def trained(precision: str, run: Run, folder: Any) -> Peaks:
    """The third step of the loop that the run names, counted storage by storage."""
    tracker, first, last = (
        _nanogpt(precision, run) if run.loop == "nanogpt" else watched(precision, run, folder)
    )
    events = tracker.timeline[first:last]
    inside = [event.total for event in events if event.phase == "backward"]
    outside = [event.total for event in events if event.phase != "backward"]
    ended = max(event.index for event in events if event.phase == "backward")
    # From the first norm on: till then the loss and its graph go, which backward left behind.
    norms = [event.index for event in events if event.index > ended and "norm" in event.op]
    after = [event.total for event in events if event.index >= min(norms, default=ended)]
    return Peaks(tracker.timeline[first - 1].total, max(inside), max(outside), max(after))


def highest(precision: str, run: Run, folder: Any, config: Any = CONFIG, **more: Any) -> int:
    """The peak of the third step of a library's loop.

    more        further arguments of TrainingArguments
    """
    tracker, first, last = watched(precision, run, folder, config, **more)
    return max(event.total for event in tracker.timeline[first:last])


def watched(
    precision: str, run: Run, folder: Any, config: Any = CONFIG, **more: Any
) -> tuple[StepTracker, int, int]:
    """A tracker that saw four steps, and where the third of them begins and ends."""
    transformers = hugging_face()
    tracker, found = StepTracker(), {}

    class Third(transformers.TrainerCallback):
        def on_step_begin(self, args, state, control, **_):
            if state.global_step == 2:
                found["first"], tracker.follow = len(tracker.timeline), True

        def on_step_end(self, args, state, control, **_):
            if state.global_step == 3:
                found["last"] = len(tracker.timeline)

    with ExitStack() as stack:
        stack.enter_context(quiet())
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        make = {"trainer": _trainer, "sft": _sft, "dpo": _dpo, "grpo": _grpo}[run.loop]
        how = _how(precision, run, folder) | more
        trainer = make(_model(precision, run, config), _rows(run), how, stack)
        trainer.add_callback(Third())
        if run.loop == "grpo":
            _after_rollout(trainer, tracker, found)
        for kind in (one_thread(), no_garbage(), tracker):
            stack.enter_context(kind)
        for model in (trainer.model, getattr(trainer, "ref_model", None)):
            if model is not None:
                tracker.label(model)
        trainer.train()
    return tracker, found["first"], found["last"]


def _model(precision: str, run: Run, config: Any = CONFIG) -> Any:
    transformers = hugging_face()
    config = transformers.AutoConfig.for_model(**config)
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=dtype)
    if run.lora is not None:
        adapt(model, run.lora.rank, tuple(f"{name}_proj" for name in run.lora.targets))
    return model


def _rows(run: Run) -> list[dict[str, list[int]]]:
    sizes = (STEPS * run.batch * run.micro_batches, 2, run.tokens)
    pairs = torch.randint(1, CONFIG["vocab_size"], sizes).tolist()
    prompt = 1 if run.completion is None else run.tokens - run.completion
    if run.loop == "grpo":
        return [{"prompt": " ".join("a" * prompt)} for _ in pairs]
    if run.loop != "dpo":
        return [{"input_ids": row, "labels": row} for row, _ in pairs]
    return [
        {"prompt_ids": a[:prompt], "chosen_ids": a[prompt:], "rejected_ids": b[prompt:]}
        for a, b in pairs
    ]


def _how(precision: str, run: Run, folder: Any) -> dict[str, Any]:
    how = dict(
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
    if run.loop == "dpo":
        how |= {"precomputed": run.reference == "precomputed", "adapted": run.lora is not None}
    if run.loop == "grpo":
        length = run.tokens - 1 if run.completion is None else run.completion
        how |= {"completion": length, "judged": run.reference == "model"}
    return how


def _trainer(model: Any, rows: Any, how: dict[str, Any], stack: ExitStack) -> Any:
    transformers = hugging_face()
    return transformers.Trainer(model, transformers.TrainingArguments(**how), train_dataset=rows)


def _sft(model: Any, rows: Any, how: dict[str, Any], stack: ExitStack) -> Any:
    import datasets
    import trl

    arguments = trl.SFTConfig(dataset_kwargs={"skip_prepare_dataset": True}, **how)
    data = datasets.Dataset.from_list(rows)
    return trl.SFTTrainer(model, arguments, train_dataset=data, processing_class=tokenizer())


def _dpo(model: Any, rows: Any, how: dict[str, Any], stack: ExitStack) -> Any:
    import datasets
    import trl

    class Tokenized(trl.DPOTrainer):
        def _prepare_dataset(self, dataset, *_):
            return dataset

    precomputed, adapted = how.pop("precomputed"), how.pop("adapted")
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
            lambda completions, **_: [float(len(text) % 3) for text in completions],
            arguments,
            train_dataset=datasets.Dataset.from_list(rows),
            processing_class=tokenizer(),
        )


def _after_rollout(trainer: Any, tracker: StepTracker, found: dict[str, int]) -> None:
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
    def off(*_, **__):
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


def _nanogpt(precision: str, run: Run) -> tuple[StepTracker, int, int]:
    """nanoGPT's train.py around a model of transformers, line by line; the third step of four."""
    model = _model(precision, run).train()
    if run.checkpoint == "block":
        model.gradient_checkpointing_enable({"use_reentrant": False})
    model.config.use_cache = False
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    context = torch.autocast("cpu", torch.bfloat16, enabled=precision == "autocast")
    tracker, starts = StepTracker(), []
    sizes = (run.batch, run.tokens)

    def get_batch():
        return [torch.randint(CONFIG["vocab_size"], sizes) for _ in "XY"]

    with one_thread(), no_garbage(), tracker:
        tracker.label(model)
        tracker.follow = True
        X, Y = get_batch()
        for _ in range(STEPS):
            starts.append(len(tracker.timeline))
            for _ in range(run.micro_batches):
                with context:
                    loss, logits = model(X, labels=Y, return_dict=False)
                    loss = loss / run.micro_batches
                X, Y = get_batch()
                loss.backward()
            if run.clips:
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        del logits
    return tracker, starts[2], starts[3]
