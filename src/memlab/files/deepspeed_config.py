"""A ds_config.json, as transformers' Trainer and accelerate read it: what memlab describes of it.

"auto" stands for what TrainingArguments say, and of three bucket sizes for what the model's width
says (memlab.sharding.deepspeed.auto); other "auto" values of zero_optimization DeepSpeed takes
for its own defaults. Everything that is wrong with a file is said at once.

offload_param   of stage 3 alone, where each rank's part of the weights is then the host's
optimizer       Adam and AdamW are DeepSpeed's FusedAdam, on the host its CPUAdam, and Lion its
                FusedLion: states and moments of the program's own AdamW and Lion
fp16            16-bit weights and gradients beside an fp32 copy, as with bf16; the check for
                overflow, 11 bytes for each value of one gradient, is not counted
round_robin_gradients   another order of the weights in the flat tensor of stages 1 and 2
Source      deepspeed 0.19, runtime/zero/config.py: DeepSpeedZeroConfig; runtime/config.py;
            runtime/config_utils.py: DeepSpeedConfigModel; runtime/engine.py:
            _configure_basic_optimizer; runtime/zero/stage_1_and_2.py: _round_robin_reorder,
            _has_inf_or_nan; runtime/zero/partition_parameters.py; transformers,
            integrations/deepspeed.py
The module is long, because what is read and what is passed over stands in one place.
"""

from __future__ import annotations

from ..sharding.deepspeed import BUCKETS, DEVICE, LINEAR, OFFLOAD, PARAMETERS, STAGES, DeepSpeed
from ..sharding.deepspeed_keys import auto, key_of
from .documents import mapping, shown

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

AUTO = "auto"
FLAGS = ("overlap_comm", "contiguous_gradients", LINEAR)
AWAY = (OFFLOAD, PARAMETERS)
FIELDS = {key_of(field): field for field in DeepSpeed.__annotations__ if field not in AWAY}
# Of zero_optimization, what changes no byte of a step: sizes of a gathering that needs no buffer,
# what a checkpoint on disk is made of, how a host's memory is held, and what is checked.
SILENT = """allgather_partitions allgather_bucket_size ignore_unused_parameters load_from_fp32
    stage3_gather_16bit_weights_on_model_save stage3_gather_fp16_weights_on_model_save
    elastic_checkpoint load_from_fp32_weights leaf_module log_trace_cache_warnings
    enable_sanity_checks pipeline_loading_checkpoint override_module_apply legacy_stage1
    cpu_offload_use_pin_memory""".split()
# Values of other keys that say what DeepSpeed does without them.
USUAL: dict[str, tuple[Any, ...]] = {
    "reduce_scatter": (True,),
    "use_multi_rank_bucket_allreduce": (True,),
    "zero_hpz_partition_size": (1,),
    "zero_quantized_weights": (False,),
    "zero_quantized_nontrainable_weights": (False,),
    "zero_quantized_gradients": (False,),
    "zeropp_loco_param": (None,),
    "mics_shard_size": (-1,),
    "mics_hierarchical_params_gather": (False,),
    "stage3_use_all_reduce_for_fetch_params": (False,),
    "stage3_allgather_sequential": (False,),
    "stage3_module_granularity_threshold": (0,),
    "zenflow": (None, False),
    "save_muon_momentum_buffer_in_memory": (False,),
    "cpu_offload": (False, None),
    "cpu_offload_params": (False, None),
    "cpu_offload_param": (False, None),
}
ROUND_ROBIN = "round_robin_gradients"
ROUND_ROBIN_TOLD = (
    "round_robin_gradients: true is another order of the weights in DeepSpeed's flat tensor; it is "
    "counted without, from which no peak of 36 steps was further than 0.7 %"
)
FP16_TOLD = "fp16.enabled: true is counted as bf16, without its check for overflow"
# Of the file, beside what is read of it, what changes no byte of a step.
ASIDE = """train_batch_size zero_allow_untested_optimizer zero_force_ds_cpu_optimizer
    steps_per_print wall_clock_breakdown memory_breakdown scheduler dump_state tensorboard wandb
    csv_monitor comet monitor_config comms_logger comms_config communication_data_type
    seq_parallel_communication_data_type prescale_gradients gradient_predivide_factor aio nebula
    checkpoint dataloader_drop_last timers log_level activation_checkpointing data_sampling
    use_data_before_expert_parallelism flops_profiler""".split()
