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
    r"torchtune/2024-05/full-7b$": (
        "Its authors could not explain it either: they read 20.2 GB allocated for the same recipe, "
        "with the command, and 22.3 GB on an A100; both are within 3%. "
    )
    + UNEXPLAINED,
    r"gpjt/(length|batch)": (
        "The counter has blocks that wait for a stream too: ranks that hold the same differ by up "
        "to 4 GiB, in whole weights of 112 and 1,002 MiB, and the least of them is nearer."
    ),
    r"gpjt/again": (
        "All ranks agree, and hold 2.7 to 4.9 GiB more than is derived, whatever the batch; of 14 "
        "sequences 1.1 GiB. "
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
