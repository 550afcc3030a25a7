"""The torch side of memlab: what a run really holds, to the byte."""

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
