"""FSDP2 as each library is told of it: `fully_shard`, Trainer, accelerate and torchtitan.

The peak is that of the reader's own: of `fully_shard` on each layer and on the model in a loop of
one's own, of accelerate's groups where the loop is Trainer's. The lines of the others come after
it, for readers who wrap their loop in accelerate, or train in torchtitan: they divide the embedding
and the head by themselves, so that their peak is near this one, and not it.

Source          torch, torch/distributed/fsdp/_fully_shard/_fully_shard.py; transformers,
                training_args.py: fsdp_config; accelerate, commands/launch.py and
                utils/launch.py, which makes FSDP_VERSION, FSDP_RESHARD_AFTER_FORWARD,
                FSDP_OFFLOAD_PARAMS and FSDP_AUTO_WRAP_POLICY of these keys; torchtitan,
                commit b3508e2, torchtitan/config/parallelism.py, and commit 1a618d1,
                torchtitan/config/configs.py: TrainingConfig
Leaves out      a mixture's experts, which torchtitan divides with expert_parallel_degree
"""

from __future__ import annotations

from .flags import OWN, TRAINER, library

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from ..recipe import Recipe
    from ..run import Run
    from ..sharding import Sharding

OTHERS = "; of {}: {}"
NARROW = {"bf16": "torch.bfloat16", "fp16": "torch.float16", "fp32": "torch.float32"}
MIXED = {"bf16": "mixed_precision: bf16, ", "fp16": "mixed_precision: fp16, "}
CONFIG = "accelerate launch --config_file of distributed_type: FSDP, num_processes: {cards}, "
CONFIG += "{mixed}fsdp_config: {{{keys}}}"


def fsdp_line(recipe: Recipe, run: Run) -> str | None:
    """How the reader's library divides this run, then how the others do; None: it cannot.

    Raises      nothing: a run that is not divided by FSDP2 has no line
    """
    there, of = run.devices, library(run)
    if not there.fsdp or of not in (OWN, TRAINER):
        return None
    if of == TRAINER:
        return trainer_line(there) + OTHERS.format("accelerate", accelerate_line(there))
    found = torch_line(there)
    if there.experts.ranks == 1:
        found += OTHERS.format("accelerate", accelerate_line(there))
        found += OTHERS.format("torchtitan", torchtitan_line(recipe, there))
    return found


def torch_line(there: Sharding) -> str:
    """`fully_shard` of torch: each layer, then the model."""
    policy = ""
    if there.policy.param_dtype or there.policy.reduce_dtype:
        said = [
            f"{field}={NARROW[value]}"
            for field in ("param_dtype", "reduce_dtype")
            if (value := getattr(there.policy, field))
        ]
        policy += f", mp_policy=MixedPrecisionPolicy({', '.join(said)})"
    if there.policy.cpu_offload:
        pins = "" if there.policy.cpu_offload == "pinned" else "pin_memory=False"
        policy += f", offload_policy=CPUOffloadPolicy({pins})"
    kept = "" if there.policy.reshard_after_forward else ", reshard_after_forward=False"
    return (
        f"[torch.distributed.fsdp.fully_shard(layer{policy}{kept}) for layer in decoder_layers]; "
        f"fully_shard(model{policy}); torchrun --nproc-per-node {there.data}"
    )


def trainer_line(there: Sharding) -> str:
    """Arguments of Trainer, whose FSDP is version 2 unless fsdp_config says another."""
    keys = _keys(there, "cpu_offload", "reshard_after_forward", true="True", false="False")
    config = ", ".join(f'"{name}": {value}' for name, value in keys.items())
    said = ["bf16=True"] * (there.policy.param_dtype == "bf16") + ["fsdp=True"]
    said += [f"fsdp_config={{{config}}}"] * bool(keys)
    return f"TrainingArguments({', '.join(said)}); torchrun --nproc-per-node {there.data}"


def accelerate_line(there: Sharding) -> str:
    """The config file of `accelerate launch`, as YAML has it in one line."""
    keys = {"fsdp_version": "2", "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP"}
    keys |= _keys(there, "fsdp_offload_params", "fsdp_reshard_after_forward")
    told = ", ".join(f"{name}: {value}" for name, value in keys.items())
    return CONFIG.format(
        cards=there.data, mixed=MIXED.get(there.policy.param_dtype or "", ""), keys=told
    )


def torchtitan_line(recipe: Recipe, there: Sharding) -> str:
    """Flags of torchtitan's command line, which gathers in bf16 unless it is told otherwise."""
    said = [f"--parallelism.data_parallel_shard_degree {there.sharers}"]
    if there.policy.replicas > 1:
        said.append(f"--parallelism.data_parallel_replicate_degree {there.policy.replicas}")
    if not there.policy.reshard_after_forward:
        said.append("--parallelism.fsdp_reshard_after_forward never")
    if there.policy.cpu_offload:
        said.append("--training.enable_cpu_offload")
    if recipe.weights == "bf16":
        said.append("--training.dtype bfloat16")
    elif not recipe.autocast and there.policy.param_dtype is None:
        said.append("--training.mixed_precision_param float32")
    return " ".join(said)


def _keys(
    there: Sharding, offload: str, reshard: str, *, true: str = "true", false: str = "false"
) -> dict[str, str]:
    """What does not stand at the default of accelerate and Trainer alike."""
    found = {offload: true} if there.policy.cpu_offload else {}
    return found | ({} if there.policy.reshard_after_forward else {reshard: false})
