"""A whole training step without memory and without a GPU: what it would hold, at every moment.

Fake tensors have shapes and no values. The step runs on them in full (forward, loss, backward,
optimizer, twice, since the second step finds the optimizer's state in place), and a tracker counts
the storages that a real run would have.
Long, because the one step it runs can be given in many ways, and each is checked first.
"""

import gc
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn
from torch._guards import active_fake_mode
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily
from torch.optim import Optimizer

from ..base import titles
from ..base.gc_paused import no_garbage
from ..run import Run
from ..units import whole
from .compiled import CompiledTracker, compiled, eager
from .fake_copies import Fakes
from .fake_cuda import begin, known, noted
from .fake_cuda.kinds import small
from .fake_cuda.losses import losses
from .fake_cuda.undo import Changes
from .fake_cuda.values import Values
from .grouped_products import grouped_products
from .shapes_mode import shapes_mode
from .step_tracker import HOST, StepTracker
from .terms import births, head, name_logits, rows, wide_born_in_the_loss, width
from .traced import MOMENTS, Trace
from .tracker import Tracker
from .untraceable import explained

OURS = ("backend", "kernel", "optimizer_impl", "compile")
LOOPS: dict[str, dict[str, Any]] = {
    "forloop": {"foreach": False},
    "foreach": {"foreach": True},
    "fused": {"fused": True},
}
NOTHING = Run()
PRECISIONS = {"bf16": torch.bfloat16, "fp16": torch.float16}


def trace(
    model: nn.Module | Callable[[], nn.Module],
    inputs: Any,
    run: Run = NOTHING,
    *,
    optimizer: Callable[[Iterable[nn.Parameter]], Optimizer] | None = torch.optim.AdamW,
    steps: int = 2,
    autocast: str | torch.dtype | None = None,
    loss: Callable[[Any], Tensor] | None = None,
    vocab: int | None = None,
    title: str = "",
    assume: str | None = None,
) -> Trace:
    """Run training steps of `model` on tensors without values; what the last one holds, and when.

    Example     trace(model, {"input_ids": ids, "labels": ids}).peak
    model       a module, on any device or on meta, which is copied and not changed; or a function
                that builds one, which is called on the meta device
    inputs      a tensor, a tuple of arguments or a dict of named ones, of which shapes count, and
                the values of whole numbers (lengths, masks); or a function of the module that
                returns the loss, or None if it ran backward too. Module and inputs are on the
                run's device; what a function makes is where it makes it
    optimizer   a function of the parameters, such as lambda p: SGD(p, momentum=0.9); None for none
    run         its backend (Run.cpu() is the run on this machine), the kernel of SDPA on CUDA,
                AdamW's loop, and torch.compile's backend (memlab.measure.compiled); a module and
                its inputs say all else themselves
    autocast    "bf16" or "fp16": the forward pass and the loss run under torch.autocast
    loss        a function of the model's output, if that is no loss and has no `.loss`
    vocab       width of the logits, to give them a row of their own; found for most language models
    assume      "routing=fullest,mask=half": what is taken where values decide that no tensor has
                (memlab.measure.fake_cuda.assumed); each such place is in the notes, with its line
    Leaves out  scratch memory inside kernels, the CUDA context, several devices; counters that
                optimizers leave on the host count too (4 bytes a tensor)
    Raises      CannotTrace, naming operation and line, for an operator that has no shapes without
                values; TypeError and ValueError for arguments that make no sense
    """
    _check(model, optimizer, run, steps)
    if run.compile and assume is not None:
        raise ValueError(f"assume={assume!r}: a compiled step is traced without assumptions")
    device = "cpu" if run.compile else run.backend  # a compiler's graphs are cut on the CPU
    precision = _precision(autocast)
    built = _built(model)
    mode = active_fake_mode()
    if mode is None:  # a compiler brings sizes of its own kind
        mode = FakeTensorMode(allow_non_fake_inputs=True) if run.compile else shapes_mode()
    assumed = noted(assume)
    tracker = CompiledTracker() if run.compile else _OneDevice(device)
    with explained(), Changes() as stack:
        begin(stack, device, tracker, run.kernel)
        stack.enter_context(mode)
        fakes = Fakes(mode, device)
        module = fakes.module(built)
        given = inputs if callable(inputs) else fakes.inputs(inputs)
        opt = None if optimizer is None else _made(optimizer, module, run)
        stack.enter_context(no_garbage(collect=run.compile is not None))
        graphs = None
        if run.compile is not None:
            stack.enter_context(grouped_products())
            graphs = stack.enter_context(compiled(module, run))
        else:
            _say(known(stack, mode, assumed), inputs, given)
        stack.enter_context(tracker)
        tracker.label(module)
        if opt is not None:
            tracker.label(opt)
        if not callable(inputs):
            _label_inputs(tracker, given)
        peaks, marks = [], dict.fromkeys(MOMENTS, -1)
        for _ in range(steps):
            tracker.reset_peak()
            start, tracker.turned = len(tracker.timeline), -1
            _forward_backward(module, given, loss, precision, device, tracker, marks)
            marks["after_backward"] = len(tracker.timeline) - 1
            if opt is not None:
                with tracker.phase("optimizer"), eager():
                    opt.step()
            with tracker.phase("zero_grad"):
                module.zero_grad(set_to_none=True)
            marks["between_steps"] = len(tracker.timeline) - 1
            peaks.append(tracker.peak)
            if graphs is not None:  # the compiler's own cycles hold tensors of the first step
                gc.collect()
        born = births(tracker)
        if graphs is not None:
            born |= wide_born_in_the_loss(tracker, born, vocab or width(head(module)))
        kept = rows(tracker, marks, born)
        name_logits(tracker, born, vocab or width(head(module)))
    name = title or titles.dotted(_name(model, module), run.backend)
    found = Trace(name, tracker, kept, start, marks, peaks[0])
    found.notes = tuple(assumed.told()) if graphs is None else graphs.notes()
    return found


