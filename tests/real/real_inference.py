"""Real calls of small models with a cache on the CPU, counted to the byte: what estimates equal.

Two calls, of which generating text consists: a prompt is read, `out = model(ids,
use_cache=True)`, and then one more token, `out = model(next_id, past_key_values=cache)`. Each runs
by itself under `torch.no_grad()` (and under autocast, where a precision says so).
"""

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from fake_card import on_card
from real_steps import Question, build, module_vocab, quiet, tensors_of

from memlab.base.gc_paused import no_garbage
from memlab.lab.subject import DTYPES
from memlab.lab.train import one_thread
from memlab.measure import Tracker

# What a call's run says of it; last: a prompt, with logits_to_keep=1.
PHASES = {
    "prefill": {"phase": "prefill", "logits": "all"},
    "last": {"phase": "prefill", "logits": "last"},
    "decode": {"phase": "decode", "logits": "all"},
}


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


def real_call(step: Question, module: torch.nn.Module | None = None) -> RealCall:
    """Run one call; the run's tokens are those of the prompt, or in the cache before `decode`.

    Under inference_mode a tracker does not see inside operators made of others.

    Raises      ValueError for a run that is a training step, or that of a GPU
    """
    if step.run.phase == "train":
        raise ValueError("phase='train': real_steps.py runs steps")
    if step.run.backend != "cpu":
        raise ValueError(f"backend={step.run.backend!r}: real calls run on this machine's CPU")
    mode = torch.inference_mode if step.run.inference_mode else torch.no_grad
    with one_thread(), quiet(), no_garbage(), mode():
        module = (module or build(step)).eval()
        ids = torch.randint(module_vocab(module), (step.run.batch, step.run.tokens))
        return _tracked(step, module, ids)


def traced_call(step: Question, module: torch.nn.Module) -> RealCall:
    """The same call on fake tensors, with CUDA's choice of kernels."""
    eager = module.eval()
    with quiet(), no_garbage(), torch.no_grad(), on_card(lambda fakes: fakes.module(eager)) as fake:
        ids = torch.zeros(step.run.batch, step.run.tokens, dtype=torch.long)
        return _tracked(step, fake, ids)


def _tracked(step: Question, module: torch.nn.Module, ids: torch.Tensor) -> RealCall:
    given: dict[str, Any] = {"use_cache": True}
    if step.run.logits == "last":
        given["logits_to_keep"] = 1
    if step.run.phase == "decode":
        with autocast(step):
            read = ids[:, : max(1, ids.shape[1] - 1)]
            given["past_key_values"] = module(read, use_cache=True).past_key_values
            if ids.shape[1] > 1:  # the last one alone, as in `generate`: a window forgets then
                module(ids[:, -1:], **given)
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


@contextmanager
def autocast(step: Question) -> Iterator[None]:
    """Autocast where the step's precision is one."""
    with contextlib.ExitStack() as stack:
        if step.recipe.autocast:
            stack.enter_context(torch.autocast(step.run.backend, DTYPES[step.recipe.autocast]))
        yield
