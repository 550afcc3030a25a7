"""Why a counted reading is more than 5 % away: a sentence for each, or that nobody knows yet."""

import re

TOLERANCE = 0.05
UNEXPLAINED = "Not explained yet."
# Part of a reading's id, as a pattern, and the reason.
WHY = {
    r"Qwen3-0.6B/FP8/1$": (
        "With one token of input the figures of small models lie below weights and the keys and "
        "values of 2,048 tokens; how many were really generated is not stated."
    ),
    r"torchtune/2024-11/qlora": (
        "Without AdamW's states (0.34 GiB), which are there from the second step on, this row and "
        "that of LoRA above it would agree to the printed digit. "
    )
    + UNEXPLAINED,
    r"torchtune/2024-11/compile": (
        "With one more copy of the logits in fp32 (3.9 GiB) it would agree within 0.2%; Inductor "
        "of torch 2.13, which is traced, makes none, and 2.5 was not traced. "
    )
    + UNEXPLAINED,
    r"torchtune/2024-05/full-7b$": (
        "Its authors could not explain it either: they read 20.2 GB allocated for the same recipe, "
        "with the command, and 22.3 GB on an A100; both are within 3%. The row of four RTX 4090 "
        "with another optimizer has the same 24.1 GB, so one may be a copy of the other. Neither "
        "more steps nor what kernels allocate for themselves adds more than 2 MiB, the loading "
        "needs 13.5 GB, and the paged states lie outside the allocator. "
    )
    + UNEXPLAINED,
    r"gpjt/(length|batch)": (
        "The counter has blocks that wait for a stream too: ranks that hold the same differ by up "
        "to 4 GiB, in whole weights of 112 and 1,002 MiB, and the least of them is nearer."
    ),
    r"gpjt/again": (
        "All ranks hold 2.7 to 5.0 GiB more than is derived. Most of it seems to be blocks that "
        "wait for a stream: with 14 sequences the card is full, the allocator waits for them, and "
        "1.1 GiB are missing. "
    )
    + UNEXPLAINED,
}


def why(reading):
    """The sentence for a reading; nothing where there is none."""
    for pattern, words in WHY.items():
        if re.search(pattern, reading.id):
            return words
    return ""


def is_one(answer):
    """Whether an answer is counted and misses by more than the tolerance."""
    return answer.counted and abs(answer.error) > TOLERANCE