class _OneDevice(StepTracker):
    """Counts what is on the device, and the counters that optimizers leave on the host."""

    def __init__(self, device: str) -> None:
        super().__init__(device)
        self.kernels |= losses()

    def device_counts(self, device: torch.device) -> bool:
        if device.type == "cuda" and self._device == HOST:
            raise RuntimeError("Torch not compiled with CUDA enabled")
        counter = self._phase == "optimizer" and device.type == "cpu"
        return counter or super().device_counts(device)


def _forward_backward(
    module: nn.Module,
    given: Any,
    loss: Callable[[Any], Tensor] | None,
    precision: torch.dtype | None,
    device: str,
    tracker: StepTracker,
    marks: dict[str, int],
) -> None:
    """One pass each way; nothing but gradients outlives it."""
    with ExitStack() as phase:
        phase.enter_context(tracker.phase("forward"))
        if precision is not None:  # one around another would keep the casts of the inner one
            phase.enter_context(torch.autocast(device, precision))
        output = head(module)
        if output is not None and not isinstance(
            tracker, CompiledTracker
        ):  # what comes from the output head on is the loss

            def begin(*_: Any) -> None:
                phase.enter_context(tracker.phase("loss"))

            phase.callback(output.register_forward_pre_hook(begin).remove)
        tracker.follow = callable(given)
        value = given(module) if callable(given) else _loss(_call(module, given), loss)
        tracker.follow = False
    marks["after_forward"] = len(tracker.timeline) - 1
    if value is None and callable(given) and tracker.turned >= 0:  # it has run backward as well
        marks["after_forward"] = tracker.turned
        return
    value = _scalar(value)
    with tracker.phase("backward"):
        value.backward()


def _call(module: nn.Module, given: Any) -> Any:
    if isinstance(given, dict):
        return module(**given)
    return module(*given) if isinstance(given, (list, tuple)) else module(given)


def _loss(output: Any, loss: Callable[[Any], Tensor] | None) -> Any:
    if loss is not None:
        return loss(output)
    found = output.get("loss") if isinstance(output, dict) else getattr(output, "loss", None)
    return output if found is None else found


def _scalar(value: Any) -> Tensor:
    if not isinstance(value, Tensor) or value.numel() != 1:
        what = f"a tensor of shape {tuple(value.shape)}" if isinstance(value, Tensor) else value
        kind = what if isinstance(what, str) else f"a {type(value).__name__}"
        raise TypeError(
            f"the step gave {kind} where a loss of one number is needed; "
            "give loss=, a function of the model's output"
        )
    if not value.requires_grad:
        raise ValueError("the loss needs no gradient: is every parameter frozen, or no_grad on?")
    return value


