"""A ds_config.json, as transformers' Trainer and accelerate read it: what memlab describes of it.

"auto" stands for what TrainingArguments say, and of three bucket sizes for what the model's width
says (memlab.recipe.deepspeed_config.auto); other "auto" values of zero_optimization DeepSpeed takes
for its own defaults.

Source      deepspeed 0.19.8, runtime/zero/config.py: DeepSpeedZeroConfig; runtime/config_utils.py:
            DeepSpeedConfigModel; transformers 5.23, integrations/deepspeed.py
"""

from __future__ import annotations

import json
from pathlib import Path

from ..recipe.deepspeed_config import BUCKETS, CONFIG, DEVICE, LINEAR, OFFLOAD, STAGES
from ..recipe.deepspeed_keys import auto, key_of

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

AUTO = "auto"
FLAGS = ("overlap_comm", "contiguous_gradients", LINEAR)
FIELDS = {key_of(field): field for field in CONFIG if field != OFFLOAD}
# Of zero_optimization, what changes no byte of a step: sizes of a gathering that needs no buffer,
# what a checkpoint on disk is made of, and what is checked.
SILENT = (
    *(
        "allgather_partitions",
        "allgather_bucket_size",
        "ignore_unused_parameters",
        "load_from_fp32",
    ),
    *("stage3_gather_16bit_weights_on_model_save", "stage3_gather_fp16_weights_on_model_save"),
    *("elastic_checkpoint", "load_from_fp32_weights", "leaf_module"),
)
# Values of other keys that say what DeepSpeed does without them.
USUAL: dict[str, tuple[Any, ...]] = {
    "reduce_scatter": (True,),
    "round_robin_gradients": (False,),
    "use_multi_rank_bucket_allreduce": (True,),
    "zero_hpz_partition_size": (1,),
    "zero_quantized_weights": (False,),
    "zero_quantized_gradients": (False,),
    "mics_shard_size": (-1,),
}
OFFLOADS = (OFFLOAD, "offload_param")
# Of the file, beside what is read of it, what changes no byte of a step.
ASIDE = (
    *("train_batch_size", "zero_allow_untested_optimizer", "zero_force_ds_cpu_optimizer"),
    *("steps_per_print", "wall_clock_breakdown", "scheduler", "dump_state", "tensorboard", "wandb"),
    *("csv_monitor", "comms_logger", "communication_data_type", "zero_optimization"),
)
COUNTS = {
    "train_micro_batch_size_per_gpu": "batch",
    "gradient_accumulation_steps": "micro_batches",
}


def read_file(path: str, hidden: int) -> dict[str, Any]:
    """What a file says: see `read`.

    Raises      ValueError for a file that is no JSON object; OSError where it cannot be read
    """
    try:
        config = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: no JSON: {error}") from error
    if not isinstance(config, dict):
        raise ValueError(f"{path}: an object is needed, with zero_optimization in it")
    return read(config, hidden)


def read(config: dict[str, Any], hidden: int) -> dict[str, Any]:
    """What a config says, by the names that memlab has for it.

    hidden      hidden_size of the model's config, for "auto"
    Shapes      devices: fields of Sharding, zero among them; run: batch and micro_batches, where
                they are numbers; recipe: "zero" or "fp32", nothing where "auto" leaves it to
                TrainingArguments' bf16
    Raises      ValueError that names the key, its value, and what would be right
    """
    zero = config.get("zero_optimization")
    if not isinstance(zero, dict):
        raise ValueError(f"zero_optimization={zero!r}; an object with a stage is needed")
    found: dict[str, Any] = {"devices": _devices(zero, hidden), "run": _run(config)}
    recipe = _recipe(config)
    return found | ({"recipe": recipe} if recipe else {})


def _devices(zero: dict[str, Any], hidden: int) -> dict[str, Any]:
    stage = zero.get("stage")
    if isinstance(stage, bool) or stage not in (*STAGES, 3):
        raise ValueError(f"zero_optimization.stage={stage!r}; 1, 2 or 3 is described")
    said: dict[str, Any] = {"zero": stage} | ({"library": "deepspeed"} if stage == 3 else {})
    widths = auto(hidden, stage)
    for key, value in zero.items():
        where = f"zero_optimization.{key}={value!r}"
        if key == "stage" or key in SILENT:
            continue
        if key in OFFLOADS:
            device = value.get("device", "none") if isinstance(value, dict) else value
            if device in ("none", None):
                continue
            if key != OFFLOAD or device != DEVICE:
                raise ValueError(f"{where} is not described; offload_optimizer to cpu is")
            said[OFFLOAD] = device
        elif key in FIELDS:
            _field(said, FIELDS[key], value, stage, widths, where)
        elif key not in USUAL:
            raise ValueError(f"{where} is not described; known: {', '.join(FIELDS)}")
        elif value != AUTO and value not in USUAL[key]:
            raise ValueError(f"{where} is not described; {USUAL[key][0]!r} is")
    return said


def _field(
    said: dict[str, Any], field: str, value: Any, stage: int, widths: dict[str, int], where: str
) -> None:
    if stage < 3 and field not in BUCKETS:
        return  # DeepSpeed reads them at every stage, and uses them at the third
    if value == AUTO:
        if field in widths:
            said[field] = widths[field]
        return
    if field in FLAGS:
        if not isinstance(value, bool):
            raise ValueError(f"{where}; true or false is needed")
        said[field] = value
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != int(value):
        raise ValueError(f'{where}; a whole number or "auto" is needed')
    said[field] = int(value)  # 5e8 is written so in many files


def _run(config: dict[str, Any]) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for key, field in COUNTS.items():
        value = config.get(key, AUTO)
        if value == AUTO:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f'{key}={value!r}; a whole number above 0 or "auto" is needed')
        said[field] = value
    clips = config.get("gradient_clipping", AUTO)  # Trainer's own norm, or one of no more bytes
    if clips != AUTO and (isinstance(clips, bool) or not isinstance(clips, (int, float))):
        raise ValueError(f'gradient_clipping={clips!r}; a number or "auto" is needed')
    return said


def _recipe(config: dict[str, Any]) -> str | None:
    known = (*ASIDE, *COUNTS, "gradient_clipping", "bf16", "fp16", "data_types")
    for key, value in config.items():
        if key == "optimizer":
            raise ValueError(
                f"optimizer={value!r}: DeepSpeed's own is not described; without the key Trainer "
                "makes its AdamW"
            )
        if key not in known:
            raise ValueError(f"{key}={value!r} is not described; known: {', '.join(known)}")
    enabled = {name: _enabled(config, name) for name in ("bf16", "fp16")}
    if enabled["fp16"] is True:
        raise ValueError("fp16.enabled=true: its scaler is not described; bf16 is")
    accumulated = (config.get("data_types") or {}).get("grad_accum_dtype")
    if accumulated not in (None, AUTO, "bf16" if enabled["bf16"] else "fp32"):
        raise ValueError(
            f"data_types.grad_accum_dtype={accumulated!r} is not described: gradients add up in "
            "the format of the weights"
        )
    if enabled["bf16"] == AUTO:
        return None
    return "zero" if enabled["bf16"] else "fp32"


def _enabled(config: dict[str, Any], name: str) -> bool | str:
    section = config.get(name) or {}
    value = section.get("enabled", False) if isinstance(section, dict) else section
    if value != AUTO and not isinstance(value, bool):
        raise ValueError(f'{name}.enabled={value!r}; true, false or "auto" is needed')
    return value  # type: ignore[no-any-return]
