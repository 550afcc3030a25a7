"""Trace a call in inference: a prompt, or one more token, by the model's own code without values.

Whatever a model keeps from one call to the next is its cache: keys and values, a latent of them,
the keys of a window, the state of a Mamba layer. It is what the call returns beside the logits.
"""

from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

from ..base import titles
from ..base.gc_paused import no_garbage
from ..base.message import Message
from ..estimate import sizes
from ..measure.fake_copies import Fakes
from ..measure.fake_cuda import begin, known, noted
from ..measure.fake_cuda.undo import Changes
from ..measure.shapes_mode import shapes_mode
from ..measure.step_tracker import StepTracker
from ..measure.terms import head
from ..measure.traced_call import TracedCall
from ..measure.untraceable import explained
from ..model import Model
from ..recipe import Recipe
from ..run import Run
from ..run.adapters import shown
from ..run.recipe_choice import recipe_for, tied_as
from .causal import Causal
from .causal_cache import CALL
from .subject import DTYPES, subject

CACHES = ("past_key_values", "cache_params")


def trace_call(
    model: Model | Causal, recipe: Recipe | str | None, run: Run, *, title: str = ""
) -> TracedCall:
    """One call under torch.no_grad(); with phase="decode" it finds run.tokens in its cache.

    The last of those was read alone, as in memlab.step.calls.decode.

    Unit        bytes, as memlab.measure.trace
    Leaves out  what generate() adds; scratch memory inside kernels; the CUDA context
    Raises      ValueError for a run that is no call, for a field that cannot be traced, and for a
                model that returns no cache; what memlab.lab.subject and a trace raise
    """
    if run.phase == "train":
        raise ValueError("phase='train' is a step: trace_run() traces it")
    for field, value in run.said().items():
        if field not in CALL:
            raise ValueError(f"{field}={shown(value)} cannot be traced in a call")
    if run.tokens is None:
        raise ValueError("tokens is missing: how many are in each sequence?")
    chosen = recipe_for(model, recipe, run)
    shaped = tied_as(model, chosen) if isinstance(model, Model) else model
    if shaped.positions is not None and run.tokens > shaped.positions:
        raise ValueError(f"tokens={run.tokens:,} is more than its {shaped.positions:,} positions")
    with torch.device("meta"):
        built = subject(shaped, chosen, Run(attention=run.attention)).eval()
    notes = shaped.notes(built) if isinstance(shaped, Causal) else ()
    where = Message(titles.ON, what=sizes(run), device=run.backend)
    words = title or titles.dotted(shaped.name, chosen.name, where)
    found = _called(built, chosen, run, words)
    found.notes, found.parameters = notes, sum(p.numel() for p in built.parameters())
    return found


def _called(built: nn.Module, recipe: Recipe, run: Run, title: str) -> TracedCall:
    mode = shapes_mode()
    grad = torch.inference_mode if run.inference_mode else torch.no_grad
    tracker = StepTracker(run.backend)
    with explained(), Changes() as stack:
        begin(stack, run.backend, tracker, run.kernel)
        stack.enter_context(mode)
        stack.enter_context(no_garbage(collect=False))
        module = Fakes(mode, run.backend).module(built)
        known(stack, mode, noted())
        stack.enter_context(grad())
        if recipe.autocast:
            stack.enter_context(torch.autocast(run.backend, DTYPES[recipe.autocast]))
        ids = torch.zeros(run.batch, run.tokens or 0, dtype=torch.long, device=run.backend)
        given: dict[str, Any] = {"use_cache": True}
        if run.phase == "decode":
            # The last one alone, as in generate(): after a long prompt a layer with a window still
            # holds all of it, and only the next call leaves it as many tokens as it sees.
            if (run.tokens or 0) > 1:
                given |= _cache(module(ids[:, 1:].clone(), **given))
            ids = ids[:, :1].clone()
            given |= _cache(module(ids, **given))
        if run.logits == "last":
            given["logits_to_keep"] = 1
        stack.enter_context(tracker)
        tracker.label(module)
        tracker.label(ids, "inputs")
        tracker.label(_held(given), "kv_cache")
        marks = {"before_call": len(tracker.timeline) - 1}
        before = tracker.contents().get("kv_cache", 0)
        out = _forward(module, ids, given, tracker)
        kept = _cache(out)
        del given
        tracker.label(_held(kept), "kv_cache")
        tracker.label(out.logits, "logits")
        marks["after_call"] = len(tracker.timeline) - 1
        after = tracker.contents()
    rows = {name: after.get(name, 0) for name in ("weights", "buffers", "kv_cache", "logits")}
    growth = rows["kv_cache"] - before if run.phase == "decode" else None
    return TracedCall(title, tracker, rows, marks, growth)


def _forward(module: nn.Module, ids: Tensor, given: dict[str, Any], tracker: StepTracker) -> Any:
    with ExitStack() as phase:
        phase.enter_context(tracker.phase("forward"))
        output = head(module)
        if output is not None:

            def begin(*_: Any) -> None:
                phase.enter_context(tracker.phase("logits"))

            phase.callback(output.register_forward_pre_hook(begin).remove)
        return module(ids, **given)


def _cache(out: Any) -> dict[str, Any]:
    """The cache of a call's result, by the name under which the next call takes it."""
    for name in CACHES:
        if getattr(out, name, None) is not None:
            return {name: getattr(out, name)}
    raise ValueError(f"a call of it returns no cache ({', '.join(CACHES)})")


def _held(cache: Any) -> list[Tensor]:
    """Every tensor in a cache, whatever its class: of each layer keys, values, states, lengths."""
    found: list[Tensor] = []
    seen: set[int] = set()
    waiting = [cache]
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, Tensor):
            found.append(one)
        elif isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, (list, tuple)):
            waiting += one
        elif type(one).__module__.startswith("transformers."):
            waiting += vars(one).values()
    return found
