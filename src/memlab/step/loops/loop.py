"""What a program's loop holds around a simulated step, and the highest moments of both together.

Long, because each kind of thing that a loop keeps has its moments here, side by side.
"""

from __future__ import annotations

from functools import lru_cache

from ...base.not_described import NotDescribed
from ...formats import bytes_per_value, storage
from ...model import Model
from ...recipe import Recipe
from ...recipe.resident import resident
from ...run import Run
from ...run.loop_rules import keeps_output
from ...terms import logits
from .. import supported
from ..core.moments import hills
from ..core.peak import span
from ..simulate import Step, simulate, term

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

Tops = dict[str, dict[str, int]]
IDS = 8  # bytes of one token's number, int64
OF_A_STEP = ("gradients", "graph", "logits")  # that is over, or whose backward never came
STORED = ("fp32", "bf16", "fp16")  # formats of checkpoints; of any other recipe's, bf16


def tops(model: Model, recipe: Recipe, run: Run, *, stored: str | None = None) -> Tops:
    """What is held at the highest moment of each part of a step, what the loop holds included.

    Shapes      name of the hill -> bytes by term; without tokens one hill, "resident"
    stored      format of the checkpoint that it is loaded from; None: see `stored_as`
    Unit        bytes
    Source      memlab.step.simulate. A recipe whose step is not described has its own resident
                bytes, and during a step the temporaries of the nearest one that is: fp32, bf16, or
                autocast
    Raises      ValueError for a combination that is not described
    """
    for there, named in (
        (run.devices.fsdp, "FSDP2"),
        (run.devices.deepspeed, "DeepSpeed"),
        (run.devices.pipelined, "a pipeline"),
        (run.devices.tensor_parallel, "tensor parallelism"),
    ):
        if run.holds and there:
            raise ValueError(f"holds={run.holds!r} is not described beside {named}")
    plain, beside = apart(run)
    found = {name: dict(held) for name, held in _tops(model, recipe, plain)[0].items()}
    for what in beside:
        _add(found, what, model, recipe, plain, stored or stored_as(recipe))
    return found


def quiet(model: Model, recipe: Recipe, run: Run) -> dict[str, int]:
    """Bytes at the quiet moments of a step, and at the peak of the first one: first_step.

    What the loop holds of a step before is in no first step.
    """
    plain, beside = apart(run)
    step = step_of(model, recipe, run)
    at = {name: dict(held) for name, held in step.held_contents.items()}
    first = {"first_step": {"other": step.peak.first_step_bytes}}
    for what in beside:
        if what in ("wide_logits", "output"):  # while the loss goes backward
            _add({"loss": at["after_forward"]}, what, model, recipe, plain, stored_as(recipe))
            continue
        _add(at, what, model, recipe, plain, stored_as(recipe))
        if what not in OF_A_STEP:
            _add(first, what, model, recipe, plain, stored_as(recipe))
    return {name: sum(held.values()) for name, held in (at | first).items()}


def apart(run: Run) -> tuple[Run, tuple[str, ...]]:
    """The run that is simulated, and what its loop holds that a step knows nothing of."""
    if not keeps_output(run) or "output" not in run.holds:
        return run.replace(holds=()), run.holds
    if run.in_chunks or run.fused_head:
        what = "a loss in chunks" if run.in_chunks else "TRL's fused head"
        raise ValueError(f"holds 'output': {what} never has all logits at once")
    beside = list(run.holds)
    beside.remove("output")
    if "output" in beside or run.loop in ("keeps-outputs", "nanogpt"):
        raise ValueError("holds 'output' twice: this loop has let go of it when the next is there")
    return run.replace(holds=("output",)), tuple(beside)


def stored_as(recipe: Recipe) -> str:
    """The format of the checkpoint that a recipe's weights are loaded from."""
    return recipe.weights if recipe.weights in STORED else "bf16"


def step_of(model: Model, recipe: Recipe, run: Run) -> Step:
    """The simulated step of the recipe, or of the nearest one that is described."""
    return _step(model, nearest(recipe, run), apart(run)[0], False)


