"""Simulate two training steps of a model: what is held at each moment, the peak, its contents."""

from __future__ import annotations

from functools import partial

from ..frozen import dataclass
from ..model import Model
from ..recipe import Recipe
from ..table import as_html, as_text, cell
from ..tensors import COMPONENTS
from . import adamw, described, keys
from . import lora as adapters
from .away import Offloaded
from .engine import Log, Record
from .lora import Lora
from .networks import network
from .ops import Ops
from .saved import SavedTable
from .setting import Setting
from .windows import windows

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

TERMS = (
    "weights",
    "buffers",
    "gradients",
    "optimizer",
    "inputs",
    "activations",
    "logits",
    "other",
)


@dataclass(frozen=True)
class Peak:
    """The most bytes of a step, and when.

    moment      forward (up to the output head), loss, backward or optimizer
    op          the operator whose result reached it
    contents    bytes by term; they add to `bytes`
    micro_batch the first one that reached it, counted from 1; 0 in the optimizer
    """

    bytes: int
    moment: str
    op: str
    contents: dict[str, int]
    first_step_bytes: int
    micro_batch: int


@dataclass(frozen=True, repr=False)
class Step:
    """A simulated step in the steady state (the second: optimizer states exist).

    rows        weights, buffers, gradients, optimizer; activations and logits: what autograd keeps
                after the forward pass, before the output head and from it on
    held        all bytes after_forward and after_backward of the last micro-batch, between_steps
    saved       what one layer keeps for backward, tensor by tensor
    log         every allocation and free of both steps
    """

    rows: dict[str, int]
    held: dict[str, int]
    held_contents: dict[str, dict[str, int]]
    peak: Peak
    saved: SavedTable
    log: Log

    def replay(self, capacity: int | None = None, *, expandable: bool = False) -> Any:
        """Both steps in PyTorch's caching allocator: allocated and reserved bytes, and what fits.

        Source      memlab.terms.replay, whose `Replay` is returned
        Leaves out  what a simulation leaves out, and the CUDA context
        Raises      ValueError for a step that did not simulate every layer
        """
        return self.log.replay(capacity, expandable)

    def table(self) -> list[list[str]]:
        """Terms, and what is alive of each at the three moments and at the peak."""
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


