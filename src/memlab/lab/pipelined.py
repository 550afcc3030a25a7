"""Training steps in a pipeline of real ranks on this machine, every byte of one rank counted.

B batch of one micro-batch · T tokens · D width · V vocabulary · m micro-batches
"""

from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from torch.distributed.pipelining.schedules import (
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleZBVZeroBubble,
)

from ..base.gc_paused import no_garbage
from ..measure.step_tracker import StepTracker
from ..model import Model
from ..recipe import Recipe
from ..run import Run
from ..run.optimizer_loops import loop_of
from ..run.recipe_choice import recipe_for
from .expert_steps import route
from .optim import optimizer
from .subject import DTYPES, subject
from .two_steps import Held, Marks, each, now, told, update

SINGLE = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}
MULTI = {
    "interleaved1f1b": ScheduleInterleaved1F1B,
    "interleavedzerobubble": ScheduleInterleavedZeroBubble,
    "zbvzerobubble": ScheduleZBVZeroBubble,
}


class Stage(nn.Module):
    """Some layers of a model of transformers: its own forward pass, the other layers deleted.

    Shapes      ids [B, T] or the stream [B, T, D] -> the stream, or from the last stage the logits
    """

    def __init__(self, whole: Any, layers: range, *, first: bool, last: bool) -> None:
        super().__init__()
        self.model, self.first, self.last = whole.model, first, last
        self.model.layers = nn.ModuleList([self.model.layers[i] for i in layers])
        if not first:
            self.model.embed_tokens = None
        if last:
            self.lm_head = whole.lm_head
        else:
            self.model.norm = nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        given = {"input_ids" if self.first else "inputs_embeds": x}
        hidden = self.model(**given).last_hidden_state
        return self.lm_head(hidden) if self.last else hidden


def next_token_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """The loss of transformers' models, from their logits."""
    from transformers.loss.loss_utils import ForCausalLMLoss

    return ForCausalLMLoss(logits, labels, vocab_size=logits.shape[-1])


def pipeline(
    model: Model, recipe: Recipe, run: Run, *, shapes: bool = True, routing: str | None = None
) -> tuple[Any, list[Stage]]:
    """The schedule of this rank, and the modules of its stages.

    routing     of a mixture's tokens: as memlab.lab.expert_steps.route, or None: by its routers
    shapes      whether the stages are told what they receive and send. Otherwise the first step
                finds out, with a micro-batch that runs forward and backward before all others
    """
    rank, ranks, devices = dist.get_rank(), run.devices.pipeline, run.devices
    every = ranks * devices.schedule.stages_per_rank
    stream = torch.empty(
        run.batch,
        run.tokens or 0,
        model.d_model,
        dtype=DTYPES[recipe.weights],
        device="meta",
        requires_grad=True,
    )
    ids = torch.empty(run.batch, run.tokens or 0, dtype=torch.int64, device="meta")
    stages, modules = [], []
    for index, layers in zip(devices.stages(rank), devices.layers(model.layers, rank), strict=True):
        first, last = index == 0, index == every - 1
        whole = subject(model, recipe, run)
        if routing is not None:
            route(whole, model, run, routing)
        modules.append(Stage(whole, layers, first=first, last=last))
        told: Any = {}
        if shapes:
            out = stream.new_empty(*stream.shape[:2], model.vocab, requires_grad=True)
            told = {"input_args": ids if first else stream, "output_args": out if last else stream}
        stages.append(PipelineStage(modules[-1], index, every, torch.device("cpu"), **told))
    more: Any = {"loss_fn": next_token_loss}
    if devices.schedule.name in SINGLE:
        return SINGLE[devices.schedule.name](stages[0], run.micro_batches, **more), modules
    return MULTI[devices.schedule.name](list(stages), run.micro_batches, **more), modules


def steps(
    model: Model,
    recipe: Recipe | str,
    run: Run,
    *,
    shapes: bool = True,
    routing: str | None = None,
) -> Held:
    """On one rank of a pipeline: two steps; what the second held at its peak and between steps.

    Shapes      ids [m B, T] go into the first stage, and the same as labels into the last
    Unit        bytes of storages; gradients that meet are added in place, as autograd adds them
    Leaves out  scratch memory inside one operator, buffers of gloo
    Raises      ValueError for another number of ranks than the run has
    """
    ranks, rank = run.devices.pipeline, dist.get_rank()
    if dist.get_world_size() != ranks:
        raise ValueError(f"{dist.get_world_size()} ranks are here; the run has {ranks}")
    torch.manual_seed(0)
    recipe = recipe_for(model, recipe, run)
    tracker = StepTracker()
    schedule, modules = pipeline(model, recipe, run, shapes=shapes, routing=routing)
    named = {
        f"{i}.{name}": weight
        for i, module in enumerate(modules)
        for name, weight in module.named_parameters()
    }
    chosen = optimizer(recipe.optimizer, named, loop=loop_of(recipe, run))
    ids_BT = torch.randint(model.vocab, (run.batch * run.micro_batches, run.tokens or 0))
    given: Any = [ids_BT] if rank == 0 else []
    more: Any = {"return_outputs": run.devices.schedule.return_outputs}
    last = modules[-1].last
    if last:
        more["target"] = ids_BT
    marks: Marks = {}
    with no_garbage(), tracker:
        tracker.label([*modules, chosen])
        if given or "target" in more:
            tracker.label(ids_BT, "inputs")
        for step in ("first", "second"):
            marks[step] = now(tracker)
            losses: list[Tensor] = []
            if last:
                more["losses"] = losses
            with tracker.phase("schedule"):
                schedule.step(*given, **more)
            update(tracker, marks, chosen)
    return told(tracker, marks)


several = partial(each, steps)
