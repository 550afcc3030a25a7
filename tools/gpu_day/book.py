"""The book's own run for real: Llama-3-8B, bf16, AdamW, 8,192 tokens, and the same checkpointed.

Random weights are made on the device. The program is that of the first page: two steps, of which
the second one ends out of memory on 80 GB, or fits with each layer checkpointed.
"""

import sys
import traceback
from pathlib import Path
from types import TracebackType
from typing import Any

import torch

from gpu_day.counted import Steps, predict, stat, subject_of
from gpu_day.note import Note
from memlab import Model, Run
from memlab.fit import limit_of
from memlab.lab.subject import subject
from memlab.step import simulate

CARD = "H100 80GB"  # the book's
SNAPSHOT = 8 << 20  # a larger one is not worth its way home


def fails(note: Note, device: str, small: bool) -> None:
    """The first page's run, on 80 GB: on a larger card the allocator is given no more than that."""
    model, run = _asked(device, small)
    module, optimizer, batches = _made(note, model, run, capped=True)
    if device == "cpu":
        _rehearse(module)
    try:
        Steps(note).train(module, optimizer, batches)
    except torch.OutOfMemoryError as error:  # what it holds is alive until the end of this block
        for key in ("allocated", "requested", "reserved"):
            note.figure(f"at the failure, {key}", stat(key))
        note.figure("at the failure, layers begun", _layer(module, error.__traceback__))
        note.text("message", f"torch.OutOfMemoryError: {error}")
        note.text("lines", _lines(error))
        if torch.cuda.is_initialized():
            note.text("memory_stats", repr(dict(torch.cuda.memory_stats())))
            _snapshot(note.path.with_name("failure.pickle"))
    else:
        note.text("message", "")
    trained = len(list(module.parameters()))
    played = predict(note, model, run, trained, limit=_limit(device))
    if (failed := played.out_of_memory) is not None:
        from memlab.measure.oom_message import oom_message

        for key in ("allocated", "reserved"):
            size = getattr(failed, key)
            note.figure(f"at the failure, {key}", predicted=size, by="replayed")
        note.figure("at the failure, layers begun", predicted=_begun(model, run), by="replayed")
        note.text("message, composed by memlab", oom_message(failed, CARD))


def fits(note: Note, device: str, small: bool) -> None:
    """The same with each layer checkpointed: what the book says makes it fit."""
    _whole(note, device, small, capped=True, checkpoint="block")


def expandable(note: Note, device: str, small: bool) -> None:
    """The same again in expandable segments, which PYTORCH_ALLOC_CONF has asked for."""
    _whole(note, device, small, capped=True, checkpoint="block", expandable=True)


def larger(note: Note, device: str, small: bool) -> None:
    """The first page's run where it fits as it is: the four peaks of a card of 141 GB."""
    if device == "cuda" and torch.cuda.mem_get_info()[1] < 115 << 30:
        note.state("skipped", "this card has less than 115 GiB")
        return
    _whole(note, device, small, capped=False, checkpoint="none")


def _whole(
    note: Note, device: str, small: bool, *, capped: bool, checkpoint: str, expandable: bool = False
) -> None:
    model, run = _asked(device, small, checkpoint=checkpoint)
    module, optimizer, batches = _made(note, model, run, capped=capped)
    Steps(note).train(module, optimizer, batches)
    limit = _limit(device) if capped else None
    trained = len(list(module.parameters()))
    predict(note, model, run, trained, limit=limit, expandable=expandable)


def _asked(device: str, small: bool, **more: Any) -> tuple[Model, Run]:
    return subject_of(small), Run(tokens=64 if small else 8192, backend=device, **more)


def _limit(device: str) -> int | None:
    return limit_of(CARD)[0] if device == "cuda" else None


def _made(note: Note, model: Model, run: Run, capped: bool) -> tuple[Any, Any, list[Any]]:
    if run.backend == "cuda":
        free, total = torch.cuda.mem_get_info()
        note.figure("free before the model", free)
        limit = limit_of(CARD)[0]
        if capped and total > limit + (8 << 30):
            torch.cuda.set_per_process_memory_fraction(limit / total)
            note.text("capped", f"the allocator may reserve {limit:,} of {total:,} bytes")
    with torch.device(run.backend):
        module = subject(model, "bf16", run)
        ids = torch.randint(model.vocab, (1, run.tokens or 0))
    rows = simulate(model, "bf16", run).rows
    size = rows["weights"] + rows["buffers"] + 8 * ids.numel()
    name = "the model and its batch, requested"
    note.figure(name, stat("requested"), predicted=size, by="derived")
    return module, torch.optim.AdamW(module.parameters()), [ids, ids]


def _begun(model: Model, run: Run) -> int:
    step = simulate(model, "bf16", run, every_layer=True)
    failed = step.replay(_limit(run.backend)).out_of_memory
    assert failed is not None and failed.event is not None
    begun = [layer for at, layer in step.log.entered if layer is not None and at <= failed.event]
    return begun[-1] + 1


def _layer(module: Any, trace: TracebackType | None) -> int | None:
    """How many layers of this forward pass had begun: a frame of the traceback is that layer's."""
    layers = list(module.model.layers)
    for frame, _ in traceback.walk_tb(trace):
        found = [i for i, each in enumerate(layers, 1) if each is frame.f_locals.get("self")]
        if found:
            return found[0]
    return None


def _lines(error: BaseException) -> str:
    """The traceback without this machine's paths."""
    frames = traceback.extract_tb(error.__traceback__)
    return "\n".join(f"{Path(f.filename).name}:{f.lineno} {f.name}: {f.line}" for f in frames)


def _snapshot(path: Path) -> None:
    torch.cuda.memory._dump_snapshot(str(path))
    if path.stat().st_size > SNAPSHOT:
        path.unlink()


def _rehearse(module: Any) -> None:
    """Where no card is full: fail in the last layer of the second step, as a card would."""
    passes = iter(range(sys.maxsize))

    def full(*_: Any) -> None:
        if next(passes) == 1:
            raise torch.OutOfMemoryError("rehearsed: no memory was asked for")

    module.model.layers[-1].mlp.register_forward_pre_hook(full)
