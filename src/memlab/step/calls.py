"""Simulate a call in inference: a prompt is read, or one more token, with transformers' cache.

    prefill     out = model(ids, use_cache=True), and with logits_to_keep=1 as in `generate`
    decode      out = model(next_id, past_key_values=cache)

in evaluation mode, under torch.no_grad() as `generate` has it. torch.inference_mode() allocates the
same but under autocast, whose copies of the weights live there for one operator; under no_grad they
live as long as the autocast block, which is taken to be entered for each call by itself.
"""

from __future__ import annotations

from ..families import record_of
from ..model import Model
from ..recipe import Recipe
from ..run import CacheAlone, Run
from ..run.recipe_choice import recipe_for, tied_as
from . import keys, supported
from .call_result import TERMS
from .call_result import Call as Call
from .call_result import CallPeak as CallPeak
from .core.graph import Tensor, call
from .core.result import term
from .core.setting import Setting
from .core.storage_log import Log
from .kv_cache import cache_of
from .networks import network
from .networks.router_loss import load_balancing_loss
from .ops import Ops
from .windows import first_apart, windows

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

PRECISIONS = {("fp32", None), ("bf16", None), ("fp32", "bf16")}


def prefill(
    model: Model, recipe: Recipe | str | None, run: Run, *, every_layer: bool = False
) -> Call:
    """What reading a prompt holds, to the byte, without reading it.

    recipe      fp32, bf16 or fp32 under autocast(bf16); only the formats of its weights count
    run         its logits say whether all tokens' are made or the last one's (logits_to_keep=1)
    Shapes      ids [batch, tokens]; logits [batch, tokens or 1, V]; the rest as
                `memlab.step.simulate`
    Unit        bytes of storages, as memlab.measure.Tracker counts them
    Source      memlab.step.networks and memlab.step.kv_cache, transformers 5.23
    Leaves out  scratch memory inside one kernel; what `generate` adds: the tokens so far, a mask,
                scores, and positions of each sequence by itself, with which tables of angles and
                embeddings of positions are made B times instead of once
    Raises      ValueError for a combination that is not described, which it names, and for more
                learned positions than there are
    """
    if run.phase == "decode":
        raise ValueError("phase='decode': decode() reads one more token, prefill() a prompt")
    return _call(model, recipe, run.replace(phase="prefill"), every_layer)


def decode(
    model: Model, recipe: Recipe | str | None, run: Run, *, every_layer: bool = False
) -> Call:
    """What reading one more token of each sequence holds, after `tokens` that are in the cache.

    The last of those was read alone, too, as in `generate`: a layer with a window then holds W
    tokens, where right after a longer prompt it still holds all of that.

    Shapes      ids [batch, 1]; logits [batch, 1, V]
    Unit        bytes, as `prefill`, with its source and what it leaves out
    Raises      as `prefill`
    """
    if run.phase == "prefill":
        raise ValueError("phase='prefill': prefill() reads a prompt, decode() one more token")
    return _call(model, recipe, run.replace(phase="decode"), every_layer)


class Reader(Ops):
    """Operators that keep nothing for backward.

    inference_mode      whether autocast makes a weight's copy anew each time it is used
    """

    def __init__(self, autocast: str | None, backend: str, inference_mode: bool) -> None:
        super().__init__(autocast, backend=backend)
        self.grad = False
        self.inference_mode = inference_mode

    def new(
        self, op: str, shape: Sequence[int], dtype: str, category: str = "activations"
    ) -> Tensor:
        return super().new(op, shape, dtype, category)

    def cast(self, x: Tensor) -> Tensor:
        made = super().cast(x)
        if made is not x and x.record.category == "weights":
            made.record.category = "other"
        if self.inference_mode:
            self.casts.clear()
        return made


