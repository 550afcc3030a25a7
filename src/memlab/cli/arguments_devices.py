"""Flags that say what several devices divide, as memlab.Sharding."""

from __future__ import annotations

import argparse

from ..model import Model
from ..sharding import DeepSpeed, Sharding
from ..sharding.deepspeed import BUCKETS, DEVICE, LINEAR, OFFLOAD, PARAMETERS, PARTITIONED
from ..sharding.expert_parallel import ROUTINGS
from ..sharding.fsdp import DTYPES, HOSTS, SYNCS
from ..sharding.pipeline import SCHEDULES
from ..sharding.tensor_parallel import PLANS
from .brought import count

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

SPLITS = {"tensor": "matrices", "pipeline": "layers", "context": "tokens"}
EXPERTS = ("expert", "routing")
STEPS = {"context": "; steps: torch's ring, with --zero 3"}
DEEPSPEED = (
    *("deepspeed", *BUCKETS[:2], "no_contiguous_gradients", *PARTITIONED, f"no_{LINEAR}"),
    *(OFFLOAD, PARAMETERS, "deepspeed_config"),
)


# What DeepSpeed's stage 3 alone is told.
THIRD = {
    "prefetch_bucket_size": "values gathered ahead as each module begins",
    "param_persistence_threshold": "weights of so many values or fewer stay whole",
    "max_live_parameters": "values of whole weights above which nothing is gathered ahead",
    "max_reuse_distance": "a weight stays whole if used again before so many values",
    "sub_group_size": "values of a rank's part that the optimizer updates at once",
}


def add_devices(parser: argparse.ArgumentParser) -> None:
    """Flags that say what is divided among several devices."""
    words = (
        "what stays on one of them, and with --tokens the peak of --fsdp, --zero, --pipeline or "
        "--tensor"
    )
    group = parser.add_argument_group("several devices", words)
    add_fsdp(group)
    group.add_argument("--ranks", type=count, metavar="N", help="devices, all together (default 1)")
    words = "0 to 3: what data-parallel ranks divide; steps: 1, 2 DeepSpeed's, 3 FSDP2's"
    group.add_argument("--zero", type=count, help=words)
    words = "whose ZeRO it is: with --zero 3 the step is DeepSpeed's, made under zero.Init"
    group.add_argument("--deepspeed", action="store_true", default=None, help=words)
    words = "its ds_config.json, read as Trainer reads it, in the place of --zero and what follows"
    group.add_argument("--deepspeed-config", metavar="FILE", help=words)
    words = "of DeepSpeed's config: values of its buffer for gradients (default 500,000,000)"
    group.add_argument("--reduce-bucket-size", type=count, metavar="N", help=words)
    for flag, words in (("overlap-comm", "two"), ("no-contiguous-gradients", "none")):
        words = f"of DeepSpeed's config: {words} of these buffers"
        group.add_argument(f"--{flag}", action="store_true", default=None, help=words)
    words = "of DeepSpeed's config: where fp32 copies, their gradients and states are"
    group.add_argument("--offload-optimizer", choices=(DEVICE,), help=words)
    words = "of its stage 3: where each rank's part of the weights is"
    group.add_argument("--offload-param", choices=(DEVICE,), help=words)
    for name, words in THIRD.items():
        words = f"of its stage 3: {words} (default {getattr(DeepSpeed, name):,})"
        group.add_argument(f"--{name.replace('_', '-')}", type=count, metavar="N", help=words)
    words = "of its stage 3: torch's linear layers, which keep whole weights"
    flag = f"--no-{LINEAR.replace('_', '-')}"
    group.add_argument(flag, action="store_true", default=None, help=words)
    for name, what in SPLITS.items():
        words = f"ranks that divide {what}{STEPS.get(name, '')} (default 1)"
        short = [f"--{name}"] * (name != "context")
        group.add_argument(f"--{name}-parallel", *short, type=count, metavar="N", help=words)
    words = "of --tensor: divide the norms and the stream by tokens too (SequenceParallel)"
    group.add_argument("--sequence", action="store_true", default=None, help=words)
    words = "of --tensor: torch's with loss_parallel, or transformers' tp_plan (default torch)"
    group.add_argument("--plan", choices=PLANS, help=words)
    words = "of torch.distributed.pipelining (default 1f1b)"
    group.add_argument("--schedule", choices=SCHEDULES, help=words)
    words = "stages on each rank of interleaved1f1b (default 2 there), interleavedzerobubble (1)"
    group.add_argument("--stages-per-rank", type=count, metavar="N", help=words)
    words = "schedule.step(return_outputs=False): the last stage keeps no logits of a whole step"
    group.add_argument("--no-outputs", action="store_true", default=None, help=words)


