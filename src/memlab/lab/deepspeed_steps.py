"""Training steps under DeepSpeed's ZeRO on real ranks of this machine, every byte of one counted.

DeepSpeed is no dependency of memlab: `pip install deepspeed==0.19.8`. It wants environment
variables, and a compiler for a faster all-reduce on a CPU, which it can do without.
"""

import json
import os
import sys
from functools import partial
from importlib import resources
from typing import Any

import torch
import torch.distributed as dist

from ..base.gc_paused import no_garbage
from ..measure.step_tracker import StepTracker
from ..model import Model
from ..recipe import Recipe
from ..run import Run
from ..run.optimizer_loops import loop_of
from ..run.recipe_choice import recipe_for
from ..sharding.deepspeed import BUCKETS, LINEAR, OFFLOAD, PARAMETERS, PARTITIONED
from ..sharding.deepspeed_keys import key_of
from .optim import optimizer
from .subject import loss_of, subject
from .sync_collectives import settled_all_reduce
from .two_steps import Marks, each, now, told
from .zero3_ranks import label_parts, settled_collectives

TORCHS = torch.nn.functional.linear


def recorded() -> list[tuple[Model, str, Run, list[dict[str, int]]]]:
    """What two real ranks held under stage 3 where DeepSpeed was installed, and what they ran.

    Shapes      one entry a run: its model, recipe and Run, and what `steps` told of each rank
    Unit        bytes of storages
    Source      data/ranks/zero3.json: `python tools/deepspeed_runs.py chapter`, DeepSpeed 0.19.8
    """
    stored = resources.files("memlab").joinpath("data", "ranks", "zero3.json")
    runs = json.loads(stored.read_text(encoding="utf-8"))["runs"]
    return [
        (Model.preset(run["config"]), run["recipe"], Run.from_dict(run["run"]), run["ranks"])
        for run in runs
    ]


def steps(model: Model, recipe: Recipe | str, run: Run) -> dict[str, Any]:
    """On one of R real ranks: two steps; what the second held at its peak and at quiet moments.

    Shapes      every rank reads [B, T] token ids of its own in each micro-batch
    Unit        bytes of storages; gradients that meet are added in place, as autograd adds them
    Leaves out  scratch memory inside one operator, buffers of gloo, tensors on the meta device
    Raises      ValueError where DeepSpeed is not installed, or for another number of ranks
    """
    if dist.get_world_size() != run.devices.data:
        raise ValueError(f"{dist.get_world_size()} ranks are here; the run has {run.devices.data}")
    deepspeed = deepspeed_here()
    torch.nn.functional.linear = TORCHS  # DeepSpeed's function stays after a run that had it
    torch.manual_seed(0)  # every rank begins with the same weights
    recipe = recipe_for(model, recipe, run)
    third = run.devices.zero == 3
    with deepspeed.zero.Init(config_dict_or_path=config_of(recipe, run), enabled=third):
        net = subject(model, recipe, run)
    chosen = optimizer(recipe.optimizer, dict(net.named_parameters()), loop=loop_of(recipe, run))
    engine = deepspeed.initialize(model=net, optimizer=chosen, config=config_of(recipe, run))[0]
    zero = engine.optimizer
    ids_BT = torch.randint(model.vocab, (run.batch, run.tokens or 0))
    tracker = StepTracker("cpu")
    marks: Marks = {}
    settle = settled_collectives if third else settled_all_reduce
    with no_garbage(), settle(tracker), tracker:
        tracker.label([net, zero.optimizer])
        if third:
            label_parts(tracker, zero)
        else:
            tracker.label(zero.single_partition_of_fp32_groups, "master")
        tracker.label(ids_BT, "inputs")
        for step in ("first", "second"):
            marks[step] = now(tracker)
            for _ in range(run.micro_batches):
                with tracker.phase("forward"):
                    loss = loss_of(engine, ids_BT, run)
                marks["after_forward"] = now(tracker)
                with tracker.phase("backward"):
                    engine.backward(loss)
                del loss
                marks["after_backward"] = now(tracker)
                with tracker.phase("optimizer"):
                    engine.step()
            marks["between_steps"] = now(tracker)
    return told(tracker, marks)


several = partial(each, steps)


def config_of(recipe: Recipe, run: Run) -> dict[str, Any]:
    """The ds_config.json of a run."""
    devices = run.devices
    third = (*PARTITIONED, LINEAR) if devices.zero == 3 else ()
    away = devices.config.offload_optimizer
    # Another AdamW than DeepSpeed's, which would be compiled here, has the same bytes there.
    more = {"zero_force_ds_cpu_optimizer": False} if away else {}
    return more | {
        "train_micro_batch_size_per_gpu": run.batch,
        "gradient_accumulation_steps": run.micro_batches,
        "gradient_clipping": 1.0 if run.clips else 0.0,
        "bf16": {"enabled": recipe.weights == "bf16"},
        "zero_allow_untested_optimizer": True,
        "zero_optimization": {
            "stage": devices.zero,
            **{key_of(field): getattr(devices.config, field) for field in BUCKETS},
            **{key_of(field): getattr(devices.config, field) for field in third},
            **{
                field: {"device": where}
                for field in (OFFLOAD, PARAMETERS)
                if (where := getattr(devices.config, field))
            },
        },
    }


def deepspeed_here() -> Any:
    ranks = {"RANK": dist.get_rank(), "LOCAL_RANK": dist.get_rank()}
    ranks |= {"WORLD_SIZE": dist.get_world_size(), "MASTER_PORT": 29500}
    os.environ |= {"DS_ACCELERATOR": "cpu", "MASTER_ADDR": "localhost"}
    os.environ |= {name: str(value) for name, value in ranks.items()}
    try:
        import deepspeed
    except ModuleNotFoundError as error:
        raise ValueError("this needs DeepSpeed: pip install deepspeed") from error
    # It would be compiled here. The module's own name, as an attribute, is that of PyTorch.
    sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None  # type: ignore[attr-defined]
    return deepspeed
