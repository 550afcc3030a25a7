"""Simulate a call in inference: a prompt is read, or one more token, with transformers' cache.

    prefill     out = model(ids, use_cache=True), and with logits_to_keep=1 as in `generate`
    decode      out = model(next_id, past_key_values=cache)

in evaluation mode, under torch.no_grad() as `generate` has it. torch.inference_mode() allocates the
same but under autocast, whose copies of the weights live there for one operator; under no_grad they
live as long as the autocast block, which is taken to be entered for each call by itself.
"""

from __future__ import annotations

from ..frozen import dataclass
from ..model import Model
from ..recipe import Recipe
from ..table import as_html, as_text, cell
from ..units import whole
from . import described, keys
from .cache import Cache
from .engine import Tensor, call
from .log import Log
from .networks import network
from .ops import Ops
from .setting import Setting
from .simulate import term
from .windows import windows

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

PRECISIONS = {("fp32", None), ("bf16", None), ("fp32", "bf16")}
TERMS = ("weights", "buffers", "inputs", "kv_cache", "activations", "logits", "other")


@dataclass(frozen=True)
class CallPeak:
    """The most bytes of a call, and when.

    moment      forward (up to the output head) or logits
    op          the operator whose result reached it
    contents    bytes by term; they add to `bytes`. While the cache grows, kv_cache holds one tensor
                of one layer twice; other: autocast's copies of the weights
    """

    bytes: int
    moment: str
    op: str
    contents: dict[str, int]


@dataclass(frozen=True, repr=False)
class Call:
    """A simulated call.

    rows        weights, buffers, inputs; kv_cache and logits as the call returns them; activations
                and other (autocast's copies of the weights): at the peak, for they all go
    held        all bytes before the call, and after it, while its result is held
    per_token   bytes that each generated token adds to the cache, of all sequences together
    log         every allocation and free
    """

    rows: dict[str, int]
    held: dict[str, int]
    held_contents: dict[str, dict[str, int]]
    peak: CallPeak
    per_token: int
    log: Log

    def replay(self, capacity: int | None = None, *, expandable: bool = False) -> Any:
        """The call in PyTorch's caching allocator, as `Step.replay`.

        Raises      ValueError for a call that did not simulate every layer
        """
        return self.log.replay(capacity, expandable)

    def table(self) -> list[list[str]]:
        """Terms, and what is alive of each before and after the call and at its peak."""
        columns = {**self.held_contents, f"peak ({self.peak.moment})": self.peak.contents}
        names = [n for n in TERMS if any(found.get(n) for found in columns.values())]
        head = ["bytes", *(moment.replace("_", " ") for moment in columns)]
        body = [[n, *(cell(found.get(n, 0)) for found in columns.values())] for n in names]
        totals = [*self.held.values(), self.peak.bytes]
        return [head, *body, ["total", *map(cell, totals)]]

    def __str__(self) -> str:
        return as_text(self.table(), foot=1)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return as_html(self.table(), foot=1)


def prefill(
    model: Model,
    recipe: Recipe | str = "bf16",
    *,
    batch: int,
    tokens: int,
    last: bool = False,
    attention: str = "sdpa",
    backend: str = "cpu",
    window: int | None = 4096,
    extra: Mapping[str, Any] | None = None,
    inference_mode: bool = False,
    every_layer: bool = False,
) -> Call:
    """What reading a prompt holds, to the byte, without reading it.

    recipe      fp32, bf16 or fp32 under autocast(bf16); only the formats of its weights count
    last        whether only the last token's logits are made (logits_to_keep=1)
    Shapes      ids [batch, tokens]; logits [batch, tokens or 1, V]; the rest as
                `memlab.step.simulate`
    inference_mode  whether the call is under torch.inference_mode() instead of torch.no_grad()
    Unit        bytes of storages, as memlab.measure.Tracker counts them on a CPU
    Source      memlab.step.networks and memlab.step.cache, transformers 5.23
    Leaves out  scratch memory inside one kernel; what `generate` adds: the tokens so far, a mask,
                scores, and positions of each sequence by itself, with which tables of angles and
                embeddings of positions are made B times instead of once
    Raises      ValueError for a combination that is not described, which it names; for more
                learned positions than there are, and for tokens beyond a sliding window
    """
    how = (attention, backend, window, extra, inference_mode, every_layer)
    return _call(model, recipe, batch, tokens, None, last, *how)


