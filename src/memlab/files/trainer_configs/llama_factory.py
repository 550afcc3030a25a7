"""LLaMA-Factory's YAML: its own arguments beside those of transformers' Trainer.

Source      LLaMA-Factory, src/llamafactory/hparams/*.py (keys and defaults); model/adapter.py:
            init_adapter (what is trained is upcast); model/model_utils/quantization.py;
            hparams/parser.py: get_train_args
"""

from __future__ import annotations

from ...base.versions import READ
from ..documents import beside, shown
from . import training_arguments
from .rules import LESS, counted, named, noted, one_of, saved, targets, truth, whole
from .said import Said, Trainer, later
from .settled import DOUBLE, EVALUATION, mixed

ATTENTION = {"auto": None, "disabled": "eager", "sdpa": "sdpa", "fa2": "flash_attention_2"}


def _finish(said: Said) -> None:
    stage, kind = said.value("stage"), said.value("finetuning_type")
    try:
        one_of({"pt": 1, "sft": 1}, stage)
        one_of({"lora": 1, "full": 1}, kind)
    except ValueError as error:
        said.problem(f"stage, finetuning_type: {error}")
    said.put("loop", "trainer", "stage")
    if kind == "lora":
        _adapters(said)
    elif said.value("quantization_bit"):
        said.problem(f"quantization_bit: {said.value('quantization_bit')} needs an adapter")
    _formats(said, kind)
    off = truth(said.value("disable_gradient_checkpointing"))
    said.put("checkpoint", "none" if off else "block", "disable_gradient_checkpointing")
    packs = said.value("packing")
    if (packs if packs is not None else stage == "pt") or said.value("neat_packing"):
        said.put("texts", "packed", "packing")
    if said.value("enable_liger_kernel"):
        said.put("loss", "liger", "enable_liger_kernel")
        said.note(LESS.format("enable_liger_kernel"))
    if said.value("val_size") or said.value("eval_dataset"):
        said.note(EVALUATION)
    config = said.value("deepspeed")
    if config:
        named_file = beside(said.path, config) if isinstance(config, str) else config
        said.facts.setdefault("deepspeed", named_file)


def _adapters(said: Said) -> None:
    said.put("lora_rank", whole(said.value("lora_rank")), "lora_rank")
    for key, rule in (("lora_target", targets), ("additional_target", saved)):
        names = said.value(key)
        if names:
            try:
                listed = isinstance(names, str) and names != "all"
                rule(said, key, [n.strip() for n in names.split(",")] if listed else names)
            except ValueError as error:
                said.problem(f"{key}: {error}")
    if said.value("lora_dropout"):
        said.put("lora_dropout", said.value("lora_dropout"), "lora_dropout")
    if said.value("use_dora"):
        said.put("lora_dora", True, "use_dora")
    bits = said.value("quantization_bit")
    if bits is None:
        return
    method = str(said.value("quantization_method")).lower()
    base = "nf4" if bits == 4 else "int8" if bits == 8 else None  # int8 is rehearsed
    if base is None or method != "bnb" or said.value("quantization_type") != "nf4":
        said.problem(
            f"quantization_bit: {shown(bits)}, quantization_type: "
            f"{shown(said.value('quantization_type'))}, quantization_method: {method} are not "
            "described of adapters; 4 or 8, nf4 and bnb are"
        )
        return
    said.put("lora_base", base, "quantization_bit")
    if bits == 4 and said.value("double_quantization"):
        said.note(DOUBLE)


def _formats(said: Said, kind: object) -> None:
    pure = bool(said.value("pure_bf16"))
    keys = ("bf16", "fp16", "pure_bf16")
    try:
        mixed(said, said.value("bf16"), said.value("fp16"), *keys)
    except ValueError as error:
        said.problem(f"bf16, fp16: {error}")
    narrow = "bf16" if pure else said.facts.get("mixed")
    if kind == "full":
        said.facts.setdefault("weights", "bf16" if pure else "fp32")
    elif narrow:
        said.facts.setdefault("weights", narrow)