# Sections that change a step, or what is run, once they are on.
SECTIONS = """amp autotuning compile compression_training curriculum_learning data_efficiency
    eigenvalue elasticity expert_parallel hybrid_engine pipeline progressive_layer_drop
    sparse_attention sparse_gradients tensor_parallel torch_autocast weight_quantization zenflow
    gradient_allreduce_op disable_allgather""".split()
OPTIMIZERS = {"adam": "adamw", "adamw": "adamw", "lion": "lion"}
COUNTS = {
    "train_micro_batch_size_per_gpu": "batch",
    "gradient_accumulation_steps": "micro_batches",
}


def read_file(path: str, hidden: int) -> dict[str, Any]:
    """What a file says: see `read`.

    Raises      ValueError for a file that is no JSON object; OSError where it cannot be read
    """
    return read(mapping(path), hidden)


def read(config: dict[str, Any], hidden: int) -> dict[str, Any]:
    """What a config says, by the names that memlab has for it.

    hidden      hidden_size of the model's config, for "auto"
    Shapes      devices: fields of Sharding, zero among them; run: batch and micro_batches, where
                they are numbers; recipe: "zero" or "fp32", nothing where "auto" leaves it to
                TrainingArguments' bf16; optimizer: where the file has DeepSpeed make it; aside:
                keys without bearing; told: what is counted otherwise
    Raises      ValueError that names each key that is wrong, its value, and what would be right
    """
    zero = config.get("zero_optimization")
    if not isinstance(zero, dict):
        raise ValueError(f"zero_optimization: {shown(zero)}; an object with a stage is needed")
    wrong: list[str] = []
    told: list[str] = []
    aside = [f"zero_optimization.{key}" for key in zero if key in SILENT]
    aside += [key for key in config if key in ASIDE]
    found: dict[str, Any] = {"devices": _devices(zero, hidden, wrong, told)}
    found["run"] = _run(config, wrong)
    found |= _made(config, wrong, told)
    if wrong:
        raise ValueError("; ".join(wrong))
    return found | {key: value for key, value in (("aside", aside), ("told", told)) if value}


def _devices(
    zero: dict[str, Any], hidden: int, wrong: list[str], told: list[str]
) -> dict[str, Any]:
    stage = zero.get("stage")
    if isinstance(stage, bool) or stage not in (*STAGES, 3):
        wrong.append(f"zero_optimization.stage: {shown(stage)}; 1, 2 or 3 is described")
        stage = 3
    said: dict[str, Any] = {"zero": stage} | ({"library": "deepspeed"} if stage == 3 else {})
    widths = auto(hidden, stage)
    for key, value in zero.items():
        where = f"zero_optimization.{key}: {shown(value)}"
        if key == "stage" or key in SILENT:
            continue
        if key in AWAY:
            device = _offload(key, value, where, wrong)
            if device and (key == OFFLOAD or stage == 3):  # which alone has parts of weights
                said[key] = device
        elif key == ROUND_ROBIN:
            if not isinstance(value, bool):
                wrong.append(f"{where}; true or false is needed")
            told += [ROUND_ROBIN_TOLD] * (value is True and stage < 3)
        elif key in FIELDS:
            _field(said, FIELDS[key], value, stage, widths, where, wrong)
        elif key == "stage3_model_persistence_threshold":
            if value != AUTO and not (isinstance(value, (int, float)) and value >= 10**14):
                wrong.append(f"{where} is not described; leave it out")
        elif key not in USUAL:
            wrong.append(f"{where} is not described; known: {', '.join(FIELDS)}")
        elif value != AUTO and value not in USUAL[key]:
            wrong.append(f"{where} is not described; {shown(USUAL[key][0])} is")
    return said


def _offload(key: str, value: Any, where: str, wrong: list[str]) -> str | None:
    """The device of a section that says what is offloaded, where it is one."""
    device = value.get("device", "none") if isinstance(value, dict) else value
    if device in ("none", None):
        return None
    ratio = value.get("ratio", 1) if isinstance(value, dict) else 1
    if device != DEVICE or ratio != 1 or (isinstance(value, dict) and value.get("super_offload")):
        wrong.append(f"{where} is not described; {key} to cpu is, whole")
        return None
    return DEVICE


