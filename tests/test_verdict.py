"""Fits, tight or does not fit: the five that ran out of memory, those that ran, and one function."""

import json
import random
import sys
from pathlib import Path

import pytest

from memlab import GiB, Model, Recipe, Run
from memlab.cli import main
from memlab.devices import card, devices
from memlab.fit import advice, largest_batch
from memlab.terms.context import CONTEXT
from memlab.terms.workspaces import LARGE, SMALL
from memlab.verdict import (
    BAND,
    DOES_NOT_FIT,
    FITS,
    MEDIAN,
    RUNS,
    TIGHT,
    Room,
    room_for,
    room_on,
)

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))
from posted import answers, band, readings  # noqa: E402
from posted.described import Refused  # noqa: E402
from posted.unseen import answers as unseen  # noqa: E402

QWEN = Model.preset("qwen3-0.6b")
SPARE = {  # of LLaMA-Factory's examples, what says something about memory
    2: {"overlap_comm": False, "contiguous_gradients": True, "reduce_bucket_size": 5e8},
    3: {"overlap_comm": False, "contiguous_gradients": True},
}
# Issue, its command in the words of `memlab fit`, and the stage of its DeepSpeed file.
OUT_OF_MEMORY = [
    (
        "hiyouga/LLaMA-Factory#8642",
        "qwen3-32b --on H200 --recipe zero --ranks 8 --batch 1 --tokens 1024 --checkpoint block "
        "--loop trainer",
        2,
    ),
    (
        "hiyouga/LLaMA-Factory#5977",
        "llama-3-8b --on 'RTX 3090' --recipe zero --ranks 8 --batch 1 --tokens 1024 "
        "--checkpoint block --loop trainer",
        3,
    ),
    (
        "hiyouga/LLaMA-Factory#6752",
        "qwen2.5-3b --on 'RTX 3090' --recipe zero --ranks 4 --batch 1 --tokens 512 "
        "--checkpoint block --loop trainer",
        2,
    ),
    (
        "huggingface/trl#3168",
        "qwen2.5-0.5b --on 'A100 80GB' --precision fp32 --loop dpo --tokens 1024 --batch 8 "
        "--checkpoint none --no-clip",
        None,
    ),
]
