"""Model + Recipe + Run -> Ledger: what stays of a training run, or the peak of a step of it."""

from __future__ import annotations

from .base import titles
from .base.message import Message
from .ledger import Ledger
from .model import Model
from .recipe import Recipe
from .recipe.resident import fullest, resident
from .recipe.resident import tensor_bytes as tensor_bytes
from .run import Run, adapters
from .run.argument_types import check_types
from .run.recipe_choice import recipe_for, tied_as

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

NOTHING = Run()
AT_REST = ("devices", "backend")  # fields that mean something without a step


def estimate(
    model: Model,
    recipe: Recipe | str | None = None,
    run: Run = NOTHING,
    *,
    stage: int | None = None,
) -> Ledger:
    """Derive the bytes of a run: what stays between two steps, or with tokens the step's peak.

    Formula     without tokens: sum over parameter tensors of weights + master + gradients +
                accumulator + state, of the part of each that one of `run.devices` holds;
                with tokens: every term at the moment when their sum is largest
    Shapes      model.tensors(): each kind of tensor, its shape and how many there are of it
    Unit        bytes; one row a term, column `derived`; of several ranks, those of the fullest:
                rank 0 of a pipeline stage, the fullest one unless `stage` says another
    Source      memlab.terms.weights, .gradients, .optimizer, .sharding; memlab.step
    Leaves out  without tokens: activations, logits, temporaries; always what the allocator adds,
                scratch memory inside kernels, the CUDA context
    Raises      ValueError for an unknown recipe name, for devices that do not divide the model,
                for a step that is not described, and for a run without tokens that says how a step
                is executed
    """
    check_types(model, run)
    chosen = recipe_for(model, recipe, run)
    shaped = tied_as(model, chosen)
    if run.tokens is not None:
        if stage is not None and not run.devices.pipelined:
            raise ValueError(f"stage={stage}: this step is described without a pipeline")
        return at_peak(shaped, chosen, run, stage)
    for field, value in run.said().items():
        if field not in AT_REST:
            said = adapters.shown(value)
            raise ValueError(f"{field}={said} changes a step: it needs tokens")
    if run.devices.policy.cpu_offload:
        said = f"cpu_offload={run.devices.policy.cpu_offload!r}"
        raise ValueError(f"{said} leaves no weights, gradients or states there: it needs tokens")
    if run.devices.config.offload_param:
        raise ValueError("offload_param='cpu' leaves what is gathered there: it needs tokens")
    if run.devices.config.offload_optimizer:
        said = f"offload_optimizer={run.devices.config.offload_optimizer!r}"
        raise ValueError(f"{said} leaves weights alone there, and buffers: it needs tokens")
    at = fullest_stage(shaped, chosen, run) if stage is None else stage
    figures = resident(shaped, chosen, run.devices, at)
    named: list[str] = [shaped.name, chosen.name]
    if run.devices.ranks > 1:
        one: str = Message(titles.RANK, ranks=f"{run.devices.ranks:,}")
        if run.devices.pipeline > 1:
            one = titles.joined(titles.stage(at, run.devices.pipeline), one)
        named.append(Message(titles.OF, what=str(run.devices), more=one))
    return Ledger.of("derived", figures, title=titles.dotted(*named))


def at_peak(model: Model, recipe: Recipe, run: Run, stage: int | None = None) -> Ledger:
    """The ledger of a step's highest moment; its title names the moment.

    stage       of a pipeline; None: the one that holds most
    Raises      ValueError for a step that is not described
    """
    from .step.core.result import TERMS  # only a peak needs the simulation

    if run.devices.pipelined:
        stage = fullest_stage(model, recipe, run) if stage is None else stage
        moment, held = _of_stage(model, recipe, run, stage)
    else:
        moment, held = _highest(model, recipe, run)
    order = ["weights", "master", *(term for term in TERMS if term != "weights")]
    names = [name for name in order if held.get(name)]
    names += [name for name in held if held[name] and name not in order]
    said = told(run)
    if stage is not None:
        said = titles.joined(said, titles.stage(stage, run.devices.pipeline))
    title = titles.in_moment(titles.dotted(model.name, recipe.name, said), moment)
    return Ledger.of("derived", {name: held[name] for name in names}, title=title)


def peak(model: Model, recipe: Recipe | str | None, run: Run) -> int:
    """The bytes that `estimate` adds up, without a ledger: what searches ask again and again."""
    return estimate(model, recipe, run).total()


