"""Simulate two training steps of a model: what is held at each moment, the peak, its contents.

Long, because the order of a whole step stands in one place.
"""

from __future__ import annotations

from functools import partial

from ..base.frozen import replace
from ..base.gc_paused import no_garbage
from ..model import Model
from ..model.tensors import COMPONENTS
from ..recipe import Recipe
from ..run import Run
from ..run.argument_types import check_types
from ..run.loop_rules import keeps_output
from ..run.optimizer_loops import loop_of, step_name
from ..run.recipe_choice import recipe_for, tied_as
from ..sharding.tensor_parallel import one_rank
from ..terms.optimizer import shared_state
from . import keys, supported
from .adapters import lora
from .adapters.prompt import prompted_tokens
from .core.graph import Parameter, Tensor
from .core.operators import operators
from .core.peak import top_of
from .core.report import told
from .core.result import TERMS as TERMS
from .core.result import Peak as Peak
from .core.result import Step as Step
from .core.result import term as term
from .core.saved_on_host import Offloaded
from .core.saved_table import SavedTable
from .core.setting import Setting
from .core.storage_log import Log
from .core.weight_check import check_built
from .kv_cache import keeps_keys
from .loops.inputs import inputs
from .loops.programs import Program, wanted
from .ops import Ops
from .optimizers import copies, optimizer
from .optimizers.adamw import elsewhere
from .optimizers.clip import clipped
from .optimizers.each import in_order, taken, trained
from .parallel.host import on_device, uses_hosts
from .parallel.host import on_host as of_host
from .parallel.supported import check_divided
from .windows import first_apart, windows

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any


def simulate(
    model: Model,
    recipe: Recipe | str | None,
    run: Run,
    *,
    in_place: bool = True,
    every_layer: bool = False,
    rank: int | None = None,
    short: bool = False,
) -> Step:
    """What a training step of this model holds, to the byte, without running it.

    The step    loss = model(ids, labels=ids).loss; backward; the loss dropped; AdamW.step();
                zero_grad(set_to_none=True); twice, in training mode, without a cache: the config's
                use_cache is taken for false, as transformers' Trainer sets it, but by a loop that
                keeps outputs, which has what the config says, true by itself
    recipe      fp32, bf16 or fp16 (weights, gradients and states), or fp32 under autocast to bf16
                or fp16; bf16 or fp16 with an fp32 master; an optimizer of memlab.step.optimizers;
                None: what the model's config says, else fp32, with AdamW
    run         how the step is executed: memlab.Run; of a pipeline the rank that holds most, and
                memlab.step.parallel.pipeline.step has them all
    in_place    see memlab.step.core.engine.Engine
    every_layer simulate each layer and micro-batch by itself, which takes longer and is what
                `Step.replay` needs; otherwise from the second one on micro-batches are alike
    rank        of DeepSpeed's alone: whose step it is, the fullest one's unless it is said
    short       the first step has one micro-batch alone, which takes less time; the second
                one, before which there are states either way, is the same, and first_step_bytes
                of the peak are those of a step that nobody runs
    Unit        bytes of storages, as memlab.measure.Tracker counts them
    Source      memlab.step.networks, each line from the code that it describes
    Leaves out  scratch memory inside one kernel; numbers that autograd wraps (8 bytes each); the
                gradient scaler that fp16 needs to train well
    Raises      ValueError for a combination that is not described, which it names
    """
    check_types(model, run)
    keys.check_rows(model, run.devices.policy.param_dtype or recipe_for(model, recipe, run).weights)
    # Nothing that is made here is garbage yet, and to look for it takes as long as the step itself.
    with no_garbage(collect=False):
        if run.devices.pipelined:
            from .parallel.pipeline.step import fullest, step_of_stage  # only a pipeline needs it

            stage = fullest(model, recipe, run)
            return step_of_stage(model, recipe, run, stage, every_layer=every_layer)
        how: dict[str, Any] = {"in_place": in_place, "every_layer": every_layer, "short": short}
        if rank is None and run.devices.deepspeed and run.devices.zero < 3:
            return _fullest(model, recipe, run, how)
        return _apart(_played(model, recipe, run, rank=rank or 0, **how), run)


def _apart(played: tuple[Ops, Setting, int], run: Run) -> Step:
    """The step on its device, and beside it what its host has."""
    if not uses_hosts(run.devices):
        return _told(*played)
    log = played[0].log
    played[0].log = on_device(log)
    host = of_host(log, run.devices, run.backend)
    return replace(_told(*played), host=host)


def _fullest(model: Model, recipe: Recipe | str | None, run: Run, how: dict[str, Any]) -> Step:
    """The step of the rank of DeepSpeed that holds most."""
    last = run.devices.data - 1
    played = _played(model, recipe, run, rank=last, **how)
    engine: Any = played[0]
    most = max(range(last + 1), key=engine.touched)
    others = [_played(model, recipe, run, rank=rank, **how) for rank in {0, most} - {last}]
    hosts = uses_hosts(run.devices)

    def top(one: tuple[Ops, Setting, int]) -> int:
        return top_of(on_device(one[0].log) if hosts else one[0].log)

    return _apart(max([played, *others], key=top), run)


