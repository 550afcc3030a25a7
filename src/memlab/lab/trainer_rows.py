"""The rows that each trainer is given: random tokens, in the columns that its collator reads."""

from typing import Any

import torch

from ..run import Run
from ..run.loops import LOOPS

STEPS = 4  # the third is looked at, and Trainer may read one ahead


def rows_of(run: Run, vocab: int) -> list[dict[str, Any]]:
    tokens = run.tokens or 0
    sizes = (STEPS * run.batch * run.micro_batches * run.devices.data, 2, tokens)
    short = run.texts == "padded" and run.loop in ("sft", "dpo")  # their collators pad
    pairs = torch.randint(1, vocab, sizes)[:, :, short:].tolist()
    prompt = 1 if run.completion is None else tokens - run.completion
    if LOOPS[run.loop].rolls_out:
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
