"""What needs a process of its own: the context, libraries, the settings of the allocator.

A process pays its context once and its allocator reads its settings once, so each of these begins
with neither.
"""

import json
import os
import subprocess
import sys
from functools import partial
from typing import Any

import torch

from ..terms.replay import replay
from ..units import KiB, MiB
from .case import Case, Predicted, needs_cuda
from .meter import Meter

# aten/src/ATen/cuda/CublasHandlePool.cpp, parseChosenWorkspaceSize: ":4096:2:16:8", and 32 MiB on
# Hopper and Blackwell. One for each handle and stream, from the caching allocator, kept for good;
# cuBLASLt shares it unless TORCH_CUBLASLT_UNIFIED_WORKSPACE=0.
WORKSPACE = 2 * 4096 * KiB + 8 * 16 * KiB
WIDE_WORKSPACE, WIDE_MAJORS = 32 * MiB, (9, 10, 12)
SECONDS = 120
# Tells the child its card by the name that the driver knows it by: numbers may differ.
CARD = "MEMLAB_CARD"
SETTINGS = {"plain": "", "expandable": "expandable_segments:True"}

# Tensors that come and go so that rests are cut, neighbours join, and gaps stay.
SIZES = (100 * KiB, 700 * KiB, MiB, MiB + 1, 3 * MiB, 8 * MiB, 4 * MiB, 8 * MiB, 12 * MiB, 33 * MiB)
STORY = [("alloc", i, size) for i, size in enumerate(SIZES)]
STORY += [("free", i, 0) for i in (1, 5, 7)] + [("alloc", 10, 12 * MiB), ("alloc", 11, 300 * KiB)]


def workspace(major: int) -> int:
    """Bytes of one cuBLAS workspace on a card of this compute capability."""
    return WIDE_WORKSPACE if major in WIDE_MAJORS else WORKSPACE


def story() -> dict[str, int]:
    """The allocator's own figures after the tensors of STORY have come and gone."""
    from ..measure import cuda

    alive: dict[int, Any] = {}
    for kind, ident, size in STORY:
        if kind == "free":
            del alive[ident]
        else:
            alive[ident] = torch.empty(size, dtype=torch.uint8, device="cuda")
    found = cuda.counters()
    return {name: getattr(found, name) for name in ("requested", "allocated", "reserved")}


def library() -> dict[str, int]:
    """What the first matrix product leaves in the allocator beside its three matrices."""
    from ..measure import cuda

    a = torch.ones(256, 256, device="cuda")
    y = a @ a
    found = cuda.counters()
    own = a.nbytes + y.nbytes
    return {"requested": found.requested - own, "allocated": found.allocated - own}


def context() -> dict[str, int]:
    """What the card lost to this process beyond its segments, kernels of one product loaded.

    Source      nvidia-smi before and after; cudaMemGetInfo would make the context it asks about
    Leaves out  what other programs take or give back meanwhile
    """
    before = used_by_driver()
    a = torch.ones(256, 256, device="cuda")
    torch.cuda.synchronize()
    _ = a @ a
    torch.cuda.synchronize()
    return {"reserved": max(used_by_driver() - before - torch.cuda.memory_reserved(), 0)}


def used_by_driver() -> int:
    """Bytes in use on the card, as the driver says without being asked by this process.

    Raises      ValueError where nvidia-smi does not answer with a number
    """
    said = ask_driver("memory.used", os.environ.get(CARD, ""))
    try:
        return int(said.removesuffix("MiB").strip()) * MiB
    except ValueError:
        raise ValueError(f"nvidia-smi says {said!r} where a number of MiB is needed") from None


def ask_driver(what: str, card: str = "") -> str:
    """One line of nvidia-smi, of one card or the first; "" where there is no answer."""
    command = ["nvidia-smi", f"--query-gpu={what}", "--format=csv,noheader"]
    command += [f"--id={card}"] if card else []
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip().partition("\n")[0]


CALLS = {"story": story, "library": library, "context": context}


def counted(call: str, setting: str = "") -> dict[str, int]:
    """What a call counted in a process of its own, whose allocator has this setting.

    Raises      RuntimeError with the last line of what went wrong there
    """
    where = {**os.environ, "PYTORCH_ALLOC_CONF": setting}
    where.pop("PYTORCH_CUDA_ALLOC_CONF", None)
    if not setting:
        del where["PYTORCH_ALLOC_CONF"]
    where["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    if torch.cuda.is_available():
        where[CARD] = f"GPU-{torch.cuda.get_device_properties(0).uuid}"
    command = [sys.executable, "-c", f"from {__name__} import serve; serve()", call]
    done = subprocess.run(command, capture_output=True, text=True, env=where, timeout=SECONDS)
    lines = (done.stderr if done.returncode else done.stdout).strip().splitlines() or [""]
    if done.returncode:
        raise RuntimeError(f"{call} in a process of its own: {lines[-1]}")
    return json.loads(lines[-1])


def elsewhere(call: str, setting: str, meter: Meter) -> None:
    found = counted(call, setting)
    meter.found["held"] = {name: found.get(name) for name in ("requested", "allocated", "reserved")}


def replayed(expandable: bool, backend: str) -> dict[str, Predicted]:
    return {"held": Predicted(traced=replay(STORY, expandable=expandable).reserved[-1])}


def derived_workspace(backend: str) -> dict[str, Predicted]:
    """Known once the card is: its compute capability alone decides."""
    if backend != "cuda" or not torch.cuda.is_available():
        return {"held": Predicted()}
    return {"held": Predicted(derived=workspace(torch.cuda.get_device_capability()[0]))}


def nothing(backend: str) -> dict[str, Predicted]:
    """No formula: it depends on card, driver and the kernels that were loaded."""
    return {"held": Predicted()}


def cases() -> list[Case]:
    only: dict[str, Any] = {"scratch": (), "lacks": needs_cuda}
    found = []
    for name, setting in SETTINGS.items():
        words = f"{len(SIZES) + 2} tensors that come and go, segments {name}: what is reserved"
        run, said = partial(elsewhere, "story", setting), partial(replayed, name == "expandable")
        terms = {"held": "allocator"}
        found.append(
            Case(f"allocator/{name}", words, terms, said, run, compared="reserved", **only)
        )
    words = "cuBLAS's workspace after a first matrix product"
    run, terms = partial(elsewhere, "library", ""), {"held": "allocator"}
    found.append(Case("libraries/cublas", words, terms, derived_workspace, run, **only))
    words = "the CUDA context: what the card lost beyond PyTorch's segments"
    run = partial(elsewhere, "context", "")
    found.append(Case("context", words, terms, nothing, run, compared="reserved", **only))
    return found


def serve() -> None:
    """In a process of its own: one of CALLS by name; prints what it counted, as JSON."""
    print(json.dumps(CALLS[sys.argv[1]]()))
