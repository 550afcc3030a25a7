"""What no tensor shows: the CUDA context, and the workspaces that cuBLAS takes for itself."""

import torch

from gpu_day.counted import less, stat
from gpu_day.note import Note
from memlab.devices import device as card
from memlab.recording.subprocess_cases import used_by_driver
from memlab.terms.context import CONTEXT
from memlab.terms.workspaces import cublas_workspaces


def driver(note: Note, device: str, small: bool) -> None:
    """A context, then a product forward and one backward, in a process that had nothing."""
    gpu = device == "cuda"
    before = used_by_driver() if gpu else None
    one = torch.empty(1, device=device)
    taken = less(used_by_driver(), before, stat("reserved")) if gpu else None
    by = "largest of the posted readings, LAZY"
    note.figure("the context", taken, predicted=CONTEXT, by=by)
    free, total = torch.cuda.mem_get_info() if gpu else (None, None)
    note.figure("free of the card", free)
    note.figure("all of the card", total, predicted=card("H100 80GB").limit, by="an H100 80GB")
    major = torch.cuda.get_device_capability()[0] if gpu else 9
    a = torch.ones(256, 256, dtype=torch.bfloat16, device=device, requires_grad=True)
    held = stat("allocated")
    y = a @ a
    size = cublas_workspaces(major, threads=1)
    found = less(stat("allocated"), held, y.nbytes)
    note.figure("workspace, forward", found, predicted=size, by="derived")
    y.sum().backward()
    del y
    size = cublas_workspaces(major, threads=2)
    found = less(stat("allocated"), held, a.nbytes)  # a has a gradient now
    note.figure("workspaces, forward and backward", found, predicted=size, by="derived")
    taken = less(used_by_driver(), before, stat("reserved")) if gpu else None
    note.figure("the context, kernels of a product loaded", taken, predicted=CONTEXT, by=by)
    del one