def log_of(
    model: Model, recipe: Recipe | str | None, run: Run, *, steps: tuple[str, ...] = ("second",)
) -> Log:
    """Every allocation and free of one step, every layer simulated: the second one of `simulate`.

    steps       "first" too, for loops that keep outputs from one step to the next
    Leaves out  the first one otherwise, after which a step of no such loop differs by nothing but
                states, and a trainer's last loss and norm: they are made here; whether torch would
                multiply experts of these widths: tools/peaks.py takes primes
    """
    log = _played(model, recipe, run, every_layer=True, steps=steps)[0].log
    return on_device(log) if uses_hosts(run.devices) else log


def _played(
    model: Model,
    recipe: Recipe | str | None,
    run: Run,
    *,
    in_place: bool = True,
    every_layer: bool = False,
    rank: int = 0,
    steps: tuple[str, ...] = ("first", "second"),
    short: bool = False,
) -> tuple[Ops, Setting, int]:
    """These steps, and the number of the last micro-batch that was simulated in each."""
    if run.phase != "train":
        raise ValueError(f"phase={run.phase!r}: memlab.step.calls simulates a call")
    chosen = recipe_for(model, recipe, run)
    if run.loop == "distillation":  # its bodies are called past accelerate's autocast
        chosen = chosen.replace(autocast=None)
    shaped = tied_as(model, chosen)
    dtype = supported.dtype_of(chosen)
    supported.check_copies(chosen, run)
    attention = supported.attention_of(shaped, chosen, run)
    dropouts = supported.dropouts_of(shaped, run)
    supported.check_shape(shaped, run)
    if run.devices.tensor_parallel:
        check_divided(shaped, chosen, run)
    supported.check_frozen(run.frozen, shaped)
    supported.check_away(chosen, run)
    supported.check_recorded(shaped, run)
    supported.check_texts(shaped, run)
    theirs = run.implementation == "transformers"
    if theirs:
        keys.check(shaped.family, shaped.config)
        supported.check_config(shaped, run)
    elif run.window is not None:
        raise ValueError(f"window={run.window}: memlab's models have no sliding window")
    near, sliding = windows(shaped, run.window) if theirs else (None, None)
    f, computed = operators(shaped, chosen, dtype, run, in_place=in_place, rank=rank)
    zero: Any = f if f.deepspeed else None
    f.frozen, f.program = run.frozen, run.loop
    if run.lora is not None:
        lora.check(run.lora, shaped, run, dtype)
        f.frozen = (*COMPONENTS, "other")
        f.peft, f.lora_dropout, f.doubled = theirs, run.lora.dropout, run.lora.saved
    if run.adapter is not None:
        lora.check_other(run.adapter, shaped, run, dtype)
        f.frozen = (*COMPONENTS, "other")
        f.lora_dropout = getattr(run.adapter, "dropout", 0.0)
    keys_kept = keeps_keys(run, shaped.config)  # which layers with a window have a number beside
    first = first_apart(shaped, None if keys_kept else run.tokens) if theirs else 0
    f.show(shaped.layers, None if every_layer or zero else first)  # no two fill a bucket alike
    if zero is None:
        copies.put_beside(f, chosen)
    here = one_rank(shaped, run.devices.tensor) if run.devices.tensor_parallel else shaped
    setting = Setting(
        here,
        computed,
        run.sequences,
        run.length // run.devices.context + prompted_tokens(run),
        attention,
        extra=shaped.config,
        window=near,
        checkpoint=run.checkpointing == "block",
        loss_chunks=run.chunks,
        library_loss=run.library_loss,
        own_loss=run.loss == "cross_entropy",
        fused_head=wanted(run),
        completion=run.length - run.batch if run.texts == "packed" else run.completion,
        texts="packed" if run.devices.context > 1 else run.texts,  # positions jump there too
        looked_for=0 if run.loop == "sft" else run.batch,
        shared=run.devices.context > 1,
        past=0 if keys_kept else None,
        keeps_output=keeps_output(run),
        counted=run.loop == "trainer",
        lora=run.lora,
        adapter=run.adapter,
        peft=theirs,
        adapter_dtype=_adapters_in(f, run, dtype),
        sliding=sliding,
        **dropouts,
    )
    update = optimizer(step_name(chosen))
    if chosen.master and zero is None:
        update = copies.over(update)
    loop = loop_of(chosen, run)
    if run.step_in_backward:
        f.updates = partial(_step_one, f, update, loop)
    f.offloaded = Offloaded(f.log) if "saved" in run.offload else None
    tables = shared_state(chosen.optimizer)
    shared = [f.new("shared state", (tables,), "uint8", "optimizer")] if tables else []
    program = Program(f, setting, chosen, run)
    weights = f.log.contents(len(f.log.events), term)["weights"]
    check_built(shaped, weights, dtype, run)
    program.add_reference()
    if "states" in run.offload:
        update = elsewhere
    if "optimizer" in run.offload:
        from .optimizers.on_host import on_host

        update = on_host
    if "gradients" in run.offload:
        from .optimizers.on_host import let_go

        f.updates = let_go
    each = trained(f, shaped.layers)
    step: Any = taken if run.step_in_backward else partial(update, f, each, loop)
    if zero is not None:
        zero.share()
        step = zero.stepping(update, loop)
    buckets: list[Tensor] = []
    if run.devices.replicated:
        from .parallel import ddp

        buckets = ddp.buckets(f, each)
    clip: Any = partial(clipped, f, each) if run.clips and zero is None else None
    if f.sharded and run.devices.policy.cpu_offload:
        there: Any = f
        step = there.there(step)
        clip = there.there(clip) if clip else None
    passes = list(range(1, run.micro_batches + 1))
    if not every_layer:  # the first, one that stands for those between, and the last if it is apart
        apart = zero is not None or run.devices.policy.gradient_sync != "every"
        passes = passes[:2] + passes[2:][-1:] * apart
    program.beside = inputs(f, setting, run)
    every = {name: passes[:1] if short and name == "first" else passes for name in steps}
    _run(f, program, setting, (clip, step), every)
    program.beside.clear()
    del shared, buckets
    f.let_go()
    return f, setting, passes[-1]