def add_fsdp(group: Any) -> None:
    """The flags of FSDP2 alone."""
    words = "FSDP2 over N ranks, each with a batch of its own"
    group.add_argument("--fsdp", type=count, metavar="N", help=words)
    for flag in ("param", "reduce"):
        words = "of MixedPrecisionPolicy (default: as weights are stored)"
        group.add_argument(f"--{flag}-dtype", choices=DTYPES, help=words)
    words = "keep gathered layers until backward: reshard_after_forward=False"
    group.add_argument("--no-reshard", action="store_true", default=None, help=words)
    words = "HSDP: N copies of the model, each divided among the same number of ranks (default 1)"
    group.add_argument("--replicas", type=count, metavar="N", help=words)
    words = "CPUOffloadPolicy: weights, gradients and states on the host (default there: pinned)"
    group.add_argument("--cpu-offload", choices=HOSTS, nargs="?", const=HOSTS[0], help=words)
    words = "reduce gradients after every micro-batch or the last; shards: HSDP's (default every)"
    group.add_argument("--gradient-sync", choices=SYNCS, help=words)
    words = "of --fsdp: groups of N ranks divide a mixture's experts (default 1)"
    group.add_argument("--expert", type=count, metavar="N", help=words)
    words = "of --expert: as much arrives as is sent, or all that can (default even)"
    group.add_argument("--routing", choices=ROUTINGS, help=words)


