"""accelerate's YAML, default_config.yaml: how many processes there are, and what they divide.

Source      accelerate, commands/config/config_args.py: ClusterConfig; utils/launch.py:
            prepare_deepspeed_cmd_env; utils/dataclasses.py: DeepSpeedPlugin
"""

from __future__ import annotations

from ...base.versions import PROVEN
from ..documents import beside, shown
from .rules import one_of, whole
from .said import Said, Trainer, later
from .settled import fsdp

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

KINDS = {"no": "", "multi_gpu": "", "fsdp": "fsdp", "deepspeed": "deepspeed"}
# Inline keys that have no bearing, as in DeepSpeed's own file.
ASIDE_INLINE = """zero3_init_flag zero3_save_16bit_model deepspeed_hostfile
    deepspeed_multinode_launcher deepspeed_exclusion_filter deepspeed_inclusion_filter
    gradient_clipping deepspeed_moe_layer_cls_names offload_optimizer_nvme_path
    offload_param_nvme_path""".split()


def _finish(said: Said) -> None:
    try:
        kind = one_of(KINDS, said.value("distributed_type"))
        said.ranks = said.ranks or whole(said.value("num_processes"))
        if kind == "fsdp":
            fsdp(said, dict(said.value("fsdp_config") or {}), "fsdp_config")
        elif kind == "deepspeed":
            _deepspeed(said, dict(said.value("deepspeed_config") or {}))
    except (ValueError, TypeError) as error:
        said.problem(f"distributed_type: {shown(said.value('distributed_type'))}: {error}")
    word = said.value("mixed_precision")
    if word in ("bf16", "fp16"):
        said.facts.setdefault("mixed", word)
        said.facts.setdefault("format_keys", [said.told("mixed_precision")])
    elif str(word) not in ("no", "False"):
        said.problem(f"mixed_precision: {shown(word)} is not described; known: no, bf16, fp16")


def _deepspeed(said: Said, inline: dict[str, Any]) -> None:
    path = inline.pop("deepspeed_config_file", None)
    if path:
        said.facts.setdefault("deepspeed", beside(said.path, str(path)))
        return
    zero: dict[str, Any] = {"stage": inline.pop("zero_stage", 2)}
    for key in ("offload_optimizer", "offload_param"):
        zero[key] = {"device": inline.pop(f"{key}_device", "none")}
    config: dict[str, Any] = {"zero_optimization": zero}
    config["gradient_accumulation_steps"] = inline.pop("gradient_accumulation_steps", "auto")
    if config["gradient_accumulation_steps"] == 1:
        config["gradient_accumulation_steps"] = "auto"
    config["bf16"] = {"enabled": "auto"}
    for key in set(inline) - set(ASIDE_INLINE):
        raise ValueError(f"{key}: {shown(inline[key])} is not described")
    said.facts.setdefault("deepspeed", config)


ASIDE = """compute_environment debug machine_rank main_process_ip main_process_port rdzv_backend
    same_network main_training_function enable_cpu_affinity gpu_ids num_machines tpu_env
    tpu_use_cluster tpu_use_sudo downcast_bf16 commands command_file tpu_name tpu_vm tpu_zone
    dynamo_backend""".split()
ACCELERATE = Trainer(
    f"accelerate {PROVEN['accelerate']}",
    (("distributed_type",), ("compute_environment", "num_processes", "mixed_precision")),
    dict.fromkeys(
        "distributed_type num_processes mixed_precision fsdp_config deepspeed_config".split(), later
    ),
    frozenset(ASIDE),
    frozenset(
        """use_cpu fp8_config parallelism_config megatron_lm_config mpirun_config
        dynamo_config""".split()
    ),
    _finish,
    {"num_processes": 1, "mixed_precision": "no"},
)