def nearest(recipe: Recipe, run: Run) -> Recipe:
    """The recipe itself, or the nearest one whose step is described.

    Raises      ValueError where adapters or several devices stand beside a recipe that is not
                described
    """
    try:
        supported.dtype_of(recipe)
        return recipe
    except ValueError:
        if run.adapters is not None or run.devices.ranks > 1:
            raise
    if recipe.autocast:
        return Recipe.named("autocast")
    return Recipe.named("bf16" if bytes_per_value(recipe.weights) <= 2 else "fp32")


def at_moment(model: Model, recipe: Recipe, run: Run, moment: str) -> dict[str, int]:
    """Bytes by term at a moment of a step that is not its peak.

    moment      after_forward (of the last micro-batch), after_backward or between_steps; or
                first_step: the peak of the first one, before which there are no states
    Raises      ValueError where the step itself is not described, or is that of a pipeline
    """
    if run.tokens is None or run.holds or run.devices.pipelined or nearest(recipe, run) != recipe:
        raise ValueError(f"{moment!r}: the moments of this step are not described")
    if moment == "first_step":
        log = step_of(model, recipe, run).log
        events = span(log, "first")
        at = max(range(events.start, events.stop), key=lambda i: log.events[i][2])
        held = log.contents(at + 1, term)
    else:
        held = _tops(model, recipe, run)[2][moment]
    return {name: size for name, size in held.items() if size}


def graph(step: Step) -> int:
    """Bytes that one forward pass leaves behind as long as somebody holds its loss.

    Formula     what is held after the forward pass, less what is held between two steps; and the
                ids, which a graph keeps and the next step has its own of
    Unit        bytes
    """
    ids = step.held_contents["between_steps"].get("inputs", 0)
    return step.held["after_forward"] - step.held["between_steps"] + ids


@lru_cache(maxsize=4)
def _step(model: Model, recipe: Recipe, run: Run, short: bool) -> Step:
    return simulate(model, recipe, run, short=short)


def forget() -> None:
    """Let go of the last simulated steps, which are large; their figures stay known."""
    _step.cache_clear()
    from ..parallel.pipeline.step import step_of_stage

    step_of_stage.cache_clear()


def _second(model: Model, recipe: Recipe, run: Run) -> Step:
    """The step of which only the second is asked about: of several micro-batches a shorter one."""
    return _step(model, nearest(recipe, run), run, run.micro_batches > 1)


@lru_cache(maxsize=1024)  # a step is large, and a search asks for these numbers again and again
def _tops(model: Model, recipe: Recipe, run: Run) -> tuple[Tops, int, Tops]:
    """The tops of the step itself, the bytes of a graph of it, and its quiet moments."""
    if run.tokens is None:
        held = resident(model, recipe, run.devices)
        return {"resident": held | _reference(held, run)}, 0, {}
    if run.devices.pipelined:  # the hills of micro-batches in flight are one
        from ..parallel.pipeline.step import of_fullest  # only a pipeline needs it

        at = of_fullest(model, recipe, run)
        return {at.moment: dict(at.contents)}, 0, {}
    step = _second(model, recipe, run)
    every = {
        name: {row.term: row.derived or 0 for row in ledger.rows}
        for name, ledger in hills(step).items()
    }
    if nearest(recipe, run) != recipe:
        own = resident(model, recipe)
        whole = step.rows["gradients"]
        for held in every.values():
            share = held.pop("gradients", 0)
            held |= {k: v for k, v in own.items() if k not in ("gradients", "accumulator")}
            held |= _reference(own, run)
            held["gradients"] = own.get("gradients", 0) * share // whole if whole else 0
            held["accumulator"] = own.get("accumulator", 0)
    return every, graph(step), step.held_contents


def _reference(own: dict[str, int], run: Run) -> dict[str, int]:
    """A second model in the formats of the first, where the loop has one."""
    if run.reference_model != "model":
        return {}
    if run.devices.ranks > 1:
        raise NotDescribed(f"loop={run.loop!r} with a reference: one device alone is described")
    return {"reference": own["weights"]}


