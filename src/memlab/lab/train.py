"""Train a small model on a real text by a recipe, and count what stayed in memory.

One step, in the order that the ledger sees: drop old gradients, forward and backward for each
micro-batch, optimizer. The last step's gradients are still there when the bytes are counted.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch._guards import active_fake_mode
from torch._subclasses.fake_tensor import FakeTensor
from torch.optim import Optimizer

from ..base import titles
from ..ledger import Ledger
from ..measure import Tracker, resident, storage_bytes
from ..model import Model
from ..recipe import Recipe
from ..units import whole
from . import text
from .models import TinyGPT, TinyLlama
from .optim import optimizer
from .precision import Copies

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


@dataclass(frozen=True, eq=False)
class Trained:
    """What a training run leaves behind.

    losses      one float a step; empty where tensors have no values (meta, fake)
    ledger      bytes right after the last optimizer step: column "measured", or "traced" where
                tensors have no values; the terms that `memlab.estimate` derives
    tracker     every storage of the whole run, in phases forward, backward and step; only those
                that are there before the first step, where nobody watched
    """

    losses: list[float]
    ledger: Ledger
    tracker: Tracker
    module: nn.Module
    optimizer: Optimizer


def train(
    model: Model,
    recipe: Recipe | str = "fp32",
    *,
    steps: int = 30,
    batch: int = 8,
    tokens: int = 64,
    micro_batches: int = 1,
    device: str | torch.device = "cpu",
    seed: int = 0,
    lr: float | None = None,
    watch: bool = True,
) -> Trained:
    """Train `model` on memlab.lab.text by `recipe` for `steps` optimizer steps.

    watch       False lets the tracker see no step: the same losses and the same ledger in a third
                of the time, because every operator passes through Python where it watches
    Shapes      each step reads [B, T] tokens, in so many micro-batches of B / that
    Leaves out  a learning-rate schedule, gradient clipping, evaluation; in the ledger, buffers
    Raises      ValueError for a recipe that torch cannot run as it stands, a batch that the
                micro-batches do not divide, more tokens than the model has positions
    """
    recipe = Recipe.named(recipe) if isinstance(recipe, str) else recipe
    _check(model, recipe, batch, tokens, micro_batches, torch.device(device))
    passages = text.batches(batch, tokens, steps=steps, seed=seed)
    module = build(model, recipe, device=device, seed=seed)
    copies = Copies(module, recipe)
    opt = optimizer(recipe.optimizer, copies.updated, lr=lr, states=recipe.states)

    losses: list[float] = []
    tracker = Tracker()
    # A tracker keeps torch.compile away, in optimizers of torchao: so it is without one.
    with one_thread(), tracker if watch else torch.compiler.set_stance("force_eager"):
        tracker.label(module)
        tracker.label(opt)
        tracker.label(copies.master, "master")
        tracker.label(copies.sums, "accumulator" if recipe.accumulator else "gradients")
        for ids_BT in passages:
            ids_BT = ids_BT.to(device)
            if watch:
                tracker.label(ids_BT, "inputs")
            copies.start_step()
            parts = ids_BT.chunk(micro_batches)
            means = []
            for part_BT in parts:
                copies.start_micro_batch()
                means.append(_forward_backward(module, part_BT, recipe, tracker, len(parts)))
            with tracker.phase("step"):
                copies.step(opt)
            if _has_values(means[0]):
                losses.append(sum(float(mean) for mean in means) / len(means))
    column = "measured" if _has_values(means[0]) else "traced"
    figures = _count(module, opt, copies, recipe)
    return Trained(
        losses, Ledger.of(column, figures, title=_title(model, recipe)), tracker, module, opt
    )


def build(
    model: Model, recipe: Recipe, *, device: str | torch.device = "cpu", seed: int = 0
) -> nn.Module:
    """The recipe's module: TinyGPT for the gpt2 family, TinyLlama else, in the format of weights.

    The first weights are drawn on the CPU, so they are the same on every device.
    """
    shaped = model if recipe.tie is None else model.replace(tied=recipe.tie)
    on = "meta" if torch.device(device).type == "meta" else "cpu"
    with torch.random.fork_rng(devices=[]), torch.device(on):
        torch.manual_seed(seed)
        module: nn.Module = TinyGPT(shaped) if shaped.family == "gpt2" else TinyLlama(shaped)
    if active_fake_mode() is None:
        return module.to(device, DTYPES[recipe.weights])
    return _replace_tensors(module, lambda tensor: tensor.to(device, DTYPES[recipe.weights]))


def _replace_tensors(module: nn.Module, change: Callable[[Tensor], Tensor]) -> nn.Module:
    """What `module.to` does, for fake tensors, which torch cannot swap; tied stay tied."""
    made: dict[Tensor, nn.Parameter] = {}
    for part in module.modules():
        for name, parameter in part.named_parameters(recurse=False, remove_duplicate=False):
            if parameter not in made:
                made[parameter] = nn.Parameter(change(parameter.detach()))
            setattr(part, name, made[parameter])
        for name, buffer in part.named_buffers(recurse=False):
            setattr(part, name, change(buffer))
    return module


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one CPU thread: sums in one order everywhere, and small models run no slower.

    Scratch memory inside CPU kernels grows with the number of threads, too.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _forward_backward(
    module: nn.Module, ids_BT: Tensor, recipe: Recipe, tracker: Tracker, parts: int
) -> Tensor:
    cast = DTYPES[recipe.autocast] if recipe.autocast else None
    with tracker.phase("forward"):
        if cast is None:
            loss = module(ids_BT, ids_BT)
        else:
            with torch.autocast(ids_BT.device.type, cast):
                loss = module(ids_BT, ids_BT)
    with tracker.phase("backward"):
        # The loss of a step is the mean over its micro-batches, and so is its gradient.
        (loss / parts).backward()
    return loss.detach()


def _count(module: nn.Module, opt: Optimizer, copies: Copies, recipe: Recipe) -> dict[str, int]:
    found = resident(module, opt)
    sums = storage_bytes(copies.sums)
    figures = {"weights": found["weights"]}
    if recipe.master:
        figures["master"] = storage_bytes(copies.master)
    # Without an accumulator of its own, the wide buffer is the gradient.
    figures["gradients"] = found["gradients"] + (0 if recipe.accumulator else sums)
    if recipe.accumulator:
        figures["accumulator"] = sums
    return figures | {"optimizer": found["optimizer"]}


def _title(model: Model, recipe: Recipe) -> str:
    return titles.dotted(model.name, recipe.name)


def _has_values(tensor: Tensor) -> bool:
    return not (tensor.is_meta or isinstance(tensor, FakeTensor))


def _check(
    model: Model, recipe: Recipe, batch: int, tokens: int, micro_batches: int, device: torch.device
) -> None:
    """Refuse, by name, what would not run or would not be what the recipe says."""
    for field in ("weights", "gradients", "autocast"):
        value = getattr(recipe, field)
        if value not in (None, *DTYPES):
            raise ValueError(f"{field}={value!r} cannot be trained here; known: fp32, bf16")
    for field in ("master", "accumulator"):
        value = getattr(recipe, field)
        if value not in (None, "fp32"):
            raise ValueError(f"{field}={value!r} cannot be trained here; known: fp32")
    if recipe.gradients not in (None, recipe.weights, recipe.master):
        raise ValueError(
            f"gradients={recipe.gradients!r} beside weights={recipe.weights!r} and "
            f"master={recipe.master!r}: an optimizer needs both of its tensors in one format"
        )
    if recipe.other not in (None, recipe.weights):
        raise ValueError(f"other={recipe.other!r} cannot be trained here; it follows the weights")
    if recipe.head not in (None, recipe.weights):
        raise ValueError(f"head={recipe.head!r} cannot be trained here; it follows the weights")
    muon8 = (recipe.optimizer, recipe.states) == ("muon", ("int8/128",))
    if not muon8 and any(state != recipe.updated for state in recipe.states or ()):
        raise ValueError(
            f"states={recipe.states} cannot be trained here: torch keeps them in the format that "
            f"the optimizer updates, {recipe.updated}"
        )
    if recipe.autocast and device.type == "meta":
        raise ValueError("autocast does not run on meta; use the cpu inside a FakeTensorMode")
    if whole("micro_batches", micro_batches) == 0:
        raise ValueError("micro_batches=0; a step has at least one micro-batch")
    if batch % micro_batches:
        raise ValueError(f"batch={batch} is not a multiple of micro_batches={micro_batches}")
    if tokens > model.positions:
        raise ValueError(f"tokens={tokens} is more than the {model.positions} of {model.name}")
    if model.vocab < text.VOCAB:
        raise ValueError(f"vocab={model.vocab} is too small: the text has bytes, {text.VOCAB}")