def told(run: Run) -> str:
    """What of a run a title says: sizes, whose code, whose kernels, what is trained."""
    size = sizes(run)
    if run.micro_batches > 1:
        size = Message(titles.MICRO_BATCHES, passes=run.micro_batches, size=size)
    more: list[str] = [titles.whose(run.implementation, run.backend)]
    if run.adapters is not None:
        more.append(run.adapters.told())
    if run.devices.ranks > 1:
        whose = "DeepSpeed: " if run.devices.deepspeed else ""
        ranks, devices = f"{run.devices.ranks:,}", f"{whose}{run.devices}"
        more.append(Message(titles.RANK_OF, ranks=ranks, devices=devices))
    return titles.joined(size, *more)


def sizes(run: Run) -> str:
    """How much of a text a run reads."""
    if run.phase == "decode":
        return Message(titles.DECODE, batch=run.batch, tokens=run.tokens)
    pattern = titles.PAIRS if run.loop == "dpo" else titles.SIZES
    size = Message(pattern, batch=run.batch, tokens=run.tokens)
    return Message(titles.PREFILL, size=size) if run.phase == "prefill" else size


def fullest_stage(model: Model, recipe: Recipe | str | None, run: Run) -> int:
    """The pipeline stage whose ranks hold most: at the peak of a step, where the run has one.

    Raises      as `estimate`
    """
    if run.tokens is not None and run.devices.pipelined:
        from .step.parallel.pipeline.step import fullest as highest

        return highest(model, recipe_for(model, recipe, run), run)
    return fullest(model, recipe_for(model, recipe, run), run.devices)[0]


def by_component(
    model: Model, recipe: Recipe | str | None = None, *, term: str = "weights"
) -> Ledger:
    """One term of what stays, split by the part of the network that pays for it.

    Unit        bytes; one row a component (embedding, attention, feed_forward …)
    Leaves out  what belongs to no parameter (the learning rate that torchao keeps as a tensor)
    Raises      ValueError for an unknown recipe, or for a term that it does not have
    """
    chosen = recipe_for(model, recipe)
    shaped = tied_as(model, chosen)
    figures: dict[str, int] = {}
    for tensor in shaped.tensors():
        sizes = tensor_bytes(tensor, chosen)
        if term not in sizes:
            raise ValueError(f"{chosen.name} has no term {term!r}; it has: {', '.join(sizes)}")
        figures[tensor.component] = figures.get(tensor.component, 0) + sizes[term] * tensor.copies
    return Ledger.of("derived", figures, title=titles.dotted(shaped.name, chosen.name, term))


def _highest(model: Model, recipe: Recipe, run: Run) -> tuple[str, dict[str, int]]:
    if run.phase == "train":
        from .step import supported
        from .step.loops.loop import tops

        supported.dtype_of(recipe)
        found: Any = tops(model, recipe, run)
        moment = max(found, key=lambda name: sum(found[name].values()))
        return moment, found[moment]
    if run.implementation == "memlab":
        return _own_call(model, recipe, run)
    from .step import calls

    at = (calls.prefill if run.phase == "prefill" else calls.decode)(model, recipe, run).peak
    return at.moment, at.contents


def _of_stage(model: Model, recipe: Recipe, run: Run, stage: int) -> tuple[str, dict[str, int]]:
    from .step.parallel.pipeline.step import stage_peaks, step_of_stage

    stages = range(run.devices.pipeline)
    known = stage_peaks(model, recipe, run) if stage in stages else ()
    at = known[stage] if known else step_of_stage(model, recipe, run, stage).peak  # which refuses
    return at.moment, dict(at.contents)


def _own_call(model: Model, recipe: Recipe, run: Run) -> tuple[str, dict[str, int]]:
    """A call of memlab.lab.generate in closed form, with a cache that grows, on a CPU.

    Raises      ValueError for a field of the run that the closed form does not know
    """
    from .step.closed.own_calls import decode, prefill

    if run.backend != "cpu":
        raise ValueError(f"backend={run.backend!r}: a call of memlab's models is described on cpu")
    if run.phase == "prefill" and run.logits != "last":
        raise ValueError(f"logits={run.logits!r}: memlab's read() makes those of the last token")
    if recipe.autocast:
        raise ValueError(f"autocast={recipe.autocast!r} is not described for memlab's calls")
    for field in ("window", "devices"):
        if (value := getattr(run, field)) != getattr(NOTHING, field):
            said = adapters.shown(value)
            raise ValueError(f"{field}={said} is not described for memlab's calls")
    assert run.tokens is not None  # a call has them
    call = prefill if run.phase == "prefill" else decode
    sizes: dict[str, Any] = {"batch": run.batch, "tokens": run.tokens, "format": recipe.weights}
    ledger = call(model, cache="growing", **sizes)
    rows = {row.term.replace(" ", "_"): row.derived or 0 for row in ledger.rows}
    return ledger.title.split(" · ")[-1], rows
