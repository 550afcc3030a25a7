"""Real calls of small models with a cache on the CPU, counted to the byte: what estimates equal.

Two calls, of which generating text consists: a prompt is read, `out = model(ids,
use_cache=True)`, and then one more token, `out = model(next_id, past_key_values=cache)`. Each runs
by itself under `torch.no_grad()` (and under autocast, where a precision says so).
"""

import contextlib
import gc
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from real_steps import StepConfig, build, module_vocab, quiet
from torch._subclasses.fake_tensor import FakeTensorMode

from memlab.lab.train import one_thread
from memlab.measure import Tracker
from memlab.measure.cuda_graph import CudaGraph
from memlab.measure.fakes import Fakes
from memlab.measure.hugging_face import real_masks

PHASES = ("prefill", "last", "decode")  # last: a prompt, with logits_to_keep=1


@dataclass(frozen=True)
class RealCall:
    """What one call held: in all, by category at the peak, and every event of it.

    before, after   bytes alive before the call, and with its result (logits and cache)
    kept            of the result: kv_cache and logits
    totals          bytes alive after each allocation of the call
    """

    before: int
    after: int
    kept: dict[str, int]
    peak: int
    contents: dict[str, int]
    totals: list[tuple[int, int]]
    tracker: Tracker


def real_call(
    step: StepConfig,
    phase: str,
    module: torch.nn.Module | None = None,
    mode: Callable[[], AbstractContextManager] = torch.no_grad,
) -> RealCall:
    """Run one call; `step.tokens` are those of the prompt, or those in the cache before `decode`.

    mode        under inference_mode a tracker does not see inside operators made of others

    Raises      ValueError for a phase that is not known
    """
    if phase not in PHASES:
        raise ValueError(f"unknown phase {phase!r}; known: {', '.join(PHASES)}")
    with one_thread(), quiet(), no_collection(), mode():
        module = (module or build(step)).eval()
        ids = torch.randint(module_vocab(module), (step.batch, step.tokens))
        return _tracked(step, phase, module, ids)


def traced_call(step: StepConfig, phase: str, module: torch.nn.Module) -> RealCall:
    """The same call on fake tensors, with CUDA's choice of kernels."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    fakes = (mode, torch.no_grad(), real_masks(False), CudaGraph("auto"))
    with quiet(), no_collection(), contextlib.ExitStack() as stack:
        for context in fakes:
            stack.enter_context(context)
        ids = torch.zeros(step.batch, step.tokens, dtype=torch.long)
        return _tracked(step, phase, Fakes(mode).module(module.eval()), ids)


def _tracked(step: StepConfig, phase: str, module: torch.nn.Module, ids: torch.Tensor) -> RealCall:
    given: dict[str, Any] = {"use_cache": True}
    if phase == "last":
        given["logits_to_keep"] = 1
    if phase == "decode":
        with autocast(step):
            given["past_key_values"] = module(ids, use_cache=True).past_key_values
        ids = ids[:, -1:].clone()
    with Tracker() as tracker:
        tracker.label(module)
        tracker.label(ids, "inputs")
        if "past_key_values" in given:
            tracker.label(tensors_of(given["past_key_values"]), "kv_cache")
        before, start = tracker.current, len(tracker.timeline)
        with autocast(step):
            out = module(ids, **given)
        tracker.label(tensors_of(out.past_key_values), "kv_cache")
        tracker.label(out.logits, "logits")
        after = tracker.current
        kept = tracker.contents()
    return RealCall(
        before=before,
        after=after,
        kept={name: kept[name] for name in ("kv_cache", "logits")},
        peak=tracker.peak,
        contents={name: size for name, size in tracker.contents("peak").items() if size},
        totals=[
            (e.bytes, e.total) for e in tracker.timeline[start:] if e.bytes and e.kind == "alloc"
        ],
        tracker=tracker,
    )


def tensors_of(cache: Any) -> list[torch.Tensor]:
    """Every tensor that a cache holds: of each layer its keys, values, and its window if any."""
    return [tensor for layer in cache for tensor in layer if tensor is not None]


@contextmanager
def autocast(step: StepConfig) -> Iterator[None]:
    """Autocast where the step's precision is one."""
    with contextlib.ExitStack() as stack:
        if step.precision == "autocast-bf16":
            stack.enter_context(torch.autocast("cpu", torch.bfloat16))
        yield


@contextmanager
def no_collection() -> Iterator[None]:
    """Bytes must not depend on when Python looks for cycles."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
