"""What a program's loop has on the device beside the token ids that a step reads."""

from __future__ import annotations

from ...run import Run
from ...run.loops import LOOPS
from ..core.graph import Tensor
from ..core.setting import Setting
from ..ops import Ops

# What says which tokens belong together, of the same shape.
MARKS = {"padded": "attention_mask", "packed": "position_ids"}


def kinds_of(run: Run) -> tuple[str, ...]:
    """What each micro-batch of a named loop has, all of one shape."""
    kinds = LOOPS[run.loop].batch
    mark = MARKS.get(run.texts)
    if mark == "position_ids":  # collators for packed rows make no mask
        return (*(kind for kind in kinds if kind != "attention_mask"), mark)
    return kinds if mark is None or mark in kinds else (*kinds, mark)


def batch_of(run: Run) -> tuple[str, ...]:
    """What a step of a loop of one's own is given of each micro-batch, the ids first.

    Labels are the ids, unless padding, or the first token of each packed text, is not to be learned
    """
    if run.loop == "nanogpt" or run.loss == "cross_entropy":
        return ("ids", "labels")
    if run.devices.context > 1:
        return ("ids", "position_ids", "labels")
    if LOOPS[run.loop].batch or run.texts == "full":
        return ("ids",)
    return ("ids", "labels", MARKS[run.texts])


def inputs(f: Ops, s: Setting, run: Run) -> list[Tensor]:
    """The inputs of a named loop, which stay all the time; none for a loop of one's own.

    trainer     ids and labels of every micro-batch of a step, fetched before the first of them; on
                a CPU the next batch too, which the data loader has fetched ahead
    sft         the same with an attention mask; of packed texts, instead of it, their positions and
                the number of each token's text and the places where texts begin, of which there
                are here as many as sequences: 4 bytes more for each beyond (8 on a GPU)
    dpo         of both sequences of each pair the ids, an attention mask and a mask of what is
                learned; and where the reference was asked beforehand its two numbers a pair
    gkd         the same as sft, and where each token stands in the text, two numbers each; ids and
                masks of the prompts once more, for a step that generates
    distillation    as grpo, without an advantage
    grpo        ids and masks of the prompts and of the completions of all micro-batches, an
                advantage for each, and a reference's log-probabilities of their tokens
    Source      transformers, trainer.py: get_batch_samples; accelerate, data_loader.py:
                DataLoaderShard, which moves a batch to its device when it is asked for; trl,
                trainer/dpo_trainer.py: DataCollatorForPreference;
                grpo_trainer.py and distillation_trainer.py: _prepare_inputs; experimental/utils.py:
                DataCollatorForChatML
    """
    if LOOPS[run.loop].rolls_out:
        return _completions(f, s, run)
    if not LOOPS[run.loop].batch:
        return []
    kinds = kinds_of(run)
    batches = run.micro_batches + (run.backend == "cpu")
    made = [f.new(kind, (s.B, s.T), "int64", "inputs") for _ in range(batches) for kind in kinds]
    if run.loop == "sft" and run.texts == "packed":
        starts = 1 if run.backend == "cpu" else 2  # moved to a GPU under both of their names
        for _ in range(batches):
            made += [f.new("starts", (run.batch + 1,), "int32", "inputs") for _ in range(starts)]
            made.append(f.new("seq_idx", (s.B, s.T), "int32", "inputs"))
    if run.loop == "gkd":
        prompt = (s.B, s.T - s.learned)
        made += [f.new("prompt", prompt, "int64", "inputs") for _ in range(2 * batches)]
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
    made.append(f.new("items", (), "int64"))
    made.append(f.new("loss", (), "fp32"))
    if run.loop == "grpo":
        made.append(f.new("advantages", (rows,), "fp32", "inputs"))
        if run.backend == "cpu":  # the trainer makes them on the host, and a GPU never has them
            made.append(f.new("reward_weights", (1,), "fp32"))
    return made
