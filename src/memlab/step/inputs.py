"""What a program's loop has on the device beside the token ids that a step reads."""

from __future__ import annotations

from ..run import Run
from .graph import Tensor
from .ops import Ops
from .setting import Setting

NUMBERS = 3  # the running loss, the last micro-batch's, their tokens' number


def inputs(f: Ops, s: Setting, run: Run) -> list[Tensor]:
    """The inputs of a named loop, which stay all the time; none for a loop of one's own.

    trainer     ids and labels of every micro-batch of a step, fetched before the first of them; on
                a CPU the next batch too, which the data loader has fetched ahead
    sft         the same with an attention mask
    Source      transformers 5.23, trainer.py: get_batch_samples; accelerate 1.15, data_loader.py:
                DataLoaderShard, which moves a batch to its device when it is asked for
    """
    if run.loop not in ("trainer", "sft"):
        return []
    kinds = ("ids", "labels") + (("attention_mask",) if run.loop == "sft" else ())
    batches = run.micro_batches + (run.backend == "cpu")
    made = [f.new(kind, (s.B, s.T), "int64", "inputs") for _ in range(batches) for kind in kinds]
    del made[0]  # the ids that the step reads are there
    norm = f.new("norm", (), s.dtype)  # of the gradients of the last step, which were clipped
    return [*made, f.new("numbers", (NUMBERS,), "fp32"), norm]
