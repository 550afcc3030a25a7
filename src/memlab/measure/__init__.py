"""The torch side of memlab: what a run really holds, to the byte."""

import logging

from . import cuda
from .announce import announce
from .saved import Saved, saved
from .snapshot import dump_snapshot, replay_tracker
from .storages import resident, storage_bytes
from .trace import trace
from .traced import Trace
from .tracker import CATEGORIES, Tracker
from .untraceable import CannotTrace

__all__ = [
    "CATEGORIES",
    "CannotTrace",
    "Saved",
    "Trace",
    "Tracker",
    "announce",
    "cuda",
    "dump_snapshot",
    "replay_tracker",
    "resident",
    "saved",
    "storage_bytes",
    "trace",
]

# On import torchao reports, with the time of day, kernels that only some GPUs have, and torch
# reports a registration of torchao's; a notebook's stored output could never match those lines.
for _name in ("torchao", "torch.utils._pytree"):
    logging.getLogger(_name).setLevel(logging.ERROR)
