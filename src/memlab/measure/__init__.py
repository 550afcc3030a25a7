"""The torch side of memlab: what a run really holds, to the byte."""

import logging

from . import cuda
from .saved import Saved, saved
from .storages import resident, storage_bytes
from .tracker import CATEGORIES, Tracker

__all__ = ["CATEGORIES", "Saved", "Tracker", "cuda", "resident", "saved", "storage_bytes"]

# On import torchao reports, with the time of day, kernels that only some GPUs have, and torch
# reports a registration of torchao's; a notebook's stored output could never match those lines.
for _name in ("torchao", "torch.utils._pytree"):
    logging.getLogger(_name).setLevel(logging.ERROR)
