"""Trace the step, or the call, that a model, a recipe and a run describe: as `estimate` is asked.

The module is built by its real code, in transformers or in memlab.lab, and runs on tensors without
values.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import torch

from ..base import titles
from ..base.message import Message
from ..families import RECORDED
from ..measure.trace import trace
from ..measure.traced import Trace
from ..measure.untraceable import CannotTrace
from ..model import Model
from ..recipe import Recipe
from ..run import Run
from ..run.adapters import shown
from ..run.fields import named
from ..run.optimizer_loops import loop_of, step_name
from ..run.recipe_choice import recipe_for, tied_as
from ..step import supported
from ..units import text
from .causal import GROUPED, Causal
from .optim import optimizer
from .subject import loss_of, settings_of, subject, trl_head
from .trace_call import trace_call

ROUTING = " routing   "  # in a note of what was assumed
EVEN = (
    "routing: experts run one after the other, and the routing is assumed even, as many rows for "
    "each; with every token at the same experts the peak is {size}"
)
# What a traced step is told here; of the other fields only their defaults can be traced.
TRACED = named(traced=True)


def trace_run(
    model: Model | Causal, recipe: Recipe | str | None, run: Run, *, title: str = ""
) -> Trace:
    """Run the step of a model on tensors without values, in the code that the run names.

    model       one that memlab describes, or any that transformers builds: memlab.lab.causal
    Unit        bytes, as `memlab.measure.trace`
    Assumes     an even routing where the code of a mixture loops over its experts, and says so,
                with the peak of the fullest one
    Raises      ValueError for a field of the run that cannot be traced, with its value; what
                `memlab.measure.trace` and memlab.lab.subject raise
    """
    if (
        isinstance(model, Model) and model.family in RECORDED
    ):  # its own code is asked, as any type's
        model = Causal(settings_of(model))
    even = _traced(model, recipe, run, title)
    if isinstance(even, Trace) and _routed(even):
        fullest = _traced(model, recipe, run, title, "routing=fullest")
        if fullest.peak != even.peak:
            note = Message(EVEN, size=text(fullest.peak))
            even.notes = (*(n for n in even.notes if ROUTING not in n), note)
    return even


def _routed(step: Trace) -> bool:
    """Whether which experts a router chose was assumed, and can matter."""
    return GROUPED not in step.notes and any(ROUTING in note for note in step.notes)


def _traced(
    model: Model | Causal,
    recipe: Recipe | str | None,
    run: Run,
    title: str,
    assume: str | None = None,
) -> Trace:
    if run.phase != "train":
        return trace_call(model, recipe, run, title=title)
    for field, value in run.said().items():
        if field not in TRACED:
            raise ValueError(f"{field}={shown(value)} cannot be traced; estimate() may describe it")
    if run.texts == "packed" or (run.texts == "padded" and run.implementation == "memlab"):
        raise ValueError(f"texts={run.texts!r} cannot be traced; estimate() may describe it")
    if run.texts == "padded" and run.loss != "plain":
        raise ValueError(
            f"texts='padded' with loss={run.loss!r} cannot be traced; estimate() may describe it"
        )
    if (run.library_loss or run.loss == "fused_head") and run.backend == "cuda":
        raise ValueError(
            f"loss={run.loss!r} cannot be traced for backend='cuda': the library takes another way "
            "on a GPU than on this machine; estimate() describes it, and backend='cpu' is traced"
        )
    if run.tokens is None:
        raise ValueError("tokens is missing: how many are in each sequence?")
    chosen = recipe_for(model, recipe, run)
    supported.dtype_of(chosen)
    if chosen.master or step_name(chosen) == "wide_adamw":
        raise ValueError(
            f"recipe {chosen.name!r}: a step with wider copies or states beside the weights cannot "
            "be traced; estimate() describes it"
        )
    shaped = _shaped(model, chosen)
    if shaped.positions is not None and run.tokens > shaped.positions:
        raise ValueError(
            f"tokens={run.tokens:,} is more than the {shaped.positions:,} positions of "
            f"{shaped.name}"
        )
    if run.loss == "fused_head":
        trl_head()  # tensors of a module that is imported among fake ones would be fake for ever
    if chosen.optimizer == "hf_adafactor":  # bitsandbytes, which it imports, would look for CUDA
        import_module("transformers.optimization")
    ids = torch.empty(run.batch, run.tokens, dtype=torch.long, device="meta")
    given: Any = (ids, ids)
    if run.implementation == "transformers":
        given = {"input_ids": ids, "labels": ids}
    if run.texts == "padded" and not isinstance(given, tuple):
        given = {"input_ids": ids}
        given |= {name: torch.empty_like(ids) for name in ("labels", "attention_mask")}
    made: list[torch.Tensor] = []
    own = run.loss == "cross_entropy"

    def called(module: torch.nn.Module) -> torch.Tensor:
        if not made:  # among the fake tensors of the trace, once for all of its steps
            on = next(module.parameters()).device
            made.extend(torch.zeros(ids.shape, dtype=torch.long, device=on) for _ in range(1 + own))
        return loss_of(module, made[0], run, made[-1])

    # memlab's own models are built with their chunks; transformers' give the plain loss alone.
    body = own or (run.loss != "plain" and run.implementation == "transformers")
    how = Run(backend=run.backend, kernel=_kernel(run), compile=run.compile)
    with torch.device("meta"):
        module = subject(shaped, chosen, run)
    names = [name for name, parameter in module.named_parameters() if parameter.requires_grad]
    loop = loop_of(chosen, run)
    if loop == "compiled":
        raise ValueError(
            f"recipe {chosen.name!r}: no compiled step can be traced; optimizer_impl='forloop' "
            "can, and estimate() describes both"
        )

    def stepped(parameters: Iterable[torch.nn.Parameter]) -> torch.optim.Optimizer:
        named = dict(zip(names, parameters, strict=True))
        return optimizer(chosen.optimizer, named, states=chosen.states, loop=loop)

    size = Message(titles.SIZES, batch=run.batch, tokens=run.tokens)
    said = titles.joined(size, titles.whose(run.implementation, run.backend))
    if run.compile:
        said = titles.joined(said, Message(titles.COMPILED, compiler=run.compile))
    words = title or titles.dotted(shaped.name, chosen.name, said)
    with _its_own(shaped):
        step = trace(
            module,
            called if body else given,
            how,
            optimizer=stepped,
            autocast=chosen.autocast,
            title=words,
            assume=assume,
        )
    if isinstance(shaped, Causal):
        step.parameters = sum(parameter.numel() for parameter in module.parameters())
        step.notes = (*step.notes, *shaped.notes(module))
        if GROUPED in step.notes:  # one product of all experts' rows, wherever each row goes
            step.notes = tuple(note for note in step.notes if ROUTING not in note)
    else:
        step.parameters = shaped.parameter_count
    return step


@contextmanager
def _its_own(model: Model | Causal) -> Iterator[None]:
    """What the code of a model that nobody described raises on tokens alone, in one line."""
    try:
        yield
    except CannotTrace:
        raise
    except Exception as error:
        if not isinstance(model, Causal):
            raise
        words = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(
            f"the code of this {model.family} fails without values, on input_ids and labels alone: "
            f"{words[:300]} (memlab trace FILE.py:FUNCTION takes inputs of your own)"
        ) from error


def _shaped(model: Model | Causal, recipe: Recipe) -> Model | Causal:
    if not isinstance(model, Causal):
        return tied_as(model, recipe)
    if recipe.tie is not None:
        raise ValueError(f"recipe {recipe.name!r} ties the output head; here the config says that")
    return model


def _kernel(run: Run) -> str:
    """Flash attention by either name: "flash" refuses a call that another kernel would take."""
    return "flash" if run.attention == "flash" and run.kernel == "auto" else run.kernel
