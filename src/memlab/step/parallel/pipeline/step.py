"""Two training steps of each rank of a pipeline, as torch.distributed.pipelining runs them.

The program     stages = [PipelineStage(Stage(model, ...), index, all, device) for each of the rank]
                schedule = Schedule1F1B(stages[0], micro_batches, loss_fn=ForCausalLMLoss)
                losses = []; schedule.step(ids) or schedule.step(target=ids, losses=losses)
                optimizer.step(); optimizer.zero_grad()
Source          memlab.step.parallel.pipeline.stage, .schedules, .split_backward;
                memlab.lab.pipelined runs it really
CUDA            the same order; not yet measured on a GPU
"""

from __future__ import annotations

from functools import lru_cache, partial
from itertools import chain

from ....model import Model
from ....recipe import Recipe
from ....run import Run
from ....run.optimizer_loops import loop_of, step_name
from ....run.recipe_choice import recipe_for
from ... import supported
from ...core.graph import Parameter, Tensor
from ...core.peak import peak_of
from ...core.report import told
from ...core.result import Peak, Step, term
from ...core.saved_table import SavedTable
from ...core.setting import Setting
from ...core.storage_log import Dim
from ...core.weight_check import check_weights
from ...networks import network
from ...networks.hf_common import causal_lm_loss
from ...ops import Ops
from ...optimizers import optimizer
from ...optimizers.each import in_order
from ...windows import windows
from ..supported import check_pipelined, dense_of, first_dense
from .schedules import INPUT, SCHEDULES, WEIGHT, Rank, one_by_one
from .stage import Stage

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Iterator


@lru_cache(maxsize=8)
def step_of_stage(
    model: Model,
    recipe: Recipe | str | None,
    run: Run,
    stage: int,
    *,
    every_layer: bool = False,
    short: bool = False,
) -> Step:
    """What one rank of a pipeline holds in a step, to the byte: its stage, or all of its stages.

    short       as of memlab.step.simulate
    Unit        bytes of storages; `held`: after_forward is the moment before the first backward
    Raises      ValueError for what is not described of a pipeline, and for a stage without a rank
    """
    return _played(model, recipe, run, stage, every_layer, short).told()


def _played(
    model: Model, recipe: Recipe | str | None, run: Run, stage: int, whole: bool, short: bool
) -> _Rank:
    """A rank when both steps are over."""
    chosen = recipe_for(model, recipe, run)
    check_pipelined(model, chosen, run)
    rank = _Rank(model, chosen, run, stage, whole)
    rank.step("first", short)
    rank.step("second")
    rank.over()
    return rank


@lru_cache(maxsize=1024)
def stage_peaks(model: Model, recipe: Recipe | str | None, run: Run) -> tuple[Peak, ...]:
    """The peak of every rank's step."""
    ranks = range(run.devices.pipeline)
    return tuple(peak_of(_played(model, recipe, run, rank, False, True).f.log) for rank in ranks)


def of_fullest(model: Model, recipe: Recipe, run: Run) -> Peak:
    """The peak of the rank whose is highest.

    Raises      as `memlab.step.simulate`
    """
    return max(stage_peaks(model, recipe, run), key=lambda peak: peak.bytes)


def fullest(model: Model, recipe: Recipe | str | None, run: Run) -> int:
    """The rank whose peak is highest."""
    found = [peak.bytes for peak in stage_peaks(model, recipe, run)]
    return found.index(max(found))


