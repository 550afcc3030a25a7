"""Training steps under torch's DistributedDataParallel on real ranks, every byte of one counted.

DDP copies gradients into buckets, which it reduces one by one while backward goes on. It makes them
when it wraps the model, and lays them out once more after the first step.
"""

import os
import tempfile
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from ..base.gc_paused import no_garbage
from ..measure.step_tracker import StepTracker
from ..model import Model
from ..recipe import Recipe
from ..run import Run
from ..run.optimizer_loops import loop_of
from ..run.recipe_choice import recipe_for
from .optim import optimizer
from .subject import loss_of, subject
from .trainers import highest
from .two_steps import now, told


def steps(model: Model, recipe: Recipe | str, run: Run, view: bool = False) -> dict[str, Any]:
    """On one of R real ranks: two steps; what the second held at its peak and at quiet moments.

    run         the step of one device: every rank makes it, with token ids of its own
    view        gradient_as_bucket_view: .grad lies in the buckets, and is no second copy
    Unit        bytes of storages; gradients that meet are added in place, as autograd adds them
    Leaves out  scratch memory inside one operator, buffers of gloo
    """
    torch.manual_seed(0)  # every rank begins with the same weights
    recipe = recipe_for(model, recipe, run)
    net = subject(model, recipe, run)
    ids_BT = torch.randint(model.vocab, (run.batch, run.tokens or 0))
    tracker = StepTracker("cpu")
    marks: dict[str, int] = {}
    with no_garbage(), tracker:
        tracker.label(net)
        tracker.label(ids_BT, "inputs")
        wrapped: Any = DistributedDataParallel(net, gradient_as_bucket_view=view)
        chosen = optimizer(
            recipe.optimizer, dict(net.named_parameters()), loop=loop_of(recipe, run)
        )
        tracker.label(chosen)
        for step in ("first", "second"):
            marks[step] = now(tracker)
            with tracker.phase("forward"):
                loss = loss_of(wrapped, ids_BT, run)
            marks["after_forward"] = now(tracker)
            with tracker.phase("backward"):
                loss.backward()
            del loss
            marks["after_backward"] = now(tracker)
            with tracker.phase("optimizer"):
                chosen.step()
            chosen.zero_grad()
            marks["between_steps"] = now(tracker)
    return told(tracker, marks) | {"ranks": dist.get_world_size()}


def both(model: Model, recipe: Recipe | str, run: Run) -> list[dict[str, Any]]:
    """`steps` with gradients of their own, and with gradients that lie in the buckets."""
    return [steps(model, recipe, run, view) for view in (False, True)]


def trained(precision: str, run: Run) -> int:
    """On one of R real ranks: the peak of the third step of a library's trainer, under DDP.

    run         the step of one device, as memlab.lab.trainers.highest takes it
    Unit        bytes of storages
    """
    ranks: dict[str, Any] = {"RANK": dist.get_rank(), "LOCAL_RANK": dist.get_rank()}
    ranks |= {"WORLD_SIZE": dist.get_world_size(), "LOCAL_WORLD_SIZE": dist.get_world_size()}
    ranks |= {"MASTER_ADDR": "localhost", "MASTER_PORT": 29500}
    said = {name: str(value) for name, value in ranks.items()}
    with patch.dict(os.environ, said), tempfile.TemporaryDirectory() as folder:
        return highest(precision, run, folder, ddp_backend="gloo")
