"""Run what memlab.lab.shard cuts up: two real ranks, or one fake rank of many, every byte counted.

B batch · T tokens · D model width · V vocabulary · L layers · R ranks
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor.parallel import loss_parallel

from ..base import titles
from ..base.message import Message
from ..estimate import estimate
from ..ledger import Ledger
from ..measure import Saved, Tracker, resident, storage_bytes
from ..model import Model
from ..recipe import Recipe
from ..run import Run
from ..sharding import Sharding
from ..terms import logits
from ..terms.optimizer import numel
from ..terms.sharding import gathered, row_shard
from . import shard, text
from .models import TinyLlama
from .ranks import fake_ranks

STEPS, BATCH, TOKENS = 2, 8, 64


def adamw(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, lr=1e-3, foreach=False)


def train(model: Model, stage: int) -> tuple[Ledger, list[float]]:
    """On one of R real ranks: two steps at a ZeRO stage; what stays on it, and the mean losses.

    Shapes      a batch of 8 · 64 tokens, of which each rank reads 8 / R sequences
    """
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)  # every rank begins with the same weights
    net = TinyLlama(model)
    run: Any
    if stage == 3:
        run = opt = adamw(shard.fsdp(net).parameters())
    else:
        run = shard.DataParallel(net, adamw, stage=stage)
        opt = run.optimizer
    losses = []
    for ids_BT in text.batches(BATCH, TOKENS, steps=STEPS):
        run.zero_grad()
        mine_BT = ids_BT.chunk(ranks)[rank]
        loss = net(mine_BT, mine_BT)
        loss.backward()
        run.step()
        mean = loss.detach() / ranks
        dist.all_reduce(mean)
        losses.append(float(mean))
    held = resident(net, opt)
    parts = [*net.parameters(), *getattr(run, "mine", [])]
    held["gradients"] = storage_bytes([p.grad for p in parts if p.grad is not None])
    return _ledger("measured", held), losses


def train_stages(model: Model, stages: tuple[int, ...]) -> dict[int, tuple[Ledger, list[float]]]:
    """`train` for several stages, so that processes start only once."""
    return {stage: train(model, stage) for stage in stages}


def trace_fsdp(model: Model, ranks: int, tokens: int) -> tuple[Ledger, Ledger]:
    """On fake rank 0 of R: what stays, and what the peak of a step holds.

    Runs        FSDP2, fp32 weights computed with in bf16, each layer checkpointed, one sequence
    Shapes      the second step: the optimizer's states exist
    """
    with fake_ranks(ranks) as (mesh, _):
        net = TinyLlama(model, checkpoint=True)
        opt = adamw(shard.fsdp(net, mesh, narrow=True).parameters())
        ids_BT = torch.zeros(1, tokens, dtype=torch.long)
        with Tracker() as tracker:
            tracker.label([net, opt])
            tracker.label(ids_BT, "inputs")
            for step in (1, 2):
                tracker.reset_peak()
                with tracker.phase("forward"):
                    loss = net(ids_BT, ids_BT)
                if step == 1:  # these buffers are emptied and filled again, but never replaced
                    tracker.label(list(gathered_weights(net)), "gathered weights")
                with tracker.phase("backward"):
                    loss.backward()
                del loss
                held = resident(net, opt)
                with tracker.phase("optimizer"):
                    opt.step()
                opt.zero_grad()
    event = tracker.peak_event
    assert event is not None
    found = {term: size for term, size in tracker.contents(event.index).items() if size}
    what = Message(titles.RANK_0, ranks=f"{ranks:,}")
    title = titles.in_moment(what, event.phase, event.op)
    return _ledger("traced", held), Ledger.of("traced", found, title=title)


def gathered_weights(net: nn.Module) -> Iterator[Tensor]:
    """The buffers into which FSDP2 gathers whole weights; they have no public name."""
    for module in net.modules():
        if isinstance(module, FSDPModule):
            group: Any = module._get_fsdp_state()._fsdp_param_group
            if group is None:
                continue
            for parameter in group.fsdp_params:
                yield from parameter.all_gather_outputs


def _ledger(column: str, held: dict[str, int]) -> Ledger:
    terms = ("weights", "gradients", "optimizer")
    return Ledger.of(column, {term: held[term] for term in terms})


def moments(model: Model, ranks: int, tokens: int) -> dict[str, dict[str, int]]:
    """The same peak, derived: what rank 0 holds in the loss, and when the last gradients go round.

    Formula     loss: W + S + gathered tables + one layer's gather buffer + logits + what the
                layers' checkpoints and the last norm keep;
                tables: W + S + the layers' gradients + those of embedding and head, whole in bf16
                and once more in fp32, padded, to be reduced
    Unit        bytes by term
    Leaves out  every other moment: one layer's backward (smaller as long as the tables are large)
                and the optimizer's (smaller for many ranks)
    Raises      ValueError for more tokens than the model has positions
    """
    if tokens > model.positions:
        raise ValueError(f"tokens={tokens} is more than the {model.positions} of {model.name}")
    B, D, V = 1, model.d_model, model.vocab
    recipe, run = Recipe(), Run(devices=Sharding(data=ranks, zero=3))
    held = {row.term: row.derived or 0 for row in estimate(model, recipe, run).rows}
    layer = [t for t in model.tensors() if t.name.startswith("layers.")]
    tables = [t for t in model.tensors() if not t.name.startswith("layers.")]

    def padded(tensors: list[Any]) -> int:
        return sum(gathered(t.shape, ranks=ranks) for t in tensors)

    rotary = 2 * 4 * model.positions * model.head_dim
    always = {"weights": held["weights"], "optimizer": held["optimizer"], "buffers": rotary}
    always["inputs"] = 8 * B * tokens
    loss = dict(always)
    loss["gathered weights"] = 2 * (padded(tables) + padded(layer))
    # Each layer's input in bf16; the last norm's input and result in fp32, and its output in bf16.
    loss["activations"] = (2 * model.layers + 4 + 4 + 2) * B * tokens * D + 4 * B * tokens
    loss["logits"] = logits.peak(B * tokens, vocab=V, format="bf16") + logits.scalars("bf16")
    ends = dict(always)
    part = sum(numel(row_shard(t.shape, ranks=ranks)) * t.copies for t in layer)
    ends["gradients"] = 4 * part
    ends["other"] = logits.scalars("bf16")
    ends["gradients of the tables"] = 2 * sum(t.count for t in tables) + 4 * padded(tables)
    return {"loss": loss, "tables": ends}


def saved_by_layer(
    model: Model, cut: Callable[..., nn.Module], ranks: int, batch: int, tokens: int
) -> int:
    """Bytes that one layer keeps for backward on fake rank 0, in fp32.

    Runs        models of one and of two layers, whose difference is a layer
    """
    found = []
    for layers in (1, 2):
        with fake_ranks(1, ranks) as (_, mesh):
            net = cut(TinyLlama(model.replace(layers=layers)), mesh)
            ids_BT = torch.zeros(batch, tokens, dtype=torch.long)
            with loss_parallel(), Saved(exclude=net) as kept:
                net(ids_BT, ids_BT)
            found.append(kept.bytes)
    return found[1] - found[0]


def trace_tensor_parallel(model: Model, ranks: int, tokens: int = 64) -> Ledger:
    """On fake rank 0 of R that divide matrices: weights, and gradients after backward, in fp32."""
    with fake_ranks(1, ranks) as (_, mesh):
        net = shard.tensor_parallel(TinyLlama(model), mesh)
        ids_BT = torch.zeros(1, tokens, dtype=torch.long)
        with loss_parallel():
            net(ids_BT, ids_BT).backward()
        return _ledger("traced", resident(net))