def _adapters_in(f: Ops, run: Run, dtype: str) -> str | None:
    """The format of the adapters; None where there are none."""
    if f.sharded:
        sharded: Any = f
        return sharded.adapters_in  # type: ignore[no-any-return]
    return None if run.adapters is None else run.adapters_in(dtype)


def _step_one(f: Ops, update: Any, loop: str, parameter: Parameter) -> None:
    """The optimizer of one parameter steps as soon as its gradient is complete, and drops it.

    Source      memlab.lab.fused_backward
    """
    update(f, lambda: iter([parameter]), loop)
    parameter.grad = None


def _run(
    f: Ops,
    program: Program,
    setting: Setting,
    after: Any,
    every: dict[str, list[int]],
) -> None:
    """The steps, by name the numbers of the micro-batches that are simulated."""
    log, layers = f.log, setting.model.layers
    clip, update = after
    batch = program.batch()
    output: tuple[Tensor, ...] = ()
    last: Tensor | None = None  # a loss whose value is still wanted
    if program.divides_again and "first" not in every:  # that of the step before
        last = f.new("loss", (), "fp32")
    first = next(p for p in f.parameters if p.node is not None)  # adapters may be wider
    dtype = setting.dtype if "first" in every else first.dtype
    zero = f.deepspeed  # whose engine clips and keeps the norm
    norm = f.new("norm", (), dtype) if program.keeps_norm and not zero else None
    if norm is not None and program.run.devices.policy.cpu_offload:
        norm.record.on_host = True
    late: list[Tensor | None] = []
    for step, passes in every.items():
        for number in passes:
            which, f.last_pass = _which(number), number == passes[-1]
            log.mark(f"{step}.forward{which}")
            f.part, f.saves = "", []
            copies.start_micro_batch(f, layers)
            graph = f.kept_graph()
            loss = f.root(program.loss, batch)
            output = f.output  # only now is the last one let go
            f.drop_graph(graph)
            program.keep_keys()
            if program.holds_output:
                output = (*output, loss)
            f.output = ()
            whole = f.detach(loss) if program.divides_again else None
            if (program.run.micro_batches > 1 or program.divides) and not zero:
                loss = f.scale(loss, "div")
            f.end_autocast()
            if program.prefetches:
                batch, last = program.batch(), None
            log.marks[f"{step}.loss{which}"] = log.marks.pop("loss")
            log.mark(f"{step}.backward{which}")
            asked = [loss] if zero else []
            if zero:  # engine.backward divides it by the micro-batches, and scales it by 1
                if not program.divides_again:  # scale_wrt_gas=False
                    asked.append(f.scale(loss, "div"))
                loss = f.scale(asked[-1])
            f.backward(loss)
            f.after_backward()
            # accelerate's backward steps DeepSpeed's engine before it returns the new loss.
            late = [last] if zero and f.last_pass else []
            last = f.detach(loss) if program.prefetches else whole
            del loss, whole, asked
            if not program.holds_output:
                f.drop_graph()
        log.mark(f"{step}.optimizer")
        if clip is not None:
            norm = None
            norm = clip()
            if not program.keeps_norm:
                norm = None
        update()
        late.clear()
        log.mark(f"{step}.zero_grad")
        for parameter in in_order(f, layers):
            parameter.grad = None
        if program.run.eval_batch is not None and step == "second":
            log.mark(f"{step}.evaluation")
            from .loops.evaluation import evaluate

            evaluate(f, setting, program.policy, program.run)
        log.mark(f"{step}.end")
    del output, last, norm
    log.closed = True  # what goes from here on is not the step's


def _told(f: Ops, setting: Setting, last: int) -> Step:
    saved = SavedTable.of_layer(f.saves, setting.model.layers)
    return told(f.log, f"second.backward{_which(last)}", saved)


def _which(micro_batch: int) -> str:
    """What the names of a micro-batch's moments end in: nothing for the first."""
    return f".{micro_batch}" if micro_batch > 1 else ""
