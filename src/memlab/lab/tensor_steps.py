"""Training steps on real ranks that divide each matrix, every byte of one rank counted.

B batch · T tokens · D width · V vocabulary · R ranks
"""

from contextlib import nullcontext
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)
from torch.distributed.tensor.parallel.style import ParallelStyle
from torch.distributed.tensor.placement_types import Replicate, Shard
from torch.utils._python_dispatch import TorchDispatchMode

from ..base.gc_paused import no_garbage
from ..measure.step_tracker import StepTracker
from ..measure.tracker import Tracker
from ..model import Model
from ..recipe import Recipe
from ..run import Run
from ..run.optimizer_loops import loop_of
from ..run.recipe_choice import recipe_for
from ..sharding import Sharding
from .expert_steps import route
from .optim import optimizer
from .subject import loss_of, subject
from .sync_collectives import settled_all_reduce, settled_call
from .two_steps import Held, Marks, each, now, one_pass, told, update

Plan = dict[str, ParallelStyle]
WHOLE, TOKENS = Replicate(), Shard(1)
COLLECTIVES = tuple(
    getattr(torch.ops._c10d_functional, name).default
    for name in ("all_reduce", "all_gather_into_tensor", "reduce_scatter_tensor")
)


class DividedTracker(StepTracker):
    """Knows which sums are autograd's own, and waits until gloo lets go of a collective's tensors.

    In place    a sum that an operator of DTensor makes for itself is not one of autograd's, and
                autograd never adds to a DTensor's gradient in place
    gloo        its own thread lets go of tensors a moment after a collective is over, so without
                this some bytes would be counted for a moment longer, or would not, from run to run
    Source      can_accumulate_inplace in torch/csrc/autograd/input_buffer.cpp: no tensor subclass
    """

    depth = 0  # operators of tensor subclasses that are running, one inside the other
    entered = False  # whether the next call is the one that was just looked at

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if any(hasattr(kind, "__tensor_flatten__") for kind in types):
            return self._of_a_subclass(func, args, kwargs or {})
        if func in COLLECTIVES:
            return self._settled(func, types, args, kwargs)
        if self.depth:
            return Tracker.__torch_dispatch__(self, func, types, args, kwargs)
        return super().__torch_dispatch__(func, types, args, kwargs)

    def _of_a_subclass(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Let the subclass run it, with this mode on for what it does inside."""
        if self.entered:
            self.entered = False
            return NotImplemented
        self.depth, self.entered = self.depth + 1, True
        TorchDispatchMode.__enter__(self)
        try:
            return func(*args, **kwargs)
        finally:
            TorchDispatchMode.__exit__(self, None, None, None)
            self.depth, self.entered = self.depth - 1, False

    def _settled(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """A collective that is over, with nobody but its caller holding what it read and made."""
        return settled_call(
            lambda: Tracker.__torch_dispatch__(self, func, types, args, kwargs), args[0]
        )


def layer_plan(model: Model, devices: Sharding) -> Plan:
    """What `parallelize_module` is told of each layer of a llama of transformers."""
    out = RowwiseParallel()
    plan: Plan = {}
    if devices.plan.sequence:
        out = RowwiseParallel(output_layouts=TOKENS, use_local_output=False)
        norms = ("input_layernorm", "post_attention_layernorm")
        plan = {name: SequenceParallel() for name in norms}
        plan["self_attn"] = PrepareModuleInput(
            input_kwarg_layouts={"hidden_states": TOKENS},
            desired_input_kwarg_layouts={"hidden_states": WHOLE},
        )
        plan["mlp"] = PrepareModuleInput(input_layouts=TOKENS, desired_input_layouts=WHOLE)
    columns = [f"self_attn.{name}_proj" for name in "qkv"] + ["mlp.gate_proj", "mlp.up_proj"]
    plan |= {name: ColwiseParallel() for name in columns}
    plan |= {"self_attn.o_proj": out, "mlp.down_proj": out}
    return plan


def divide(net: Any, model: Model, devices: Sharding, mesh: DeviceMesh) -> nn.Module:
    """The module divided by torch's plan, or by transformers' own.

    Tied        both make two weights of a tied table, which have to be tied again
    """
    if devices.plan.whose == "transformers":
        if model.tied:  # from_pretrained ties when it has divided
            net.lm_head.weight = nn.Parameter(net.lm_head.weight.detach().clone())
        _by_their_plan(net, mesh)
    else:
        _by_torch(net, model, devices, mesh)
    if model.tied:
        net.lm_head.weight = net.model.embed_tokens.weight
    return net


def _by_their_plan(net: Any, mesh: DeviceMesh) -> None:
    """What from_pretrained(..., tp_plan="auto") does, on weights that are here already."""
    from transformers import DistributedConfig
    from transformers.distributed.tensor_parallel import apply_tensor_parallelism

    how = DistributedConfig(tp_size=mesh.size(), tp_plan="auto")
    plan, _, _ = net._resolve_parallel_plans(how)
    apply_tensor_parallelism(net, mesh, plan)


def _by_torch(net: Any, model: Model, devices: Sharding, mesh: DeviceMesh) -> None:
    """`parallelize_module` of each layer, of the embedding and of the output head."""
    for layer in net.model.layers:
        parallelize_module(layer, mesh, layer_plan(model, devices))
    cut: Any = (
        {"output_layouts": TOKENS, "use_local_output": False} if devices.plan.sequence else {}
    )
    ends: Plan = {"model.embed_tokens": RowwiseParallel(input_layouts=WHOLE, **cut)}
    ends["lm_head"] = ColwiseParallel(
        input_layouts=TOKENS if devices.plan.sequence else WHOLE, use_local_output=False
    )
    if devices.plan.sequence:
        ends["model.norm"] = SequenceParallel()
    parallelize_module(net, mesh, ends)
    for name, weight in net.named_parameters():
        if name.endswith(("q_norm.weight", "k_norm.weight")):  # each rank has that of its heads
            weight.register_post_accumulate_grad_hook(partial(_summed, mesh.get_group()))


def _summed(group: Any, weight: Tensor) -> None:
    """Add a gradient up over the ranks, in place."""
    dist.all_reduce(weight.grad, group=group)


def steps(model: Model, recipe: Recipe | str, run: Run, *, routing: str | None = None) -> Held:
    """On one of R real ranks: two steps; what the second held at its peak and at quiet moments.

    routing     of a mixture's tokens: as memlab.lab.expert_steps.route, or None: by its routers

    Shapes      every rank reads the same [B, T] token ids in each micro-batch. Where more ranks are
                here than the run has, each group of as many runs the same
    Unit        bytes of storages; gradients that meet are added in place, as autograd adds them
    Leaves out  scratch memory inside one operator, buffers of gloo
    Raises      ValueError for a number of ranks that is no multiple of the run's
    """
    ranks, here = run.devices.tensor, dist.get_world_size()
    if here % ranks:
        raise ValueError(f"{here} ranks are here; the run has {ranks}")
    torch.manual_seed(0)
    recipe = recipe_for(model, recipe, run)
    mesh = init_device_mesh("cpu", (here // ranks, ranks), mesh_dim_names=("others", "tensor"))
    tracker = DividedTracker()
    net: Any = subject(model, recipe, run)
    if routing is not None:
        route(net, model, run, routing)
    divide(net, model, run.devices, mesh["tensor"])
    chosen = optimizer(recipe.optimizer, dict(net.named_parameters()), loop=loop_of(recipe, run))
    ids_BT = torch.randint(model.vocab, (run.batch, run.tokens or 0))
    marks: Marks = {}
    loss = partial(loss_of, net, ids_BT, run)
    own: Any = loss_parallel() if run.devices.plan.whose == "torch" else nullcontext()
    with no_garbage(), own, settled_all_reduce(tracker), tracker:
        tracker.label([net, chosen])
        tracker.label(ids_BT, "inputs")
        for step in ("first", "second"):
            marks[step] = now(tracker)
            for _ in range(run.micro_batches):
                one_pass(tracker, marks, loss, run)
            update(tracker, marks, chosen)
    return told(tracker, marks)


several = partial(each, steps)