def simulate(
    model: Model,
    recipe: Recipe | str = "fp32",
    *,
    batch: int,
    tokens: int,
    implementation: str = "transformers",
    attention: str = "sdpa",
    backend: str = "cpu",
    optimizer_impl: str = "forloop",
    step_in_backward: bool = False,
    offload: Sequence[str] = (),
    checkpoint: str = "none",
    dropout: float = 0.0,
    frozen: Sequence[str] = (),
    window: int | None = 4096,
    extra: Mapping[str, Any] | None = None,
    micro_batches: int | None = None,
    loss: str = "plain",
    loss_chunks: int = 8,
    lora: Lora | None = None,
    in_place: bool = True,
    every_layer: bool = False,
) -> Step:
    """What a training step of this model holds, to the byte, without running it.

    The step    loss = model(ids, labels=ids).loss; backward; the loss dropped; AdamW.step();
                zero_grad(set_to_none=True); twice, in training mode, without a cache
    batch       sequences of one micro-batch, whose ids alone are held
    micro_batches   gradient accumulation: forward and backward so many times, each of the loss
                divided by their number, before one AdamW.step(); None: what the recipe says
    recipe      fp32, bf16 or fp16 (weights, gradients and states), or fp32 under autocast to bf16
                or fp16; AdamW
    backend     cpu, or the graph that CUDA's kernels give: eager attention, or what SDPA chooses
                ("flash" is flash attention in narrow formats); see memlab.step.kernels
    window      of the mistral family: its sliding_window, or None; `extra` may say another, and
                alone says which layers of qwen2 and qwen3 have one
    dropout     the probability of every dropout that the family has
    frozen      components of the model (memlab.tensors.COMPONENTS) whose weights are not trained;
                with checkpoints transformers lets the embedding's output ask for a gradient then
                (enable_input_require_grads), and memlab's own models do not
    extra       the config.json as a dict, for the keys that change no parameter but change the
                step: the activation function, parallel residuals, the share that rotary turns
    step_in_backward
                update each weight as soon as its gradient is complete and drop the gradient, as
                memlab.lab.fused_backward does; nothing is left for AdamW.step() then
    offload     what is on a host but while it is computed with: "saved" tensors and the optimizer's
                "states", as memlab.lab.offload and memlab.lab.elsewhere do
    in_place    see memlab.step.engine.Engine
    loss        plain: the model's own, with all logits at once; chunked: of the head's input, by
                memlab.lab.loss.chunked_cross_entropy in `loss_chunks` chunks
    lora        adapters, memlab.step.Lora(rank, targets): they alone are trained, in the format of
                the weights; all else is frozen, whatever `frozen` says
    every_layer simulate each layer and micro-batch by itself, which takes longer and is what
                `Step.replay` needs; otherwise from the second one on micro-batches are alike
    Unit        bytes of storages, as memlab.measure.Tracker counts them on a CPU
    Source      memlab.step.networks, each line from the code that it describes
    Leaves out  scratch memory inside one kernel; numbers that autograd wraps (8 bytes each); the
                gradient scaler that fp16 needs to train well
    Raises      ValueError for a combination that is not described, which it names
    """
    chosen = Recipe.named(recipe) if isinstance(recipe, str) else recipe
    shaped = model if chosen.tie is None else model.replace(tied=chosen.tie)
    dtype = described.dtype_of(chosen)
    described.one_of("backend", backend, ("cpu", "cuda"))
    attentions = described.attentions(implementation, shaped.family)
    if backend == "cuda":
        described.one_of("attention", attention, (*attentions, "flash"))
        if attention == "flash" and (chosen.autocast or chosen.weights) == "fp32":
            raise ValueError("attention='flash' in fp32: CUDA's flash kernel takes narrow formats")
        attention = "sdpa" if attention == "flash" else attention
        described.check_cuda(shaped, chosen, attention, extra or {})
    described.one_of("attention", attention, attentions)
    described.one_of("optimizer_impl", optimizer_impl, adamw.IMPLEMENTATIONS)
    described.one_of("checkpoint", checkpoint, ("none", "block"))
    described.check_dropout(dropout, implementation, shaped.family)
    if implementation == "transformers":
        keys.check(shaped.family, extra or {}, dropout)
    described.check_shape(shaped, implementation, batch, tokens)
    theirs = implementation == "transformers"
    near, sliding = windows(shaped, extra or {}, window) if theirs else (None, None)
    f = Ops(chosen.autocast, backend=backend, in_place=in_place)
    described.check_frozen(frozen, shaped)
    f.frozen = frozen
    if lora is not None:
        adapters.check(lora, shaped, implementation)
        f.frozen = (*COMPONENTS, "other")
    if every_layer or sliding is not None:  # layers of two kinds are not all alike
        f.shown = shaped.layers
    setting = Setting(
        shaped,
        dtype,
        batch,
        tokens,
        attention,
        dropout,
        extra,
        near,
        checkpoint == "block",
        loss_chunks=described.chunks(loss, loss_chunks, batch * tokens),
        lora=lora,
        sliding=sliding,
    )
    passes = described.passes(chosen.accumulate if micro_batches is None else micro_batches)
    if step_in_backward:
        described.check_step_in_backward(passes)
        f.updates = partial(adamw.step_one, f, implementation=optimizer_impl)
    described.check_offload(offload, implementation, optimizer_impl, checkpoint, step_in_backward)
    f.offloaded = Offloaded(f.log) if "saved" in offload else None
    written = network(implementation, shaped.family)(f, setting)
    described.check_built(shaped, f.log.contents(len(f.log.events), term)["weights"], dtype, lora)
    update = partial(adamw.step, f, shaped.layers, optimizer_impl)
    if "states" in offload:
        update = partial(adamw.step_elsewhere, f, shaped.layers)
    return _run(f, written, setting, update, passes if every_layer else min(passes, 2))


