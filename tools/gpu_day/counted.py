"""The allocator's counters around a step, and what memlab says of the same step.

A rehearsal on a CPU has what tensors request, from memlab's tracker; the allocator's own figures
are null there.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from gpu_day.note import Note
from memlab import Model, Run
from memlab.base.gc_paused import no_garbage
from memlab.lab.train import one_thread
from memlab.measure.step_tracker import StepTracker
from memlab.step import simulate
from memlab.terms.replay import Replay

SMALL = {
    "model_type": "llama",
    "num_hidden_layers": 3,
    "hidden_size": 64,
    "intermediate_size": 192,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 384,
    "max_position_embeddings": 64,
}
TRACKERS: list[StepTracker] = []  # of a CPU
PEAKS = ("requested", "allocated", "reserved")


def subject_of(small: bool) -> Model:
    """Llama-3-8B; in a rehearsal one of three layers."""
    return Model.from_config(SMALL) if small else Model.preset("llama-3-8b")


@contextmanager
def counting(device: str) -> Iterator[None]:
    """On a CPU every storage that the block makes; CUDA's allocator counts by itself."""
    if device == "cuda":
        yield
        return
    tracker: Any = StepTracker("cpu")
    with one_thread(), no_garbage(), tracker:
        tracker.follow = True
        TRACKERS.append(tracker)
        yield
        TRACKERS.pop()


def stat(key: str, kind: str = "current") -> int | None:
    """One of the counters: "requested", "allocated" or "reserved", now or at its peak."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
        return torch.cuda.memory_stats().get(f"{key}_bytes.all.{kind}")
    if key == "requested" and TRACKERS:
        return TRACKERS[-1].current if kind == "current" else TRACKERS[-1].peak
    return None


def less(size: int | None, *others: int | None) -> int | None:
    """A difference of counters, None where one of them is."""
    known = [other for other in others if other is not None]
    return None if size is None or len(known) < len(others) else size - sum(known)


def reset_peak() -> None:
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    for tracker in TRACKERS:
        tracker.reset_peak()


class Steps:
    """Notes the peaks of steps 1, 2 ... of a run, each since the end of the one before."""

    def __init__(self, note: Note) -> None:
        self.note, self.number = note, 0

    def end(self, *_: Any, **__: Any) -> None:
        """A step is over."""
        self.number += 1
        for key in PEAKS:
            self.note.figure(f"step {self.number}, {key} at its peak", stat(key, "peak"))
        self.note.figure(f"step {self.number}, requested after it", stat("requested"))
        retries = torch.cuda.memory_stats() if torch.cuda.is_initialized() else {}
        self.note.figure(f"step {self.number}, retries so far", retries.get("num_alloc_retries"))
        reset_peak()

    def train(self, model: Any, optimizer: Any, batches: list[Any]) -> None:
        """The loop of the book's first page, less the 4 bytes of a loss that is done with."""
        reset_peak()
        for ids in batches:
            loss = model(input_ids=ids, labels=ids).loss
            loss.backward()
            del loss
            optimizer.step()
            optimizer.zero_grad()
            self.end()


def predict(
    note: Note,
    model: Model,
    run: Run,
    trained: int,
    *,
    limit: int | None = None,
    expandable: bool = False,
) -> Replay:
    """Set memlab's figures beside the measured ones; returns the replay of both steps.

    trained     tensors: those of AdamW in a loop or foreach have counters of 4 bytes on the host
    limit       bytes that the allocator may reserve
    Leaves out  cuBLAS's workspaces, which are requested too: see the run "driver"
    """
    step = simulate(model, "bf16", run, every_layer=True)
    host = 4 * trained if run.backend == "cuda" and run.optimizer_loop != "fused" else 0
    said = {
        "step 1, requested at its peak": step.peak.first_step_bytes,
        "step 2, requested at its peak": step.peak.bytes - host,
        "step 2, requested after it": step.held["between_steps"] - host,
    }
    for name, size in said.items():
        note.figure(name, predicted=size, by="derived, tensors alone")
    played = step.replay(limit, expandable=expandable)
    if played.out_of_memory is None:
        by = "replayed, tensors alone"
        said = {
            "step 2, allocated at its peak": played.peak_allocated - host,
            "step 2, reserved at its peak": played.peak_reserved,
            "step 2, retries so far": played.allocator.retries,
        }
        for name, size in said.items():
            note.figure(name, predicted=size, by=by)
    return played