def _built(model: Any) -> nn.Module:
    if isinstance(model, nn.Module):
        return model
    with explained(), torch.device("meta"):
        made = model()
    if not isinstance(made, nn.Module):
        raise TypeError(f"model() returned a {type(made).__name__}; a torch.nn.Module is needed")
    return made


def _made(optimizer: Any, module: nn.Module, run: Run) -> Optimizer:
    flags = {} if run.optimizer_impl is None else LOOPS[run.optimizer_impl]
    opt = optimizer([p for p in module.parameters() if p.requires_grad], **flags)
    if not isinstance(opt, Optimizer):
        raise TypeError(f"optimizer(...) returned a {type(opt).__name__}; an Optimizer is needed")
    for group in opt.param_groups if run.compile and run.backend == "cuda" else ():
        # torch/optim/optimizer.py, _default_to_fused_or_foreach: on CUDA, not asked means foreach
        free = group.get("foreach", 0) is None and not group.get("fused")
        fixed = group.get("differentiable") or isinstance(group.get("lr"), Tensor)
        if free and not fixed:
            group["foreach"] = True
    return opt


def _say(values: Values, given: Any, fakes: Any, name: str = "") -> None:
    """Let whole numbers among the inputs keep their values, as far as they have some.

    A mask of padding that has none has padding.
    """
    if isinstance(given, Mapping):
        for key in given:
            _say(values, given[key], fakes[key], key)
    elif isinstance(given, (list, tuple)):
        for each, fake in zip(given, fakes, strict=True):
            _say(values, each, fake)
    elif isinstance(given, Tensor) and small(given):
        if type(given) is Tensor and not given.is_meta:
            with unset_fake_temporarily():
                values.say(fakes, given.detach().cpu().clone())  # a step may write there
        elif name == "attention_mask":
            with unset_fake_temporarily():
                mask = torch.ones(given.shape, dtype=given.dtype)
                mask.view(-1)[0] = 0
                values.say(fakes, mask)


def _label_inputs(tracker: Tracker, given: Any) -> None:
    if isinstance(given, Tensor):
        tracker.label(given, "inputs")
    elif isinstance(given, (dict, list, tuple)):
        for value in given.values() if isinstance(given, dict) else given:
            _label_inputs(tracker, value)


def _name(model: Any, module: nn.Module) -> str:
    config = getattr(module, "config", None)
    return getattr(config, "name_or_path", "") or type(module).__name__


def _precision(autocast: Any) -> torch.dtype | None:
    if autocast is None or autocast in PRECISIONS.values():
        return autocast
    if autocast not in PRECISIONS:
        raise ValueError(f"unknown autocast={autocast!r}; known: {', '.join(PRECISIONS)}, None")
    return PRECISIONS[autocast]


def _check(model: Any, optimizer: Any, run: Any, steps: int) -> None:
    if not isinstance(run, Run):
        raise TypeError(f"run={run!r} is a {type(run).__name__}; a memlab.Run is needed")
    for field, value in run.said().items():
        if field not in OURS:
            raise ValueError(
                f"{field}={value!r}: a module says that itself; of a run {', '.join(OURS)} count"
            )
    if run.optimizer_impl is not None and optimizer is not torch.optim.AdamW:
        raise ValueError(
            f"optimizer_impl={run.optimizer_impl!r} is AdamW's; the optimizer given says its own"
        )
    if not isinstance(model, nn.Module) and not callable(model):
        raise TypeError(
            f"model is a {type(model).__name__}; a torch.nn.Module or a function that builds one"
        )
    if isinstance(optimizer, Optimizer):
        kind = type(optimizer).__name__
        raise TypeError(
            f"optimizer is one {kind}, which belongs to real parameters; give a function of the "
            f"parameters, such as lambda params: {kind}(params, lr=1e-3)"
        )
    if optimizer is not None and not callable(optimizer):
        raise TypeError(f"optimizer is a {type(optimizer).__name__}; a function of the parameters")
    if whole("steps", steps) == 0:
        raise ValueError("steps=0; at least 1 is needed")
