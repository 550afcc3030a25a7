"""The document of `memlab estimate --json`; a figure that was not derived is null in it."""

from __future__ import annotations

from ..estimate import fullest_stage
from ..estimate import peak as peak_of
from ..ledger import Ledger
from ..model import Model
from ..model.fields import used
from ..recipe import Recipe
from ..run import Run
from .document import document
from .simulated import held_at, one_text, simulated

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..lab.causal import Causal
    from ..step import Peak

TERMS = ("weights", "gradients", "optimizer", "activations", "logits", "kv_cache", "other")
WIDE_LOGITS = "wide_logits"

RESIDENT_ONLY = "activations, logits and the peak: say --batch and --tokens"
SHARDED_ONLY = (
    "activations, logits, gathered weights, the peak: with --fsdp, --zero, --pipeline or "
    "--tensor say --tokens too"
)
AROUND = "what generate() adds: the tokens so far, masks, scores, positions of each sequence"
KERNELS, CONTEXT = "scratch memory inside one kernel", "the CUDA context of a process"
WORKSPACES = (
    "cuBLAS's workspaces, one for each thread that multiplies: 8.125 MiB, on Hopper and Blackwell "
    "32 MiB (memlab fit --on CARD counts them)"
)
WIRE = "buffers of the communication library (NCCL, gloo)"
STAGE_3 = "DeepSpeed's ZeRO 3: this step is FSDP2's"
CUT_BATCH = (
    "what torch's context_parallel keeps of a batch while it is open: at least {size} B, "
    "four tensors of one rank's tokens, 8 bytes a token"
)
ALLOCATOR = "what the CUDA allocator adds"
WIDE = f"the replay of a step whose loop holds {WIDE_LOGITS}, which no log of memlab has"
# What is freed at one moment goes in the order of Python's names in a trace, and in a simulation's
# in an estimate: the same bytes leave other holes. Peak and held are equal to the byte.
ORDER = (
    "the order of what is freed at one moment, which a trace and an estimate have apart: their "
    "reserved bytes may differ by a segment or two (2 MiB, or 20 MiB)"
)
STREAMS = "blocks that DeepSpeed's stream of reductions holds longer: one stream is replayed"
ADAPTERS = (
    "adapters are counted in fp32, as peft makes them by itself beside weights in {weights}; "
    "autocast_adapter_dtype=False (--lora-dtype {weights}) takes less"
)
NO_COPIES = "torch.inference_mode(), where autocast keeps no copies of the weights"


def as_json(
    model: Model,
    recipe: Recipe,
    how: Run,
    ledger: Ledger,
    defaults: dict[str, Any],
    posted: dict[str, Any] | None = None,
    parts: Sequence[str] = (),
) -> str:
    """The document as text.

    defaults    what the loop's program took by itself: memlab.cli.arguments.took
    posted      what memlab.cli.posted says of a figure that was given, if one was
    parts       lines about the parts of a multimodal model that are left out

    rows        without tokens what stays; of a step what stays and what autograd keeps, of a call
                what it returns and what is alive at its peak
    peak        the ledger: its bytes, its moment, its terms
    host        of one rank under CPUOffloadPolicy or ZeRO-Offload: its highest moment, its terms
    allocator   both steps, or the call, replayed in PyTorch's caching allocator, on cuda; of
                several devices those of the rank that holds most
    """
    derived = {_key(row.term): row.derived or 0 for row in ledger.rows}
    found = simulated(model, recipe, how)
    rows: dict[str, Any] = dict.fromkeys(TERMS) | derived
    held = peak = allocator = None
    more: dict[str, Any] = {} if posted is None else {"posted": posted}
    if how.tokens is not None:
        source = derived if found is None else found.rows
        rows = {name: source.get(name, 0) for name in TERMS}
        rows["other"] = sum(size for name, size in source.items() if name not in TERMS[:-1])
        peak = {
            "bytes": ledger.total(),
            "moment": ledger.title.split(": the peak, in ")[-1],
            "contents": derived,
            "first_step_bytes": None,  # no call is the first of its kind
        }
    if found is not None:
        assert peak is not None
        held, allocator = dict(found.held), _allocator(model, recipe, how)
        if how.phase == "train":
            held = held_at(model, recipe, how, found)
            peak["first_step_bytes"] = held.pop("first_step")
        if getattr(found, "host", None) is not None:
            more["host"] = _peak(found.host)
        if how.phase != "train":  # of the cache, by all sequences of the batch together
            more["growth"] = {"per_token": found.per_token}
    if how.devices.ranks > 1:  # the rows are those of one rank: the fullest
        stage = fullest_stage(model, recipe, how)
        more["sharding"] = {
            "ranks": how.devices.ranks,
            **how.to_dict()["devices"],
            "stage": stage,
            **_stages(model, recipe, how),
        }
        if (most := fullest_routing(model, recipe, how)) is not None:
            more["sharding"]["fullest"] = most
    return document(
        "estimate",
        model=model.name,
        parameters=model.parameter_count,
        unit="bytes",
        rows=rows,
        held=held,
        peak=peak,
        allocator=allocator,
        config=used(model.family, model.config),
        recipe=recipe_fields(recipe),
        run=how.to_dict(),
        defaults=defaults,
        leaves_out=[*parts, *_left_out(recipe, how, allocator is not None), *one_text(model, how)],
        **more,
    )


