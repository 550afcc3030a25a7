"""Why a counted reading is more than 5 % away: a sentence for each, or that nobody knows yet."""

import re

TOLERANCE = 0.05
UNEXPLAINED = "Not explained yet."
# Part of a reading's id, as a pattern, and the reason.
WHY = {
    r"7b_tp1_pp4_memory_speed/alloc": (
        "Pipeline with virtual stages: what is missing is 20 tensors of the width of the residual "
        "stream, to the MiB; which of them the schedule holds is not derived. "
    )
    + UNEXPLAINED,
    r"tp1_pp4_vp1.*/alloc": (
        "Pipeline with virtual stages: what is missing is 6 to 10 tensors of the width of the "
        "residual stream; which of them the schedule holds is not derived. "
    )
    + UNEXPLAINED,
    r"Qwen3-0.6B/FP8/1$": (
        "With one token of input the figures of small models lie below weights and the keys and "
        "values of 2,048 tokens; how many were really generated is not stated."
    ),
    r"torchtune/2024-11/qlora": (
        "What is derived is one chunk of the logits' gradient and the last norm's inputs more than "
        "was read, here and in the row of LoRA above it. "
    )
    + UNEXPLAINED,
    r"torchtune/2024-05/lora-7b": (
        "The counter is not named; one of reserved memory would read more than the live tensors "
        "that are derived. A figure of the same table could not be reproduced by its authors. "
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
