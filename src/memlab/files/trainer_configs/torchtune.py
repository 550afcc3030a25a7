"""torchtune's YAML, whose models and optimizers are components.

Its recipes keep every tensor in the one dtype that the file says, adapters too; whether one device
runs or several is said where it is started, and several run FSDP2.

Source      torchtune, recipes/*.py; recipes/configs; torchtune/models/*/_model_builders.py;
            modules/loss/cross_entropy_loss.py
"""

from __future__ import annotations

import re

from ...base.versions import READ
from ...model import presets
from ..documents import shown
from .rules import alone, counted, noted, one_of, targets, truth, whole
from .said import Said, Trainer, later
from .settled import DOUBLE

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    from .said import Rule

# Builders whose names are not those of the presets, less marks.
MODELS = {"phi3mini": "phi-3-mini-4k", "phi414b": "phi-4", "mistral7b": "mistral-7b-v0.1"}
MODELS |= {"llama3370b": "llama-3.1-70b"}
OPTIMIZERS = {
    "torch.optim.adamw": "adamw",
    "torch.optim.sgd": "sgd",
    "bitsandbytes.optim.adamw8bit": "bnb_adamw8bit",
    "bitsandbytes.optim.pagedadamw": "bnb_paged_adamw",
    "bitsandbytes.optim.pagedadamw8bit": "bnb_paged_adamw8bit",
    "torchao.optim.adamw8bit": "adamw8bit",
    "torchao.optim.adamw4bit": "adamw4bit",
}
LOSSES = {
    "torchtune.modules.loss.linearcrossentropyloss": True,
    "torchtune.modules.loss.cewithchunkedoutputloss": True,
    "torch.nn.crossentropyloss": False,
    "torch.nn.modules.loss.crossentropyloss": False,
}
CHUNKS = (
    "torchtune's loss makes the logits chunk by chunk and keeps those of all for backward; they "
    "are counted as made at once: at most so much"
)
ATTENTION = {"q_proj": "q_proj", "k_proj": "k_proj", "v_proj": "v_proj", "output_proj": "o_proj"}
IN_MODEL = """_component_ lora_attn_modules apply_lora_to_mlp apply_lora_to_output lora_rank
    lora_alpha lora_dropout quantize_base use_dora""".split()


