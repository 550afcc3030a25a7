"""Inference peaks: weights, cache, the work of one layer, and the logits, without a backward pass.

What one layer holds at each moment stands in memlab.step.closed.working_set; this module adds what
is there all the time and finds the largest moment.
"""

from __future__ import annotations

from ...base import titles
from ...ledger import Ledger
from ...model import Model
from ...terms.weights import weights
from .working_set import WIDTHS, Moment, moments


def prefill(
    model: Model,
    *,
    batch: int,
    tokens: int,
    format: str = "bf16",
    cache: str = "none",
    capacity: int | None = None,
) -> Ledger:
    """The peak while a prompt is read: every term at the moment when their sum is largest.

    Formula     weights + buffers + inputs + max over `moments` of activations + cache + logits
    Shapes      cache "none": the model called under no_grad, logits of all tokens [B, T, V];
                "preallocated" (for `capacity` tokens) or "growing": memlab.lab.generate.read,
                logits of the last token only [B, V]
    Unit        bytes; the title names the moment
    Source      memlab.lab.models, read operator by operator; torch 2.13 on a CPU
    Leaves out  scratch memory inside one kernel, the allocator's rounding
    Raises      ValueError for a family, flag, format or cache that is not known here, an empty
                prompt, and a cache or positions too few for it
    """
    found = moments(model, batch, tokens, format, cache=cache, capacity=capacity)
    return _ledger(model, f"prefill {batch} x {tokens}", format, batch * tokens, found)


def decode(
    model: Model,
    *,
    batch: int,
    tokens: int,
    format: str = "bf16",
    cache: str = "preallocated",
    capacity: int | None = None,
) -> Ledger:
    """The peak while one more token is generated after `tokens` that are in the cache.

    Formula     as `prefill`, with R = B
    Unit        bytes; the title names the moment
    Source      memlab.lab.generate; torch 2.13 on a CPU
    Leaves out  as `prefill`
    Raises      as `prefill`; ValueError without a cache
    """
    if cache == "none":
        raise ValueError(
            "cache='none': without one each step reads all tokens again; that is prefill"
        )
    found = moments(model, batch, 1, format, cache=cache, capacity=capacity, past=tokens)
    return _ledger(model, f"decode {batch} x 1 after {tokens}", format, batch, found)


def _ledger(model: Model, what: str, format: str, rows: int, found: list[Moment]) -> Ledger:
    at = max(found, key=lambda moment: moment.bytes)
    buffers = 0 if model.family == "gpt2" else 2 * model.positions * model.head_dim * WIDTHS[format]
    figures = {
        "weights": weights(model.parameter_count, format=format),
        "buffers": buffers,
        "inputs": 8 * rows,
        "kv_cache": at.kv_cache,
        "activations": at.activations,
        "logits": at.logits,
    }
    return Ledger.of("derived", figures, title=titles.dotted(model.name, what, format, at.name))