def decode(
    model: Model,
    recipe: Recipe | str = "bf16",
    *,
    batch: int,
    tokens: int,
    attention: str = "sdpa",
    backend: str = "cpu",
    window: int | None = 4096,
    extra: Mapping[str, Any] | None = None,
    inference_mode: bool = False,
    every_layer: bool = False,
) -> Call:
    """What reading one more token of each sequence holds, after `tokens` that are in the cache.

    Shapes      ids [batch, 1]; logits [batch, 1, V]
    Unit        bytes, as `prefill`, with its source and what it leaves out
    Raises      as `prefill`
    """
    how = (attention, backend, window, extra, inference_mode, every_layer)
    return _call(model, recipe, batch, 1, tokens, False, *how)


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

    def _cast(self, x: Tensor) -> Tensor:
        made = super()._cast(x)
        if made is not x and x.record.category == "weights":
            made.record.category = "other"
        if self.inference_mode:
            self._casts.clear()
        return made


def _call(
    model: Model,
    recipe: Recipe | str,
    batch: int,
    tokens: int,
    past: int | None,
    last: bool,
    attention: str,
    backend: str,
    window: int | None,
    extra: Mapping[str, Any] | None,
    inference_mode: bool,
    every_layer: bool,
) -> Call:
    chosen = Recipe.named(recipe) if isinstance(recipe, str) else recipe
    shaped = model if chosen.tie is None else model.replace(tied=chosen.tie)
    # Dropout and skipped layers are for training.
    said = {k: v for k, v in (extra or {}).items() if k not in ("attention_dropout", "layerdrop")}
    near, _ = windows(shaped, said, window)
    attention = _check(shaped, chosen, attention, backend, said)
    _check_shape(shaped, batch, tokens, past, near)
    f = Reader(chosen.autocast, backend, inference_mode)
    if every_layer:
        f.shown = shaped.layers
    setting = Setting(
        shaped,
        chosen.weights,
        batch,
        tokens,
        attention,
        extra=said or None,
        window=near,
        past=past or 0,
    )
    written = network("transformers", shaped.family)(f, setting)
    cache = Cache(f, setting)
    ids = f.new("ids", (setting.B, setting.T), "int64", "inputs")
    log = f.log
    log.mark("before")
    written.cache = cache
    logits = call(_logits, f, written, ids, last)
    f.end_autocast()
    log.mark("after")
    log.closed = True  # what goes from here on is not the call's
    del logits
    return _result(log, cache.token_bytes * shaped.layers)


def _logits(f: Ops, written: Any, ids: Tensor, last: bool) -> Tensor:
    """As the model's own forward, without a loss."""
    hidden = call(written.body, ids)
    f.log.mark("logits")
    if last:
        hidden = f.part_of(hidden, hidden.shape[0], 1, hidden.shape[2])
    return f.linear(hidden, written.lm_head)


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


def _check(
    model: Model, recipe: Recipe, attention: str, backend: str, extra: Mapping[str, Any]
) -> str:
    """The attention as the networks know it, if all of this is described."""
    if (recipe.weights, recipe.autocast) not in PRECISIONS or recipe.other:
        raise ValueError(
            f"recipe {recipe.name!r} (weights {recipe.weights}, autocast {recipe.autocast}) is not "
            "described for a call; known: fp32, bf16, fp32 under autocast bf16"
        )
    described.one_of("backend", backend, ("cpu", "cuda"))
    known = described.attentions("transformers", model.family)
    if backend == "cuda":
        described.one_of("attention", attention, (*known, "flash"))
        if attention == "flash" and (recipe.autocast or recipe.weights) == "fp32":
            raise ValueError("attention='flash' in fp32: CUDA's flash kernel takes narrow formats")
        attention = "sdpa" if attention == "flash" else attention
        described.check_cuda(model, recipe, attention, {})
        narrow = (recipe.autocast or recipe.weights) != "fp32"
        if attention == "sdpa" and not narrow and model.kv_heads < model.heads:
            raise ValueError("shared key/value heads in fp32 on cuda: scores are not described")
    described.one_of("attention", attention, known)
    keys.check(model.family, extra, 0.0)
    rotary = keys.rope_type(extra)
    if rotary in ("dynamic", "longrope"):
        raise ValueError(f"rope_type={rotary!r} is not described for a call")
    if extra.get("use_sliding_window"):
        raise ValueError("use_sliding_window=True is not described for a call")
    return attention


def _check_shape(
    model: Model, batch: int, tokens: int, past: int | None, window: int | None
) -> None:
    for name, size in (("batch", batch), ("tokens", tokens if past is None else past)):
        if whole(name, size) == 0:
            raise ValueError(f"{name}=0; at least 1 is needed")
    total = tokens + (past or 0)
    if model.learned_positions and total > model.positions:
        raise ValueError(f"{total} tokens; {model.name} has {model.positions} positions")
    if window is not None and total >= window:
        raise ValueError(f"{total} tokens with a sliding window of {window} is not described")
    if model.head_dim > 256 and model.kv_heads < model.heads:
        raise ValueError(f"H={model.head_dim} with shared key/value heads is not described")
