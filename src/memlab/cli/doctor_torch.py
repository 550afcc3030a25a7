"""One step of a small model, and the GPUs that PyTorch sees: a program of `memlab doctor`.

It is one of its own, since the import alone of a broken build may end the process.
"""

from __future__ import annotations

import json

import torch

from ..estimate import estimate
from ..lab.train import train
from ..model import Model

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any


def step() -> dict[str, int | None]:
    """Bytes of the weights after a step, and as the formula gives them."""
    model = Model.preset("tiny-llama")
    done = train(model, "fp32", steps=1, batch=1, tokens=8)
    pair = {"measured": done.ledger, "derived": estimate(model, "fp32")}
    return {
        name: sum(getattr(row, name) or 0 for row in one.rows if row.term == "weights")
        for name, one in pair.items()
    }


def gpus() -> list[dict[str, Any]]:
    """Each GPU of CUDA or ROCm: its name, its bytes, and whether it computes."""
    found = []
    for place in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        one: dict[str, Any] = {"name": torch.cuda.get_device_name(place), "error": ""}
        try:
            one["free"], one["usable"] = torch.cuda.mem_get_info(place)
            ones = torch.ones(2, 2, device=f"cuda:{place}")
            assert (ones @ ones).sum().item() == 8
        except Exception as error:  # of many kinds: no kernel for this GPU, a driver that is old
            one["error"] = f"{type(error).__name__}: {error}"
        found.append(one)
    return found


def mps() -> int | None:
    """The most that PyTorch takes of a Mac's memory for its GPU; None: there is none."""
    if not torch.backends.mps.is_available():
        return None
    return int(torch.mps.recommended_max_memory())


if __name__ == "__main__":
    version = torch.version
    build = {"cuda": version.cuda, "hip": version.hip, "gpus": gpus(), "mps": mps()}
    print("\n" + json.dumps({"version": torch.__version__, **build, **step()}))