def _call(model: Model, recipe: Recipe | str | None, run: Run, every_layer: bool) -> Call:
    chosen = recipe_for(model, recipe, run)
    shaped = tied_as(model, chosen)
    if record_of(model.family).recorded is not None:
        raise CacheAlone(f"phase={run.phase!r} is not supported for {model.family}")
    # Dropout and skipped layers are for training.
    said = {k: v for k, v in shaped.config.items() if k not in ("attention_dropout", "layerdrop")}
    near, sliding = windows(shaped, run.window)
    attention = _check(shaped, chosen, run, said)
    assert run.tokens is not None  # a call has them
    past = run.tokens if run.phase == "decode" else None
    tokens = run.tokens if past is None else 1
    _check_shape(shaped, tokens, past)
    f = Reader(chosen.autocast, run.backend, run.inference_mode)
    f.show(shaped.layers, None if every_layer else first_apart(shaped))
    setting = Setting(
        shaped,
        chosen.weights,
        run.batch,
        tokens,
        attention,
        extra=said or None,
        window=near,
        past=past or 0,
        sliding=sliding,
    )
    written = network("transformers", shaped.family)(f, setting)
    cache = cache_of(f, setting, written)
    ids = f.new("ids", (setting.B, setting.T), "int64", "inputs")
    log = f.log
    log.mark("before")
    written.cache = cache
    logits = call(_logits, f, setting, written, ids, run.logits == "last")
    f.end_autocast()
    log.mark("after")
    log.closed = True  # what goes from here on is not the call's
    del logits
    return _result(log, cache.token_bytes)


def _logits(f: Ops, s: Setting, written: Any, ids: Tensor, last: bool) -> Tensor:
    """As the model's own forward, without a loss but that of routers, where the config asks."""
    balanced = keys.router_loss(s.extra or {})
    if balanced:
        written.gates = {}
    hidden = call(written.body, ids)
    f.log.mark("logits")
    if last:
        hidden = f.part_of(hidden, hidden.shape[0], 1, hidden.shape[2])
    make = getattr(written, "logits", None)
    logits: Tensor = make(hidden) if make else f.linear(hidden, written.lm_head)
    if balanced:
        written.uneven = load_balancing_loss(f, s, written.gates)
    return logits


def _result(log: Log, per_token: int) -> Call:
    moments = {"before_call": log.marks["before"], "after_call": log.marks["after"]}
    contents = {name: log.contents(at, term) for name, at in moments.items()}
    at = max(range(moments["before_call"], len(log.events)), key=lambda i: log.events[i][2])
    record, _, total = log.events[at]
    found = {name: size for name, size in log.contents(at + 1, term).items() if size}
    moment = "logits" if log.marks["logits"] <= at else "forward"
    peak = CallPeak(total, moment, "" if record is None else record.op, found)
    rows = {name: contents["after_call"].get(name, 0) for name in TERMS}
    rows |= {name: found.get(name, 0) for name in ("activations", "other")}
    held = {name: log.events[i - 1][2] for name, i in moments.items()}
    return Call(rows, held, contents, peak, per_token, log)


def _check(model: Model, recipe: Recipe, run: Run, said: Mapping[str, Any]) -> str:
    """The attention as the networks know it, if all of this is described."""
    if run.implementation != "transformers":
        raise ValueError(
            f"implementation={run.implementation!r} is not simulated for a call; its closed forms "
            "are memlab.step.closed"
        )
    if run.devices.ranks > 1:
        raise ValueError(f"devices={run.devices}: a call on one device alone is described")
    if (recipe.weights, recipe.autocast) not in PRECISIONS or recipe.other:
        raise ValueError(
            f"recipe {recipe.name!r} (weights {recipe.weights}, autocast {recipe.autocast}) is not "
            "described for a call; known: fp32, bf16, fp32 under autocast bf16"
        )
    attention = supported.attention_of(model, recipe, run)
    narrow = (recipe.autocast or recipe.weights) != "fp32"
    if run.backend == "cuda" and attention == "sdpa" and not narrow:
        if model.kv_heads < model.heads:
            raise ValueError("shared key/value heads in fp32 on cuda: scores are not described")
    keys.check(model.family, said)
    keys.check_rows(model, recipe.weights)
    if keys.router_loss(said):
        supported.check_router_loss(model, run)
    rotary = keys.rope_type(said)
    if rotary in ("dynamic", "longrope"):
        raise CacheAlone(f"rope_type={rotary!r} is not described for a call")
    return attention


def _check_shape(model: Model, tokens: int, past: int | None) -> None:
    total = tokens + (past or 0)
    if model.learned_positions and total > model.positions:
        raise ValueError(f"{total} tokens; {model.name} has {model.positions} positions")
    if model.head_dim > 256 and model.kv_heads < model.heads:
        raise ValueError(f"H={model.head_dim} with shared key/value heads is not described")
