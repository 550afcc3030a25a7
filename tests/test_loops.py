"""What the loops of libraries hold: transformers.Trainer and trl.SFTTrainer on a CPU, counted."""

import contextlib
import io

import pytest
import torch
from real_steps import hugging_face, quiet, random_configs, real_step, simulated

from memlab import Model, Run, estimate
from memlab.base.garbage import no_garbage
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


def trained(loop, precision, run, folder, config=CONFIG, **more):
    """The peak of the third step of a library's own loop, counted storage by storage.

    more        further arguments of TrainingArguments
    """
    transformers = hugging_face()
    with quiet():
        config = transformers.AutoConfig.for_model(**config)
        dtype = torch.bfloat16 if precision == "bf16" else torch.float32
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=dtype)
    ids = torch.randint(
        1, CONFIG["vocab_size"], (STEPS * run.batch * run.micro_batches, run.tokens)
    )
    rows = [{"input_ids": row, "labels": row} for row in ids.tolist()]
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
        **more,
    )
    tracker, found = StepTracker(), {}

    class Third(transformers.TrainerCallback):
        def on_step_begin(self, args, state, control, **_):
            if state.global_step == 2:
                tracker.reset_peak()

        def on_step_end(self, args, state, control, **_):
            if state.global_step == 3:
                found["peak"] = tracker.peak

    if loop == "trainer":
        arguments = transformers.TrainingArguments(**how)
        trainer = transformers.Trainer(model, arguments, train_dataset=rows, callbacks=[Third()])
    else:
        trainer = _sft(transformers, model, how, rows, Third())
    with one_thread(), quiet(), contextlib.redirect_stdout(io.StringIO()), no_garbage(), tracker:
        tracker.label(model)
        trainer.train()
    return found["peak"]


def _sft(transformers, model, how, rows, callback):
    import datasets
    import trl
    from tokenizers import Tokenizer, models

    words = Tokenizer(models.WordLevel({"<pad>": 0, "a": 1}, unk_token="<pad>"))
    told = {"pad_token": "<pad>", "eos_token": "a"}
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words, **told)
    arguments = trl.SFTConfig(dataset_kwargs={"skip_prepare_dataset": True}, **how)
    data = datasets.Dataset.from_list(rows)
    return trl.SFTTrainer(
        model, arguments, train_dataset=data, processing_class=tokenizer, callbacks=[callback]
    )


@pytest.mark.filterwarnings("ignore")  # of the libraries, about each other
@pytest.mark.parametrize(
    ("precision", "said"),
    [
        ("fp32", {"loop": "trainer", "micro_batches": 2}),
        ("bf16", {"loop": "trainer", "checkpoint": "block"}),
        ("autocast", {"loop": "sft"}),
        ("fp32", {"loop": "sft", "micro_batches": 2, "checkpoint": "block"}),
    ],
)
def test_a_librarys_own_loop_takes_what_is_derived(tmp_path, precision, said):
    run = Run.cpu(batch=3, tokens=32, **said)
    derived = simulate(Model.from_config(CONFIG), precision, run).peak.bytes
    assert trained(run.loop, precision, run, tmp_path) == derived


@pytest.mark.parametrize(
    "step",
    random_configs(4, 41, families=("llama", "gpt2", "opt"), dropouts=(0.0,)),
    ids=str,
)
def test_an_output_that_is_kept_is_there_in_the_next_forward_pass(step):
    step = step.replace(loop="keeps-outputs", micro_batches=2)
    real, derived = real_step(step), simulated(step)
    assert derived.peak.bytes == real.peak.bytes
    assert derived.held == real.held


def test_loops_are_asked_at_every_door():
    model = Model.preset("Llama-3.2-1B")
    plain = estimate(model, "bf16", Run(batch=4, tokens=1024)).total()
    trainer = estimate(model, "bf16", Run(batch=4, tokens=1024, loop="trainer")).total()
    assert trainer - plain == 8 * 4 * 1024 + 4 * 4 + 2  # labels, numbers
    kept = estimate(model, "bf16", Run(batch=4, tokens=1024, loop="keeps-outputs")).total()
    assert kept - plain == 2 * 4 * 1024 * model.vocab
    sft = estimate(model, "bf16", Run(batch=4, tokens=1024, loop="sft")).total()
    assert sft < plain  # fp32 logits cost more than the head's gradient in fp32


def test_what_a_loop_cannot_be_is_named():
    with pytest.raises(ValueError, match="loop='lamb' is not described; known: plain"):
        Run(tokens=8, loop="lamb")
    with pytest.raises(ValueError, match="loop='trainer' runs models of transformers"):
        Run(tokens=8, loop="trainer", implementation="memlab")
    with pytest.raises(ValueError, match="all logits are never there at once"):
        Run(tokens=8, loop="keeps-outputs", loss="chunked")
