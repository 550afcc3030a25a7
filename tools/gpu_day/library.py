"""The same model in the libraries that train it: Trainer, peft, bitsandbytes, TRL, torchao."""

import tempfile
from contextlib import ExitStack
from typing import Any

import torch

from gpu_day.counted import Steps, predict, reset_peak, subject_of
from gpu_day.note import Note
from memlab import Model, Run
from memlab.adapters import Lora
from memlab.lab.subject import subject


def trainer(note: Note, device: str, small: bool) -> None:
    """transformers.Trainer, every weight trained: fused AdamW, each layer checkpointed."""
    _by_trainer(note, subject_of(small), _asked(device, small, loop="trainer"))


def sft(note: Note, device: str, small: bool) -> None:
    """trl.SFTTrainer on the same."""
    _by_trainer(note, subject_of(small), _asked(device, small, loop="sft"))


def lora(note: Note, device: str, small: bool) -> None:
    """Adapters of peft beside the four matrices of attention, in the book's loop."""
    model, run = subject_of(small), _asked(device, small, lora=_adapters())
    with torch.device(device):
        module = subject(model, "bf16", run)
    _by_hand(note, model, run, module)


def qlora(note: Note, device: str, small: bool) -> None:
    """The same on a base in nf4 of bitsandbytes."""
    from memlab.lab.with_peft import four_bits, with_peft

    model, run = subject_of(small), _asked(device, small, lora=_adapters(base="nf4"))
    with torch.device(device):
        plain = subject(model, "bf16", run.replace(lora=None))
        module = with_peft(four_bits(plain), model, run)
    _by_hand(note, model, run, module)


def fp8(note: Note, device: str, small: bool) -> None:
    """torchao's Float8Linear, not compiled, beside what the same step holds in bf16."""
    from memlab.lab.blocks import torchao

    # Fused, or the optimizer's temporaries would hide what the layers make.
    model, run = subject_of(small), _asked(device, small, optimizer_impl="fused")
    with torch.device(device):
        module = subject(model, "bf16", run)
    convert = torchao("float8").convert_to_float8_training
    convert(module, module_filter_fn=lambda _, name: name != "lm_head")
    _by_hand(note, model, run, module)
    note.text("predicted", "the step in bf16: torchao's layer saves what a linear layer saves")


def _adapters(**more: Any) -> Lora:
    return Lora(16, ("q", "k", "v", "out"), **more)


def _asked(device: str, small: bool, **more: Any) -> Run:
    return Run(tokens=64 if small else 4096, backend=device, checkpoint="block", **more)


def _by_hand(note: Note, model: Model, run: Run, module: Any) -> None:
    trained = [each for each in module.parameters() if each.requires_grad]
    ids = torch.randint(model.vocab, (1, run.tokens or 0), device=run.backend)
    how: dict[str, Any] = {"fused": True} if run.optimizer_impl == "fused" else {}
    Steps(note).train(module, torch.optim.AdamW(trained, **how), [ids, ids])
    predict(note, model, run, len(trained))


def _by_trainer(note: Note, model: Model, run: Run) -> None:
    from memlab.lab.hugging_face import hugging_face
    from memlab.lab.trainer_rows import rows_of
    from memlab.lab.trainers import MADE

    steps = Steps(note)

    class Counting(hugging_face().TrainerCallback):  # type: ignore[misc]
        on_step_end = steps.end

    with torch.device(run.backend):
        module = subject(model, "bf16", run)
    with ExitStack() as stack:
        how = dict(
            output_dir=stack.enter_context(tempfile.TemporaryDirectory()),
            per_device_train_batch_size=run.batch,
            gradient_checkpointing=True,
            gradient_checkpointing_kwargs={"use_reentrant": False},
            bf16=False,  # the weights are; not autocast
            max_steps=2,
            use_cpu=run.backend == "cpu",
            disable_tqdm=True,
            dataloader_pin_memory=False,
            report_to=[],
            save_strategy="no",
        )
        how |= {"texts": run.texts, "gathers": 0} if run.loop == "trainer" else {}
        made = MADE[run.loop](module, rows_of(run, model.vocab), how, stack)
        made.add_callback(Counting())
        reset_peak()
        made.train()
    predict(note, model, run, len(list(module.parameters())))
