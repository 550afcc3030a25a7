"""The exact flag or line with which a reader's library makes a change of memlab.explain.changes.

Whose library it is, the run says: memlab's own models, transformers in a loop of one's own, its
Trainer, or one of TRL's three. What a library has no flag for is not advised to its readers.
"""

from __future__ import annotations

from ..run.loops import LOOPS, TRL

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from ..recipe import Recipe
    from ..run import Run

OWN, TRAINER, SFT, MEMLAB = "own", "trainer", "sft", "memlab"
# TRL's trainers, and what each has in place of TrainingArguments.
CONFIGS = {loop: LOOPS[loop].config for loop in TRL}
TRAINERS = (TRAINER,) + TRL
LOADED = "AutoModelForCausalLM.from_pretrained(name, {})"
PEFT = 'peft.LoraConfig(r=16, target_modules="all-linear")'
ADAPTED = f"peft.get_peft_model(model, {PEFT})"
NF4 = 'BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4")'
QUANTIZED = f"quantization_config={NF4}"
# Name of a change: its line in a loop of one's own, then in that of a Trainer or of memlab's
# models where that is another one; None where there is none.
# Source      transformers, training_args.py and trainer.py; trl, sft_config.py;
#             torch 2.13; torchao, torchao/optim; bitsandbytes 0.50; peft, mapping_func.py
FLAGS: dict[str, dict[str, str | None]] = {
    "fused AdamW": {
        OWN: "torch.optim.AdamW(model.parameters(), fused=True)",
        TRAINER: 'TrainingArguments(optim="adamw_torch_fused")',
    },
    "SDPA attention": {OWN: LOADED.format('attn_implementation="sdpa"'), MEMLAB: None},
    "torch's loss in chunks": {
        OWN: "torch.nn.functional.linear_cross_entropy(hidden, model.lm_head.weight, labels, "
        "options=torch.nn.LinearCrossEntropyOptions())",  # without, it makes all logits
        TRAINER: None,
        MEMLAB: None,
    },
    "autocast": {
        OWN: 'torch.autocast("cuda", dtype=torch.bfloat16)',
        TRAINER: "TrainingArguments(bf16=True)",
    },
    "pure bf16": {OWN: LOADED.format("dtype=torch.bfloat16"), MEMLAB: "model.bfloat16()"},
    "8-bit states": {
        OWN: "bitsandbytes.optim.AdamW8bit(model.parameters())",
        TRAINER: 'TrainingArguments(optim="adamw_torch_8bit")',
    },
    "block checkpointing": {
        OWN: "model.gradient_checkpointing_enable()",
        TRAINER: "TrainingArguments(gradient_checkpointing=True)",
        MEMLAB: "memlab.lab.models.TinyLlama(model, checkpoint=True)",
    },
    "LoRA of rank 16 on every linear layer": {
        OWN: ADAPTED,
        MEMLAB: "memlab.lab.lora.adapt(model, 16, targets)",
    },
    "the same LoRA on a base in nf4": {
        OWN: f"{LOADED.format(QUANTIZED)}; {ADAPTED}",
        MEMLAB: None,
    },
}
MICRO_BATCHES = "[(loss(batch) / {passes}).backward() for batch in micro_batches]; optimizer.step()"
ACCUMULATED = (
    "TrainingArguments(per_device_train_batch_size={batch}, gradient_accumulation_steps={passes})"
)
SHARD = "[torch.distributed.fsdp.fully_shard(layer) for layer in decoder_layers]; "
SHARD += "fully_shard(model); torchrun --nproc-per-node {0}"
SHARDED = {OWN: SHARD, TRAINER: "TrainingArguments(fsdp=True); torchrun --nproc-per-node {0}"}


def library(run: Run) -> str:
    """Whose flags this run's reader sets."""
    if run.implementation == "memlab":
        return MEMLAB
    return run.loop if run.loop in TRAINERS else OWN


def flag(name: str, recipe: Recipe, run: Run) -> str | None:
    """The line that makes the change of this name, in a run that has it already.

    None        this library has none
    """
    of = library(run)
    trainer = of in TRAINERS
    if name.endswith("micro-batches"):
        words = ACCUMULATED if trainer else MICRO_BATCHES
        return _of(words.format(passes=run.micro_batches, batch=run.batch), of)
    if name == "8-bit states" and recipe.optimizer == "adamw8bit" and not trainer:
        return "torchao.optim.AdamW8bit(model.parameters())"
    return of_library(FLAGS[name], of)


def of_library(said: dict[str, str | None], of: str) -> str | None:
    """Of the lines of one change that of this library: a Trainer's for all of TRL's, renamed."""
    found = said.get(TRAINER if of in TRAINERS else of, said[OWN])
    return None if found is None else _of(found, of)


def divided(run: Run) -> str | None:
    """The line that divides a run over its cards with FSDP2; None where the library has none."""
    words = SHARDED.get(library(run))
    return words and words.format(run.devices.data)


def _of(words: str, of: str) -> str:
    if of not in CONFIGS or words.startswith("trl."):
        return words
    words = words.replace("TrainingArguments", CONFIGS[of])
    return f"{CONFIGS[of][:-6]}{words}" if words.startswith("Trainer(") else words