def _section(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or not isinstance(value.get("_component_"), str):
        raise ValueError(f"{shown(value)}; an object with a _component_ is needed")
    return value


def _model(said: Said, key: str, value: Any) -> None:
    section = _section(value)
    name = section["_component_"].rpartition(".")[2]
    kind, _, builder = name.rpartition("lora_")
    plain = re.sub(r"_(base|instruct)$", "", builder).replace("_", "")
    known = {re.sub(r"[^a-z0-9]", "", preset): preset for preset in presets()} | MODELS
    if said.model is None:
        if plain not in known:
            raise ValueError(f"_component_: {name} is no preset; name a model, or a config.json")
        said.model = known[plain]
    for each in section.keys() - set(IN_MODEL):
        raise ValueError(f"{each}: {shown(section[each])} is not described")
    if name.startswith(("lora_", "qlora_")):
        said.facts["adapted"] = (section, kind == "q")


def _adapters(said: Said, section: dict[str, Any], quantized: bool) -> None:
    said.put("lora_rank", whole(section.get("lora_rank", 8)), "model")
    if truth(section.get("apply_lora_to_output", False)):
        raise ValueError("apply_lora_to_output: true is not described")
    names = section.get("lora_attn_modules")
    if not isinstance(names, list):
        raise ValueError("lora_attn_modules; a list of names is needed")
    asked = [one_of(ATTENTION, name) for name in names]
    if truth(section.get("apply_lora_to_mlp", False)):
        asked += ["gate_proj", "up_proj", "down_proj"]
    targets(said, "model", asked)
    if section.get("lora_dropout"):
        said.put("lora_dropout", section["lora_dropout"], "model")
    if truth(section.get("use_dora", False)):
        said.put("lora_dora", True, "model")
    if quantized or truth(section.get("quantize_base", False)):
        said.put("lora_base", "nf4", "model")
        said.note(DOUBLE)
    said.put("lora_dtype", said.facts["torchtune"], "dtype")


def _optimizer(said: Said, key: str, value: Any) -> None:
    section = _section(value)
    word = one_of(OPTIMIZERS, section["_component_"])
    if word == "sgd" and section.get("momentum"):
        word = "momentum"
    said.put("optimizer", word, key)
    if word == "adamw" and truth(section.get("fused") or False):
        said.put("optimizer_impl", "fused", key)


def _loss(said: Said, key: str, value: Any) -> None:
    if one_of(LOSSES, _section(value)["_component_"]):
        said.note(CHUNKS)


def _tokens(said: Said, key: str, value: Any) -> None:
    if isinstance(value, dict) and value.get("max_seq_len") is not None:
        said.put("tokens", whole(value["max_seq_len"]), key)


def _packed(said: Said, key: str, value: Any) -> None:
    """One row of several texts is as wide as `tokens` here: torchtune packs each row by itself."""
    if isinstance(value, dict) and truth(value.get("packed") or False):
        said.note("dataset.packed: true fills each row, which is what is counted")


def _finish(said: Said) -> None:
    said.put("loop", "plain")
    try:
        dtype = one_of({"bf16": "bf16", "fp32": "fp32"}, said.value("dtype"))
        said.facts["torchtune"] = dtype
        said.put("precision", dtype, "dtype")
        if "adapted" in said.facts:
            _adapters(said, *said.facts["adapted"])
    except (ValueError, TypeError) as error:
        said.problem(f"model, dtype: {error}")
    ranks = said.ranks if said.ranks and said.ranks > 1 else None
    tensor = said.value("tensor_parallel_dim") or 1
    if tensor != 1:
        said.put("tensor_parallel", whole(tensor), "tensor_parallel_dim")
    elif ranks:
        said.put("fsdp", ranks, *["fsdp_cpu_offload"] * bool(said.value("fsdp_cpu_offload")))
    said.ranks = None
    if truth(said.value("fsdp_cpu_offload") or False):
        if ranks is None and "fsdp" not in said.given:
            said.problem("fsdp_cpu_offload: true is of several devices; give --ranks N")
        said.put("cpu_offload", "pageable", "fsdp_cpu_offload")


def _switch(option: str, value: object) -> Rule:
    """An option that a true switch says, and a false one does not."""

    def rule(said: Said, key: str, found: Any) -> None:
        if truth(found):
            said.put(option, value, key)

    return rule


KEYS = {
    "model": _model,
    "tokenizer": _tokens,
    "dataset": _packed,
    "batch_size": counted("batch"),
    "gradient_accumulation_steps": counted("micro_batches"),
    "optimizer": _optimizer,
    "loss": _loss,
    "clip_grad_norm": lambda said, key, value: said.put("clip", True, key),
    "enable_activation_checkpointing": lambda said, key, value: said.put(
        "checkpoint", "block" if truth(value) else "none", key
    ),
    "enable_activation_offloading": noted(
        "enable_activation_offloading keeps less on the device: at most so much"
    ),
    "optimizer_in_bwd": _switch("step_in_backward", True),
    "compile": noted("compile is not counted; `memlab trace --compile` follows it"),
    "data_parallel_replicate_dim": alone,
    **dict.fromkeys("dtype fsdp_cpu_offload tensor_parallel_dim".split(), later),
    "data_parallel_shard_dim": lambda said, key, value: (
        setattr(said, "ranks", said.ranks or whole(value)) if value != -1 else None
    ),
}
ASIDE = """tensor_parallel_plan output_dir checkpointer resume_from_checkpoint
    save_adapter_weights_only seed shuffle epochs lr_scheduler max_steps_per_epoch metric_logger
    log_every_n_steps log_peak_memory_stats log_level device profiler custom_sharded_layers
    run_val_every_n_steps dataset_val batch_size_val collate_fn low_cpu_ram
    enable_async_checkpointing save_every_n_epochs save_every_n_steps cudnn_deterministic_mode
    activation_offloading_use_streams name base_model_path datasets dataloader""".split()
OFF = """enable_fp8_training fp8_recipe_name quantizer teacher_model ref_policy_checkpointer
    context_parallel_dim ac_mode ac_option resize_token_embeddings ref_checkpointer
    reward_and_value_model policy_model grpo_samples forward_batch_size ppo_batch_size""".split()
TORCHTUNE = Trainer(
    f"torchtune {READ['torchtune']}",
    (("model",), ("tokenizer", "checkpointer", "enable_activation_checkpointing", "optimizer")),
    KEYS,
    frozenset(ASIDE),
    frozenset(OFF),
    _finish,
    {
        "batch_size": 1,
        "gradient_accumulation_steps": 1,
        "dtype": "bf16",
        "enable_activation_checkpointing": False,
    },
)