def _add(found: Tops, what: str, model: Model, recipe: Recipe, run: Run, stored: str) -> None:
    """One thing that the loop holds: see memlab.Run."""
    if what == "fp32_model":
        return _everywhere(found, storage(model.parameter_count, "fp32"), "weights")
    if what in ("state_dict", "model"):
        copy = storage(model.parameter_count, stored)
        return _everywhere(found, copy) if what == "state_dict" else _twice(found, copy)
    if run.tokens is None:
        raise ValueError(f"holds {what!r} changes a step: it needs tokens")
    if what == "gradients":
        most = max(held.get("gradients", 0) for held in found.values())
        for held in found.values():
            held["gradients"] = most
    elif what == "graph":
        _everywhere(found, _tops(model, recipe, run)[1])
    elif what == "logits":
        _everywhere(found, _logits(model, recipe, run), "logits")
    elif what == "batch":
        _everywhere(found, IDS * run.rows, "inputs")
    elif "loss" in found:
        more = _output(model, recipe, run) if what == "output" else _wide(model, recipe, run)
        found["loss"]["logits"] = found["loss"].get("logits", 0) + more


def sizes_of(what: str, step: Step, model: Model, recipe: Recipe, run: Run) -> list[int]:
    """Bytes of each storage of one thing that the loop holds through both steps.

    step        of this run, every layer simulated
    Raises      ValueError for what a loop has in a part of a step alone
    """
    stored = "fp32" if what == "fp32_model" else stored_as(recipe)
    if what in ("state_dict", "model", "fp32_model"):
        sizes = [storage(t.numel, stored) for t in model.tensors() for _ in range(t.copies)]
        left = _alive(step.log, "end").values() if what == "model" else ()
        return sizes + [one.bytes for one in left if one.category == "buffers"]
    if what == "batch":
        return [IDS * run.rows]
    if what == "logits":
        return [_logits(model, recipe, run)]
    if what == "graph":
        here, stays = _alive(step.log, "backward"), _alive(step.log, "end")
        mine = [record.bytes for key, record in here.items() if key not in stays]
        return mine + [one.bytes for one in stays.values() if one.category == "inputs"]
    raise ValueError(f"holds {what!r}: no log of memlab has it")


def _alive(log: Any, moment: str) -> dict[int, Any]:
    """What is there at this moment of the second step, at the last of several such."""
    at = max(index for name, index in log.marks.items() if name.startswith(f"second.{moment}"))
    found: dict[int, Any] = {}
    for record, change, _ in log.events[:at]:
        if change > 0:
            found[id(record)] = record
        elif change:
            del found[id(record)]
    return found


def _everywhere(found: Tops, more: int, term: str = "other") -> None:
    for held in found.values():
        held[term] = held.get(term, 0) + more


def _twice(found: Tops, weights: int) -> None:
    """A copy of the module: its buffers too, which no state dict of a checkpoint has."""
    for held in found.values():
        held["buffers"] = 2 * held.get("buffers", 0)
        held["weights"] = held.get("weights", 0) + weights
        if not held["buffers"]:
            del held["buffers"]


def _logits(model: Model, recipe: Recipe, run: Run) -> int:
    """What a model puts out for one micro-batch, without its graph."""
    if run.in_chunks or run.fused_head:
        raise ValueError("holds 'logits': a loss in chunks never has all logits at once")
    kind = nearest(recipe, run)
    return storage(run.rows * model.vocab, kind.autocast or kind.weights)


def _output(model: Model, recipe: Recipe, run: Run) -> int:
    """The model's output kept while the loss goes backward."""
    if run.in_chunks or run.fused_head:
        what = "a loss in chunks" if run.in_chunks else "TRL's fused head"
        raise ValueError(f"holds 'output': {what} never has all logits at once")
    kind = nearest(recipe, run)
    told: dict[str, Any] = {"vocab": model.vocab, "format": kind.autocast or kind.weights}
    held = logits.peak(run.rows, **told, kept=True)
    return held - logits.peak(run.rows, **told, kept=False)


def _wide(model: Model, recipe: Recipe, run: Run) -> int:
    """A fp32 copy of the logits, 4 · R · V, kept while the loss goes backward.

    The loss of memlab's models has copies of its own in fp32, which the step counts; this is the
    one that a program's own model puts out, or that its loop makes and keeps the name of.
    """
    kind = nearest(recipe, run)
    if run.implementation != "memlab" or run.in_chunks or kind.autocast or kind.weights == "fp32":
        raise ValueError("holds 'wide_logits': here the logits are cast already, or are fp32")
    return storage(run.rows * model.vocab, "fp32")