def _run(f: Ops, written: Any, setting: Setting, update: Any, passes: int) -> Step:
    log, layers = f.log, setting.model.layers
    ids = f.new("ids", (setting.B, setting.T), "int64", "inputs")
    for step in ("first", "second"):
        for number in range(1, passes + 1):
            which = _which(number)
            log.mark(f"{step}.forward{which}")
            f.part, f.saves = "", []
            loss = written.forward(ids)
            if passes > 1:
                loss = f.scale(loss, "div")
            f.end_autocast()
            log.marks[f"{step}.loss{which}"] = log.marks.pop("loss")
            log.mark(f"{step}.backward{which}")
            f.backward(loss)
            del loss
            f.leaves.clear()
        log.mark(f"{step}.optimizer")
        if f.updates is None:
            update()
        log.mark(f"{step}.zero_grad")
        adamw.zero_grad(f, layers)
        log.mark(f"{step}.end")
    log.closed = True  # what goes from here on is not the step's
    moments = {
        "after_forward": log.marks[f"second.backward{_which(passes)}"],
        "after_backward": log.marks["second.optimizer"],
        "between_steps": log.marks["second.end"],
    }
    contents = {moment: log.contents(at, term) for moment, at in moments.items()}
    rows = {
        "weights": contents["between_steps"]["weights"],
        "buffers": contents["between_steps"].get("buffers", 0),
        "gradients": contents["after_backward"]["gradients"],
        "optimizer": contents["between_steps"]["optimizer"],
        "activations": _kept(log, moments["after_forward"], "layers"),
        "logits": _kept(log, moments["after_forward"], "loss"),
    }
    first = max(total for _, _, total in log.events[_span(log, "first")])
    return Step(
        rows,
        {moment: log.events[at - 1][2] for moment, at in moments.items()},
        contents,
        _peak(log, first),
        SavedTable.of_layer(f.saves, layers),
        log,
    )


def term(record: Record) -> str:
    """weights, gradients, optimizer, buffers, inputs, activations, logits or other.

    Logits are all copies of them, kept for backward or not, and their gradients.
    """
    last = getattr(record.shape[-1], "letters", "") if record.shape else ""
    if record.category in ("activations", "other") and last == "V":
        return "logits"
    return record.category


def _kept(log: Log, at: int, part: str) -> int:
    def key(record: Record) -> str:
        kept = record.category == "activations" and (record.part == "loss") == (part == "loss")
        return "kept" if kept else "rest"

    return log.contents(at, key).get("kept", 0)


def _which(micro_batch: int) -> str:
    """What the names of a micro-batch's moments end in: nothing for the first."""
    return f".{micro_batch}" if micro_batch > 1 else ""


def _span(log: Log, step: str) -> slice:
    return slice(log.marks[f"{step}.forward"], log.marks[f"{step}.end"])


def _peak(log: Log, first: int) -> Peak:
    span = _span(log, "second")
    at = max(range(span.start, span.stop), key=lambda i: log.events[i][2])
    record, _, total = log.events[at]
    # The mark that was set last before it: "second.optimizer" or "second.backward.2", say.
    before = [name for name, i in log.marks.items() if i <= at and name.startswith("second.")]
    _, moment, *number = max(before, key=log.marks.__getitem__).split(".")
    in_pass = int(number[0]) if number else int(moment in ("forward", "loss", "backward"))
    found = {name: size for name, size in log.contents(at + 1, term).items() if size}
    return Peak(total, moment, "" if record is None else record.op, found, first, in_pass)
