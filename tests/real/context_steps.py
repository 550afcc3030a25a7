"""Training steps whose texts several ranks share, as torch's `context_parallel` runs them.

B batch · T tokens of a whole text · c ranks that share it · R = c times as many as see other data
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard
from torch.distributed.tensor.experimental import context_parallel
from torch.distributed.tensor.experimental._context_parallel import _attention as theirs

from memlab.base.gc_paused import no_garbage
from memlab.lab.optim import optimizer
from memlab.lab.sharded import gathered_weights
from memlab.lab.sharded_steps import shard
from memlab.lab.subject import subject
from memlab.lab.sync_collectives import settled_all_gather, settled_call
from memlab.lab.two_steps import Held, Marks, each, now, one_pass, told, update
from memlab.measure.step_tracker import StepTracker
from memlab.model import Model
from memlab.recipe import Recipe
from memlab.run import Run
from memlab.run.optimizer_loops import loop_of
from memlab.run.recipe_choice import recipe_for

FORWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
BACKWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default
c10d = torch.ops._c10d_functional
SEQUENCE = 2  # of [B, N, T, H]


@contextmanager
def ring_on_cpu() -> Iterator[None]:
    """torch's own ring around the CPU's flash kernel, which its table of kernels lacks.

    Without it SDPA on a CPU fails under `context_parallel`: "Operator
    aten._scaled_dot_product_flash_attention_for_cpu.default does not have a sharding strategy
    registered". The ring itself, its buffers and what it keeps are torch's, word for word.

    Source      torch 2.13, torch/distributed/tensor/experimental/_context_parallel/_attention.py:
                custom_ops, _templated_ring_attention, _templated_ring_attention_backward
    """
    flight = Flight()
    with (
        patch.dict(theirs.custom_ops, {FORWARD: _handled, BACKWARD: _handled}),
        patch.multiple(theirs.ft_c, all_gather_single=flight.gather, permute_tensor=flight.permute),
        patch.object(theirs, "_maybe_wait", flight.land),
    ):
        yield


class Flight:
    """torch's two collectives of the ring, over when they return; what was sent stays until asked.

    A collective that is on its way holds what it sends, which with gloo lasts as long as its thread
    pleases. Here it lasts until the result is waited for, as under NCCL.

    Source      torch 2.13, torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp: the shelf of tensors
                that a work keeps until `wait`; torch/distributed/_functional_collectives.py
    """

    def __init__(self) -> None:
        self.sent: dict[int, Tensor] = {}

    def gather(self, x: Tensor, gather_dim: int, group: Any) -> Tensor:
        size, name = dist.get_world_size(group), group.group_name
        return self._kept(x, lambda: c10d.all_gather_into_tensor(x, size, name))

    def permute(self, x: Tensor, src_dst: list[int], group: Any) -> Tensor:
        rank, size = dist.get_rank(group), dist.get_world_size(group)
        given = [x.numel() if src_dst[rank] == other else 0 for other in range(size)]
        taken = [x.numel() if src_dst[other] == rank else 0 for other in range(size)]
        name = group.group_name
        return self._kept(x, lambda: c10d.all_to_all_single(x, taken, given, name))

    def _kept(self, x: Tensor, call: Any) -> Tensor:
        made = settled_call(call, x)
        self.sent[id(made)] = x
        return made

    def land(self, made: Tensor) -> Tensor:
        self.sent.pop(id(made), None)
        return made


def _handled(op: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """What torch's `_sdpa_handler` does with a CUDA kernel's call."""
    mesh = next(a for a in arguments if isinstance(a, DTensor)).device_mesh
    given = [a.to_local() if isinstance(a, DTensor) else a for a in arguments]
    ring = _forward if op is FORWARD else _backward
    results = ring(mesh.get_group(), given, {"scale": named.get("scale")})
    given.clear()
    return tuple(DTensor.from_local(r, mesh, [Shard(SEQUENCE)], run_check=False) for r in results)


def _forward(group: Any, given: list[Any], scale: dict[str, Any]) -> Any:
    q, k, v, *rest = given
    causal = rest[1] if len(rest) > 1 else False
    return theirs._templated_ring_attention(
        group, SEQUENCE, FORWARD, query=q, key=k, value=v, is_causal=causal, dropout_p=0.0, **scale
    )


def _backward(group: Any, given: list[Any], scale: dict[str, Any]) -> Any:
    grad, q, k, v, out, lse, _, causal = given

    def kernel(query: Tensor, key: Tensor, value: Tensor, **more: Any) -> tuple[Tensor, ...]:
        first, last = (more["grad_out"], query, key, value), (more["out"], more["logsumexp"], 0.0)
        return BACKWARD(*first, *last, more["is_causal"], scale=more["scale"])  # type: ignore[no-any-return]

    what = {"grad_out": grad, "query": q, "key": k, "value": v, "out": out, "logsumexp": lse}
    return theirs._templated_ring_attention_backward(
        group, SEQUENCE, kernel, grad_out_name="grad_out", is_causal=causal, **what, **scale
    )


def unmasked(module: nn.Module) -> nn.Module:
    """Attention without the mask that transformers makes, as accelerate's hook has it.

    Source      accelerate 1.15, big_modeling.py: _attach_context_parallel_hooks
    """
    from accelerate.big_modeling import _attach_context_parallel_hooks

    _attach_context_parallel_hooks(module)
    return module


def batch_of(vocab: int, run: Run) -> list[Tensor]:
    """Ids, their positions, and labels that are shifted already, as Trainer makes them."""
    tokens = run.tokens or 0
    ids_BT = torch.randint(vocab, (run.batch, tokens))
    positions_BT = torch.arange(tokens).repeat(run.batch, 1)
    labels_BT = torch.nn.functional.pad(ids_BT, (0, 1), value=-100)[:, 1:].contiguous()
    return [ids_BT, positions_BT, labels_BT]


def steps(model: Model, recipe: Recipe | str, run: Run) -> Held:
    """On one of R real ranks: two steps; what the second held at its peak and at quiet moments.

    Runs        FSDP2 over all R ranks, and the ring over c of them, in its default: keys and values
                gathered at once, tokens dealt out from both ends of the text
    Shapes      the c ranks of a group read [B, T] together
    Unit        bytes of storages; gradients that meet are added in place, as autograd adds them
    Leaves out  scratch memory inside one operator, buffers of gloo
    Raises      ValueError for another number of ranks than the run has
    """
    devices = run.devices
    if dist.get_world_size() != devices.ranks:
        raise ValueError(f"{dist.get_world_size()} ranks are here; the run has {devices.ranks}")
    torch.manual_seed(0)
    recipe = recipe_for(model, recipe, run)
    sizes = (devices.data, devices.context)
    mesh = init_device_mesh("cpu", sizes, mesh_dim_names=("data", "context"))
    tracker = StepTracker()
    net: Any = shard(unmasked(subject(model, recipe, run)), model.layers, devices, tracker)
    named = dict(net.named_parameters())
    chosen = optimizer(recipe.optimizer, named, loop=loop_of(recipe, run))
    batch = batch_of(model.vocab, run)
    marks: Marks = {}

    def loss() -> Tensor:
        ids, positions, labels = batch
        told = {"position_ids": positions, "labels": labels, "shift_labels": labels}
        return net(ids, **told).loss  # type: ignore[no-any-return]

    def gathered() -> None:
        tracker.label(list(gathered_weights(net)), "gathered weights")

    shared = context_parallel(
        mesh["context"],
        buffers=batch,
        buffer_seq_dims=[1, 1, 1],
        no_restore_buffers=set(batch),
    )
    with ring_on_cpu(), shared, no_garbage(), settled_all_gather(tracker), tracker:
        tracker.label([net, chosen])
        tracker.label(batch, "inputs")
        for step in ("first", "second"):
            marks[step] = now(tracker)
            for number in range(1, run.micro_batches + 1):
                last = number == run.micro_batches
                net.set_requires_gradient_sync(last or devices.policy.gradient_sync != "last")
                one_pass(tracker, marks, loss, run, between=gathered)
            update(tracker, marks, chosen)
    return told(tracker, marks)


several = partial(each, steps)