def _field(
    said: dict[str, Any],
    field: str,
    value: Any,
    stage: int,
    widths: dict[str, int],
    where: str,
    wrong: list[str],
) -> None:
    if stage < 3 and field not in BUCKETS:
        return  # DeepSpeed reads them at every stage, and uses them at the third
    if value == AUTO:
        if field in widths:
            said[field] = widths[field]
        return
    if field in FLAGS:
        if not isinstance(value, bool):
            wrong.append(f"{where}; true or false is needed")
        said[field] = value
    elif isinstance(value, bool) or not isinstance(value, (int, float)) or value % 1:
        wrong.append(f'{where}; a whole number or "auto" is needed')
    else:
        said[field] = int(value)  # 5e8 is written so in many files


def _run(config: dict[str, Any], wrong: list[str]) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for key, field in COUNTS.items():
        value = config.get(key, AUTO)
        if value == AUTO:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            wrong.append(f'{key}: {shown(value)}; a whole number above 0 or "auto" is needed')
        said[field] = value
    clips = config.get("gradient_clipping", AUTO)  # Trainer's own norm, or one of no more bytes
    if clips != AUTO and (isinstance(clips, bool) or not isinstance(clips, (int, float))):
        wrong.append(f'gradient_clipping: {shown(clips)}; a number or "auto" is needed')
    return said


def _made(config: dict[str, Any], wrong: list[str], told: list[str]) -> dict[str, Any]:
    """The formats, and the optimizer where DeepSpeed makes it."""
    read_here = (*COUNTS, "gradient_clipping", "bf16", "bfloat16", "fp16", "data_types")
    known = (*read_here, "optimizer", "zero_optimization", *ASIDE)
    for key, value in config.items():
        if key in SECTIONS:
            on = value.get("enabled", any(value.values())) if isinstance(value, dict) else value
            if on not in (None, False, "mean"):
                wrong.append(f"{key}: {shown(value)} is not described; leave it out")
        elif key not in known:
            words = ", ".join((*read_here, "optimizer", "zero_optimization"))
            wrong.append(f"{key}: {shown(value)} is not described; known: {words}")
    found: dict[str, Any] = {}
    if config.get("optimizer") is not None:
        found = _optimizer(config["optimizer"], wrong)
    section = "bfloat16" if "bfloat16" in config else "bf16"
    bf16, fp16 = _enabled(config, section, wrong), _enabled(config, "fp16", wrong)
    if True in (bf16, fp16):
        found["recipe"] = "zero"
        told += [FP16_TOLD] * (fp16 is True)
    elif AUTO not in (bf16, fp16):
        found["recipe"] = "fp32"
    types = config.get("data_types")
    accumulated = types.get("grad_accum_dtype") if isinstance(types, dict) else None
    own = "fp16" if fp16 is True else "bf16" if bf16 else "fp32"
    if accumulated not in (None, AUTO, own):
        wrong.append(
            f"data_types.grad_accum_dtype: {shown(accumulated)} is not described: gradients add up "
            "in the format of the weights"
        )
    return found


def _optimizer(section: Any, wrong: list[str]) -> dict[str, Any]:
    kind = section.get("type") if isinstance(section, dict) else section
    parameters = section.get("params") if isinstance(section, dict) else None
    torchs = isinstance(parameters, dict) and parameters.get("torch_adam")
    if not isinstance(kind, str) or kind.lower() not in OPTIMIZERS or torchs:
        wrong.append(
            f"optimizer: {shown(section)} is not described; known types: Adam, AdamW, Lion, "
            "without torch_adam"
        )
        return {}
    return {"optimizer": OPTIMIZERS[kind.lower()]}


def _enabled(config: dict[str, Any], name: str, wrong: list[str]) -> bool | str:
    section = config.get(name) or {}
    value = section.get("enabled", False) if isinstance(section, dict) else section
    if value != AUTO and not isinstance(value, bool):
        wrong.append(f'{name}.enabled: {shown(value)}; true, false or "auto" is needed')
    if isinstance(section, dict):
        for key in ("master_weights_and_grads", "optimizer_states"):
            if section.get(f"{name}_{key}"):
                wrong.append(f"{name}.{name}_{key}: true is not described; leave it out")
    return value  # type: ignore[no-any-return]
