"""What a program's loop has on the device beside the token ids that a step reads."""

from __future__ import annotations

from ..run import Run
from .graph import Tensor
from .ops import Ops
from .setting import Setting

# Of each micro-batch, all of the shape of the ids.
KINDS = {
    "trainer": ("ids", "labels"),
    "sft": ("ids", "labels", "attention_mask"),
    "dpo": ("ids", "attention_mask", "completion_mask"),
}


def inputs(f: Ops, s: Setting, run: Run) -> list[Tensor]:
    """The inputs of a named loop, which stay all the time; none for a loop of one's own.

    trainer     ids and labels of every micro-batch of a step, fetched before the first of them; on
                a CPU the next batch too, which the data loader has fetched ahead
    sft         the same with an attention mask
    dpo         of both sequences of each pair the ids, an attention mask and a mask of what is
                learned; and where the reference was asked beforehand its two numbers a pair
    grpo        ids and masks of the prompts and of the completions of all micro-batches, an
                advantage for each, and a reference's log-probabilities of their tokens
    Source      transformers 5.23, trainer.py: get_batch_samples; accelerate 1.15, data_loader.py:
                DataLoaderShard, which moves a batch to its device when it is asked for; trl 1.16,
                trainer/dpo_trainer.py: DataCollatorForPreference;
                grpo_trainer.py: _prepare_inputs
    """
    if run.loop == "grpo":
        return _completions(f, s, run)
    if run.loop not in KINDS:
        return []
    kinds = KINDS[run.loop]
    batches = run.micro_batches + (run.backend == "cpu")
    made = [f.new(kind, (s.B, s.T), "int64", "inputs") for _ in range(batches) for kind in kinds]
    del made[0]  # the ids that the step reads are there
    if run.reference == "precomputed":
        made += [f.new("ref_logps", (s.B,), "fp32", "inputs") for _ in range(batches)]
    counted = [f.new("items", (), "fp32")] if "labels" in kinds else []  # labels of a whole step
    running = f.new("loss", (), "fp32")  # of the steps since the last that was logged
    return [*made, *counted, running]


def _completions(f: Ops, s: Setting, run: Run) -> list[Tensor]:
    """What a rollout left: all of its micro-batches in one tensor of each kind."""
    rows = s.B * run.micro_batches
    made = [f.new("ref_logps", (rows, s.learned), "fp32", "inputs")] * (run.reference is not None)
    for length in (s.T - s.learned, s.learned):
        made += [f.new(kind, (rows, length), "int64", "inputs") for kind in ("ids", "mask")]
    made.append(f.new("advantages", (rows,), "fp32", "inputs"))
    made.append(f.new("items", (), "int64"))
    return [*made, f.new("loss", (), "fp32"), f.new("length", (1,), "fp32")]
