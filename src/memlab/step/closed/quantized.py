"""Inference with quantized weights that are widened when they are used: what the peak contains.

R outputs and C inputs of a linear layer · b bytes of a value where it is computed with

A layer without a kernel of its own for a format writes its weight out, multiplies, and forgets it.
Written down here is what memlab.lab.quantized_linear does, operator by operator.
"""

from __future__ import annotations

from ...base import titles
from ...formats import format_of
from ...ledger import Ledger
from ...model import Model
from ...recipe import Recipe
from ...recipe.resident import resident
from ...units import whole
from .working_set import WIDTHS, Moment, moments

# The sixteen levels, and for each byte the two levels that its halves stand for.
TABLE = 16 + 256 * 2


def weight_only(
    model: Model,
    weights: str,
    *,
    batch: int,
    tokens: int,
    past: int = 0,
    format: str = "bf16",
    head: bool = False,
    cache: str = "none",
    capacity: int | None = None,
    pieces: int = 1,
) -> Ledger:
    """The peak of reading `tokens` after `past` ones, linear layers stored in the format `weights`.

    Formula     max over `memlab.step.closed.working_set.moments`, the linear ones with `widening`
                on top
    Shapes      embedding and norms in `format`; so is the output head unless `head`
    Unit        bytes; the row `widened` is the written-out weight, the title names the moment
    Source      memlab.lab.quantized_linear, torch 2.13 on a CPU
    Leaves out  kernels that read codes; layers without a gate
    Raises      as `memlab.step.closed.own_calls.prefill`; ValueError for scales that are not in
                `format`, and
                for a model without gates
    """
    kind = format_of(weights)
    if kind.scale is None or kind.scale.name != format:
        raise ValueError(f"{kind.name} has no scales in {format}; give it some: int8/128:{format}")
    if not model.gated:
        raise ValueError(f"{model.name} has no gates: its feed-forward layer is not known here")
    b, rows = WIDTHS[format], batch * tokens
    found = moments(model, batch, tokens, format, cache=cache, capacity=capacity, past=past)
    linear = {
        "attention.out": (model.d_model, model.heads * model.head_dim),
        "feed_forward.up": (model.d_ff, model.d_model),
        "feed_forward.down": (model.d_model, model.d_ff),
    }
    if head and not model.tied:
        linear["lm_head"] = (model.vocab, model.d_model)
    tried = [(each, 0) for each in found]
    for each in found:
        if each.name in linear:
            R, C = linear[each.name]
            before, after = widening(R, C, kind.bits, rows, b, pieces=pieces)
            tried.append((each, after))
            # A whole weight is written out before there is a result, pieces when it has its place.
            tried.append((each if pieces > 1 else _without_result(each, rows * R * b), before))
    at, widened = max(tried, key=lambda pair: pair[0].bytes + pair[1])
    recipe = Recipe(weights=weights, other=format, head=None if head else format, gradients=None)
    figures = {
        "weights": resident(model, recipe)["weights"],
        "buffers": 2 * model.positions * model.head_dim * b,
        "inputs": 8 * rows,
        "kv_cache": at.kv_cache,
        "activations": at.activations,
        "widened": widened,
        "logits": at.logits,
    }
    return Ledger.of("derived", figures, title=titles.dotted(model.name, kind.name, at.name))


def widening(
    R: int, C: int, bits: int, rows: int, b: int = 2, *, pieces: int = 1
) -> tuple[int, int]:
    """Bytes beside the layer's input and result, while codes become values and while they are used.

    Formula     8 bits: b · R · C. 4 bits: in addition 4 · R · C / 2 places to look up, and a table.
                In pieces: a part of it, and beside the product the part's result
    Shapes      weight [R, C], x [rows, C]
    Unit        bytes
    Source      memlab.lab.quantize: torch looks up with integers of 4 bytes, one for each byte
    Raises      ValueError for other bits and for pieces that do not divide R
    """
    if bits not in (4, 8):
        raise ValueError(f"bits={bits}; codes of 4 and of 8 bits are known")
    if whole("pieces", pieces) == 0 or R % pieces:
        raise ValueError(f"{R} rows do not divide into pieces={pieces}")
    wide = R // pieces * C * b
    before = wide + (4 * (R // pieces) * C // 2 + TABLE * b if bits == 4 else 0)
    return before, wide + (rows * (R // pieces) * b if pieces > 1 else 0)


def _without_result(at: Moment, result: int) -> Moment:
    if at.logits:
        return Moment(at.name, at.activations, at.kv_cache)
    return Moment(at.name, at.activations - result, at.kv_cache)