def fullest_routing(model: Model, recipe: Recipe, how: Run) -> int | None:
    """The peak where all tokens ask for a rank's experts; None where routing is not even."""
    if (
        how.tokens is None
        or how.devices.experts.ranks == 1
        or how.devices.experts.routing != "even"
    ):
        return None
    devices = how.devices.changed(routing="fullest")
    return peak_of(model, recipe, how.replace(devices=devices))


def _stages(model: Model, recipe: Recipe, how: Run) -> dict[str, Any]:
    """The peak of each rank of a pipeline's step: bytes, moment, contents by term."""
    if how.tokens is None or not how.devices.pipelined:
        return {}
    from ..step.parallel.pipeline.step import stage_peaks

    return {"stages": [_peak(peak) for peak in stage_peaks(model, recipe, how)]}


def _peak(peak: Peak) -> dict[str, Any]:
    return {
        "bytes": peak.bytes,
        "moment": peak.moment,
        "contents": {_key(name): size for name, size in peak.contents.items()},
    }


def shapes_as_json(
    model: Causal, recipe: Recipe, how: Run, ledger: Ledger, peak: str, defaults: dict[str, Any]
) -> str:
    """The same document of a model that is not described: what stays, and how to get the peak."""
    derived = {row.term: row.derived or 0 for row in ledger.rows}
    return document(
        "estimate",
        model=model.name,
        parameters=model.parameter_count,
        unit="bytes",
        rows=dict.fromkeys(TERMS) | derived,
        held=None,
        peak=None,
        allocator=None,
        config={"read": sorted(model.config), "no effect": [], "not known": []},
        recipe=recipe_fields(recipe),
        run=how.to_dict(),
        leaves_out=[peak, *model.left_out_line(), KERNELS, ALLOCATOR, WORKSPACES, CONTEXT],
        defaults=defaults,
    )


def recipe_fields(recipe: Recipe) -> dict[str, Any]:
    """What a document says of a recipe."""
    names = ("name", "weights", "gradients", "master", "optimizer", "autocast")
    return {name: getattr(recipe, name) for name in names}


def _key(term: str) -> str:
    return term.replace(" ", "_").replace("-", "_")


def _allocator(model: Model, recipe: Recipe, how: Run) -> dict[str, int] | None:
    if how.backend != "cuda":
        return None
    if WIDE_LOGITS in how.holds or (how.implementation == "memlab" and "output" in how.holds):
        return None
    from ..step.core.allocator_replay import REPLAYED, replayed  # only a step on CUDA needs it

    if model.layers * how.micro_batches > REPLAYED:
        return None
    done = replayed(model, recipe, how)
    return {"allocated": done.allocated, "reserved": done.reserved}


def wide_adapters(recipe: Recipe, how: Run) -> list[str]:
    """What a figure about adapters takes for granted, where peft makes them wider than the rest."""
    if recipe.weights not in ("bf16", "fp16") or getattr(how.adapters, "dtype", "none") is not None:
        return []
    if how.adapters_in(recipe.weights) == recipe.weights:  # as the program makes them
        return []
    return [ADAPTERS.format(weights=recipe.weights)] if how.implementation != "memlab" else []


def _left_out(recipe: Recipe, how: Run, replayed: bool) -> list[str]:
    left = []
    if how.tokens is None:
        left.append(SHARDED_ONLY if how.devices.ranks > 1 else RESIDENT_ONLY)
    elif how.phase != "train" and how.implementation == "transformers":
        left.append(AROUND)
    left += [KERNELS, *([] if replayed else [ALLOCATOR])]
    left += [*([WORKSPACES] if how.backend == "cuda" else []), CONTEXT]
    left += [WIDE] * (not replayed and WIDE_LOGITS in how.holds)
    left += [ORDER] * replayed
    left += [STREAMS] * (replayed and how.devices.deepspeed)
    left += [STAGE_3] * (how.tokens is not None and how.devices.fsdp)
    left += [WIRE] * (how.tokens is not None and how.devices.ranks > 1)
    if how.tokens is not None and how.devices.context > 1:
        mine = how.batch * how.tokens // how.devices.context
        left.append(CUT_BATCH.format(size=4 * 8 * mine))
    left += wide_adapters(recipe, how)
    if how.phase != "train" and recipe.autocast and not how.inference_mode:
        left.append(NO_COPIES)
    return left