def devices_of(options: argparse.Namespace, model: Model) -> Sharding:
    """What the flags of `add_devices` say together; data-parallel ranks are the rest.

    Raises      ValueError where the network cannot be cut so, or the ranks do not come out even,
                and for --fsdp beside a flag that says the same
    """
    policy = {name: getattr(options, name) for name in ("param_dtype", "reduce_dtype")}
    policy |= {
        n: getattr(options, n) for n in ("gradient_sync", "replicas", "cpu_offload", *EXPERTS)
    }
    policy = {name: value for name, value in policy.items() if value is not None}
    if options.no_reshard:
        policy["reshard_after_forward"] = False
    if "ranks" not in vars(options):
        return _fsdp(options, policy)
    if options.fsdp is not None:
        others = ("sequence", "plan", "schedule", "stages_per_rank", "no_outputs", *DEEPSPEED)
        for flag in ("ranks", "zero", *(f"{name}_parallel" for name in SPLITS), *others):
            if (value := getattr(options, flag)) is not None:
                said = "" if value is True else f" {value}"
                raise ValueError(f"--{flag.replace('_', '-')}{said} beside --fsdp; give one")
        return _fsdp(options, policy)
    for name in EXPERTS:
        if name in policy:
            said = f"--{name} {policy[name]}"
            raise ValueError(f"{said} divides experts among ranks of FSDP2; give --fsdp N, too")
    told = {name: getattr(options, f"{name}_parallel") for name in SPLITS}
    sizes: dict[str, Any] = {name: size for name, size in told.items() if size is not None}
    sizes |= _schedule(options)
    for name in ("sequence", "plan"):
        if (value := getattr(options, name)) is not None:
            sizes[name] = value
    policy |= _buckets(options)
    one = Sharding.of(zero=options.zero or 0, **sizes)
    one.check(model)
    _needs(options, one)
    ranks = one.ranks if options.ranks is None else options.ranks
    if ranks < 1 or ranks % one.ranks:
        product = " x ".join(f"{name} {getattr(one, name)}" for name in SPLITS)
        raise ValueError(f"--ranks {ranks} is not a multiple of {product} = {one.ranks}")
    return Sharding.of(data=ranks // one.ranks, zero=one.zero, **sizes, **policy)


def none_of(options: argparse.Namespace, model: Any) -> Sharding:
    """One device, for a model that memlab does not describe: what several divide is not known.

    Raises      ValueError for every flag of `add_devices` that was given
    """
    parser = argparse.ArgumentParser(add_help=False)
    add_devices(parser)
    for action in parser._actions:
        value = getattr(options, action.dest, None)
        if value is not None:
            said = action.option_strings[0] + ("" if value is True else f" {value}")
            family = getattr(model, "family", "model")
            raise ValueError(
                f"{said}: what devices divide is described for the families of `memlab models`, "
                f"not for a {family}"
            )
    return Sharding()


def _needs(options: argparse.Namespace, one: Sharding) -> None:
    """Refuse words about ranks that nothing made: their default says the same, and none is there.

    Raises      ValueError that names the flag, and the one that makes such ranks
    """
    shared = one.context > 1  # whose weights ZeRO divides as those of data-parallel ranks
    alone = options.deepspeed and one.ranks == 1  # DeepSpeed's ZeRO runs on one rank too
    if options.zero and (options.ranks or 1) <= one.ranks and not shared and not alone:
        raise ValueError(
            f"--zero {options.zero} divides what data-parallel ranks share; give --ranks N, more "
            f"than {one.ranks}"
        )
    if options.plan is not None and one.tensor == 1:
        raise ValueError(f"--plan {options.plan} is of tensor parallelism; give --tensor N")
    if options.schedule is not None and one.pipeline == 1:
        raise ValueError(f"--schedule {options.schedule} is of a pipeline; give --pipeline N")


def _fsdp(options: argparse.Namespace, policy: dict[str, Any]) -> Sharding:
    """Where a command has no other flags than those of FSDP2, or none but these were given."""
    if options.fsdp is None:
        for name in policy:
            said = "no-reshard" if name == "reshard_after_forward" else name.replace("_", "-")
            raise ValueError(f"--{said} says how FSDP2 works; give --fsdp N, its ranks, too")
        return Sharding()
    if options.fsdp < 2:
        raise ValueError(f"--fsdp {options.fsdp}; at least 2 ranks divide weights")
    return Sharding.of(data=options.fsdp, zero=3, **policy)


def _buckets(options: argparse.Namespace) -> dict[str, Any]:
    """What the flags of DeepSpeed's config say."""
    said: dict[str, Any] = {}
    if options.reduce_bucket_size is not None:
        said["reduce_bucket_size"] = options.reduce_bucket_size
    if options.overlap_comm:
        said["overlap_comm"] = True
    if options.no_contiguous_gradients:
        said["contiguous_gradients"] = False
    if options.deepspeed:
        said["library"] = "deepspeed"
    if options.no_memory_efficient_linear:
        said[LINEAR] = False
    said |= {
        n: v for n in (*PARTITIONED, OFFLOAD, PARAMETERS) if (v := getattr(options, n)) is not None
    }
    return said


def _schedule(options: argparse.Namespace) -> dict[str, Any]:
    """What the flags of a pipeline say beside its ranks."""
    said: dict[str, Any] = {}
    if options.schedule is not None:
        said["schedule"] = options.schedule
    if options.stages_per_rank is not None:
        said["stages_per_rank"] = options.stages_per_rank
    elif options.schedule in ("interleaved1f1b", "zbvzerobubble"):
        said["stages_per_rank"] = 2
    if options.no_outputs:
        said["return_outputs"] = False
    return said