KEYS = {
    "model_name_or_path": named,
    "cutoff_len": counted("tokens"),
    **{
        key: training_arguments.KEYS[key]
        for key in """per_device_train_batch_size gradient_accumulation_steps optim
        fsdp_config fsdp""".split()
    },
    "flash_attn": lambda said, key, value: (
        said.put("attention", one_of(ATTENTION, str(value)), key)
        if one_of(ATTENTION, str(value))
        else None
    ),
    "use_unsloth_gc": noted(LESS.format("use_unsloth_gc")),
    **dict.fromkeys(
        """stage finetuning_type lora_rank lora_target additional_target lora_dropout use_dora
            quantization_bit quantization_type quantization_method double_quantization bf16 fp16
            pure_bf16 disable_gradient_checkpointing packing neat_packing enable_liger_kernel
            val_size eval_dataset deepspeed""".split(),
        later,
    ),
}
DEFAULTS = {
    "stage": "sft",
    "finetuning_type": "lora",
    "cutoff_len": 2048,
    "lora_rank": 8,
    "lora_target": "all",
    "quantization_type": "nf4",
    "quantization_method": "bnb",
    "double_quantization": True,
    "disable_gradient_checkpointing": False,
    **{
        key: training_arguments.DEFAULTS[key]
        for key in "per_device_train_batch_size gradient_accumulation_steps optim".split()
    },
}
ASIDE = """adapter_name_or_path adapter_folder cache_dir use_fast_tokenizer split_special_tokens
    add_tokens add_special_tokens model_revision low_cpu_mem_usage infer_backend offload_folder
    use_kv_cache infer_dtype hf_hub_token ms_hub_token om_hub_token print_param_status
    trust_remote_code image_max_pixels image_min_pixels video_max_pixels video_min_pixels
    video_fps video_maxlen template dataset dataset_dir media_dir train_on_prompt mask_history
    streaming buffer_size mix_strategy interleave_probs overwrite_cache preprocessing_batch_size
    preprocessing_num_workers max_samples eval_num_beams ignore_pad_token_for_loss
    eval_on_each_dataset tool_format default_system enable_thinking preserve_thinking
    tokenized_path data_shared_file_system lora_alpha loraplus_lr_ratio loraplus_lr_embedding
    use_rslora pissa_init pissa_iter pissa_convert create_new_adapter pref_beta pref_ftx
    pref_loss plot_loss compute_accuracy disable_shuffling early_stopping_steps
    include_effective_tokens_per_second use_swanlab swanlab_project swanlab_workspace
    swanlab_run_name swanlab_mode overwrite_output_dir use_reentrant_gc ray_run_name
    ray_num_workers ray_storage_path ray_storage_filesystem resources_per_worker
    placement_strategy ray_init_kwargs predict_with_generate generation_max_length
    generation_num_beams do_sample temperature top_p top_k max_new_tokens warmup_ratio
    save_safetensors freeze_vision_tower freeze_multi_modal_projector quantization_device_map
    moe_aux_loss_coef rope_scaling enable_torch_profiler""".split()
OFF = """resize_vocab shift_attn mixture_of_depths use_unsloth upcast_layernorm
    upcast_lmhead_output train_from_scratch use_v1_kernels use_kt use_galore use_apollo use_badam
    use_adam_mini use_muon use_llama_pro use_mca use_megatron_bridge use_hyper_parallel
    use_dft_loss use_asft_loss use_eaft_loss freeze_language_model freeze_trainable_layers
    freeze_trainable_modules freeze_extra_modules fp8 ref_model reward_model""".split()
LLAMA_FACTORY = Trainer(
    f"LLaMA-Factory {READ['LLaMA-Factory']}",
    (
        ("model_name_or_path",),
        ("finetuning_type", "cutoff_len", "stage", "lora_target", "quantization_bit"),
    ),
    KEYS,
    frozenset(ASIDE) | training_arguments.ASIDE - KEYS.keys(),
    frozenset(OFF) | training_arguments.OFF - KEYS.keys(),
    _finish,
    DEFAULTS,
)