class _Rank:
    """One rank: its modules, its stages, its optimizer."""

    def __init__(self, model: Model, recipe: Recipe, run: Run, rank: int, whole: bool) -> None:
        self.f = f = Ops(backend=run.backend)
        self.model, self.run, self.dtype = model, run, supported.dtype_of(recipe)
        dropouts = supported.dropouts_of(model, run)
        attention = supported.attention_of(model, recipe, run)
        devices, ranks = run.devices, run.devices.pipeline
        every = ranks * devices.schedule.stages_per_rank
        near, sliding = windows(model, run.window)
        assert run.tokens is not None  # check_pipelined saw to it
        parts = devices.layers(model.layers, rank)
        dense = [dense_of(model, layers) for layers in parts]
        first = first_dense(dense)
        # Where backward is split, a layer's halves lie apart: nothing there repeats.
        f.show(max(map(len, parts)), None if whole or devices.schedule.splits_backward else first)
        build = network("stage", model.family)
        networks = []
        for index, layers, apart in zip(devices.stages(rank), parts, dense, strict=True):
            setting = Setting(
                model.replace(layers=len(layers), dense_layers=apart, config={}),
                self.dtype,
                run.batch,
                run.tokens,
                attention,
                extra=model.config,
                window=near,
                checkpoint=run.checkpointing == "block",
                sliding=sliding and sliding[: len(layers)],  # looked up by their number here
                **dropouts,
            )
            ends: dict[str, bool] = {"first": index == 0, "last": index == every - 1}
            networks.append(build(f, setting, **ends))
        self.networks, self.setting = networks, networks[0].setting
        weights = f.log.contents(len(f.log.events), term)["weights"]
        check_weights(model, weights, self.dtype, run, rank)
        self.stages = [
            Stage(
                f,
                each,
                index=index,
                chunks=run.micro_batches,
                keeps=devices.schedule.return_outputs,
            )
            for index, each in zip(devices.stages(rank), networks, strict=True)
        ]
        first, last = self.stages[0].first, self.stages[-1].last
        batch = (Dim("B·m", run.batch * run.micro_batches), self.setting.T)
        self.ids = [f.new("ids", batch, "int64", "inputs") for _ in range(first or last)]
        self.losses: list[Tensor] = []
        self.internal: list[Tensor] = []
        self.rank = Rank(
            self.stages,
            self.forward,
            self.backward,
            rank=rank,
            ranks=ranks,
            micro_batches=run.micro_batches,
            works_hold=run.backend == "cpu",
        )
        update = optimizer(step_name(recipe))
        self.update = partial(update, f, self.trained, loop_of(recipe, run))
        self.name = ""

    def trained(self) -> Iterator[Parameter]:
        """All parameters, module by module."""
        return chain.from_iterable(
            in_order(self.f, net.setting.model.layers, net.parameters) for net in self.networks
        )

    def chunk(self) -> Tensor:
        """The ids of one micro-batch: a view of those of all."""
        s = self.setting
        return Tensor((s.B, s.T), "int64", self.ids[0].storage)

    def forward(self, stage: Stage, number: int) -> Tensor:
        f = self.f
        f.log.mark(f"{self.name}.forward.{number + 1}.{stage.index}")
        f.part, f.saves = "", []
        output = stage.forward_one_chunk(number, self.chunk() if stage.first else None)
        if stage.last:
            f.part = "loss"
            f.log.mark(f"{self.name}.loss.{number + 1}.{stage.index}")
            self.internal.append(causal_lm_loss(f, output))
        return output

    def backward(self, stage: Stage, number: int, half: str) -> None:
        log = self.f.log
        if half == WEIGHT:
            log.mark(f"{self.name}.backward.{number + 1}.{stage.index}.weights")
            stage.backward_weight_one_chunk(number)
            return
        if f"{self.name}.backward" not in log.marks:
            log.mark(f"{self.name}.backward")
        log.mark(f"{self.name}.backward.{number + 1}.{stage.index}")
        run = stage.backward_input_one_chunk if half == INPUT else stage.backward_one_chunk
        run(number, self.internal[number] if stage.last else None)

    def step(self, name: str, short: bool = False) -> None:
        """One step; its name stands before those of its moments.

        short       of one micro-batch, from the first of the rank's stages to the last and back:
                    what it leaves are the optimizer's states, as all of them do
        """
        f, devices, s = self.f, self.run.devices, self.setting
        self.name = name
        f.log.mark(f"{name}.forward")
        self.losses = []
        for stage in self.stages:
            stage.clear()
        (one_by_one if short else SCHEDULES[devices.schedule.name])(self.rank)
        self.losses, self.internal = self.internal, []
        if self.stages[-1].last and devices.schedule.return_outputs and not short:
            f.log.mark(f"{name}.merge")
            rows = Dim("B·m", self.run.batch * self.run.micro_batches)
            merged = f.new("cat", (rows, s.T, s.V), self.dtype)
            del merged
        f.log.mark(f"{name}.optimizer")
        self.update()
        f.log.mark(f"{name}.zero_grad")
        for parameter in self.trained():
            parameter.grad = None
        f.log.mark(f"{name}.end")

    def over(self) -> None:
        """No step follows: without its turns nothing here refers to itself."""
        self.f.log.closed = True
        self.f.let_go()
        del self.rank, self.update

    def told(self) -> Step:
        log = self.f.log
        saved = SavedTable.of_layer([], len(self.networks[-1].layers))
        return told(log, "second.backward", saved)
