"""transformers' TrainingArguments, and TRL's SFTConfig, DPOConfig and GRPOConfig, as JSON.

Source      transformers, training_args.py; trl, trainer/sft_config.py, dpo_config.py,
            grpo_config.py; trainer/utils.py: create_model_from_path (fp32 where a name is given)
"""

from __future__ import annotations

from ...base.versions import PROVEN
from ...run.loops import LOOPS
from ..documents import beside
from .rules import LESS, counted, noted, optimizer, truth, whole
from .said import Said, Trainer, later
from .settled import EVALUATION, fsdp, mixed

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

# A key that one class alone has.
CLASSES = {
    "num_generations": "grpo",
    "precompute_ref_log_probs": "dpo",
    "packing_strategy": "sft",
    "assistant_only_loss": "sft",
    "dataset_text_field": "sft",
}


def _finish(said: Said) -> None:
    loop = said.facts.get("loop") or next(
        (name for key, name in CLASSES.items() if key in said.config), "trainer"
    )
    if loop == "trainer" and "model_init_kwargs" in said.config:
        said.problem("a class of TRL whose loop is not described; known: SFT, DPO and GRPO")
    said.put("loop", loop)
    trl = LOOPS[loop].trl
    for key in ("activation_checkpointing", "gradient_checkpointing"):  # and its older name
        if said.value(key) is not None:
            said.put("checkpoint", "block" if truth(said.value(key)) else "none", key)
    if trl:
        dtype = (said.value("model_init_kwargs") or {}).get("dtype") or "float32"
        words = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}
        if dtype != "auto":
            said.facts.setdefault("weights", words.get(str(dtype).rpartition(".")[2], "fp32"))
        _of_trl(said, loop)
    try:
        narrow = said.value("bf16")
        if trl and narrow is None:  # trl, trainer/base_config.py: bf16 unless fp16
            narrow = not said.value("fp16")
        mixed(said, narrow, said.value("fp16"), "bf16", "fp16")
    except ValueError as error:
        said.problem(f"bf16, fp16: {error}")
    if said.value("use_liger_kernel"):
        said.put("loss", "liger", "use_liger_kernel")
        said.note(LESS.format("use_liger_kernel"))
    if said.value("do_eval") or said.value("eval_strategy") not in (None, "no"):
        said.note(EVALUATION)
    config = said.value("deepspeed")
    if config:
        said.facts.setdefault(
            "deepspeed", beside(said.path, config) if isinstance(config, str) else config
        )


def _of_trl(said: Said, loop: str) -> None:
    longest = said.value("max_length")
    if loop != "grpo" and longest is not None:
        said.put("tokens", whole(longest), "max_length")
    if said.value("packing"):
        said.put("texts", "packed", "packing")
    if loop == "grpo":
        said.put("completion", whole(said.value("max_completion_length") or 512))
        said.note("of grpo, --tokens is a prompt and its completion; the file has the latter alone")
        if said.value("use_vllm") and said.value("vllm_mode") == "colocate":
            said.problem("use_vllm: true with vllm_mode: colocate is not described; server is")
        if said.value("beta"):
            said.put("reference", "model", "beta")
    if loop == "dpo" and said.value("precompute_ref_log_probs"):
        said.put("reference", "precomputed", "precompute_ref_log_probs")


def _sharded(said: Said, key: str, value: Any) -> None:
    """fsdp: "full_shard auto_wrap", a list of such words, or true."""
    words = (
        value.split() if isinstance(value, str) else value if isinstance(value, list) else [value]
    )
    words = [
        str(word).lower().rpartition(".")[2] for word in words if word not in (None, False, "")
    ]
    if not words:
        return
    section = dict(said.value("fsdp_config") or {})
    section.setdefault("offload_params", "offload" in words)
    for name in ("min_num_params", "xla", "xla_fsdp_v2", "xla_fsdp_grad_ckpt", "xla_fsdp_settings"):
        if section.get(name) in (None, False, 0):
            section.pop(name, None)
    fsdp(said, section, "fsdp", "fsdp_config", version=said.value("fsdp_version"))


KEYS = {
    "per_device_train_batch_size": counted("batch"),
    "gradient_accumulation_steps": counted("micro_batches"),
    "optim": optimizer,
    "fsdp": _sharded,
    "activation_offloading": noted(LESS.format("activation_offloading")),
    **dict.fromkeys(
        """activation_checkpointing gradient_checkpointing bf16 fp16 use_liger_kernel do_eval
            eval_strategy deepspeed fsdp_config model_init_kwargs max_length packing
            max_completion_length num_generations precompute_ref_log_probs use_vllm vllm_mode beta
            packing_strategy assistant_only_loss dataset_text_field""".split(),
        later,
    ),
}
DEFAULTS = {
    "per_device_train_batch_size": 8,
    "gradient_accumulation_steps": 1,
    "optim": "adamw_torch_fused",
}
ASIDE = frozenset(
    """max_grad_norm output_dir do_train do_predict overwrite_output_dir eval_steps eval_delay
        eval_on_start eval_accumulation_steps eval_do_concat_batches eval_use_gather_object
        batch_eval_metrics evaluation_strategy per_device_eval_batch_size
        per_gpu_train_batch_size per_gpu_eval_batch_size prediction_loss_only learning_rate
        weight_decay adam_beta1 adam_beta2 adam_epsilon num_train_epochs max_steps
        lr_scheduler_type lr_scheduler_kwargs warmup_ratio warmup_steps log_level
        log_level_replica log_on_each_node logging_dir logging_strategy logging_first_step
        logging_steps logging_nan_inf_filter save_strategy save_steps save_total_limit
        save_safetensors save_on_each_node save_only_model enable_jit_checkpoint
        restore_callback_states_from_checkpoint no_cuda use_cpu use_mps_device seed data_seed
        jit_mode_eval use_ipex bf16_full_eval fp16_full_eval fp16_backend fp16_opt_level
        half_precision_backend tf32 local_rank ddp_backend ddp_timeout
        ddp_find_unused_parameters ddp_bucket_cap_mb ddp_broadcast_buffers ddp_static_graph
        tpu_num_cores tpu_metrics_debug debug dataloader_drop_last dataloader_num_workers
        dataloader_pin_memory dataloader_persistent_workers dataloader_prefetch_factor
        dataloader_in_order dataloader_multiprocessing_context past_index run_name project
        disable_tqdm remove_unused_columns label_names load_best_model_at_end
        metric_for_best_model greater_is_better ignore_data_skip fsdp_min_num_params
        fsdp_transformer_layer_cls_to_wrap accelerator_config optim_args optim_target_modules
        group_by_length train_sampling_strategy length_column_name report_to skip_memory_metrics
        push_to_hub push_to_hub_model_id push_to_hub_organization push_to_hub_token
        resume_from_checkpoint hub_model_id hub_strategy hub_token hub_private_repo
        hub_always_push hub_revision gradient_checkpointing_kwargs include_inputs_for_metrics
        include_for_metrics include_num_input_tokens_seen include_tokens_per_second
        mp_parameters full_determinism torchdynamo ray_scope torch_empty_cache_steps
        use_legacy_prediction_loop dispatch_batches split_batches average_tokens_across_devices
        mixed_precision trackio_space_id trackio_bucket_id trackio_static_space_id
        liger_kernel_config use_cache label_smoothing_factor torch_compile_backend
        torch_compile_mode activation_checkpointing_kwargs dataset_num_proc dataset_kwargs
        chat_template_path eos_token pad_token truncation_mode eval_packing completion_only_loss
        shuffle_dataset pad_to_multiple_of trust_remote_code disable_dropout loss_weights
        precompute_ref_batch_size label_smoothing f_divergence_type f_alpha_divergence_coef
        ld_alpha discopop_tau use_weighting ref_model_mixup_alpha ref_model_sync_steps
        temperature top_p top_k min_p repetition_penalty generation_kwargs chat_template_kwargs
        cache_implementation num_generations_eval generation_batch_size steps_per_generation
        num_iterations epsilon epsilon_high delta importance_sampling_level reward_weights
        scale_rewards multi_objective_aggregation mask_truncated_completions
        top_entropy_quantile max_tool_calling_iterations log_completions log_multimodal
        num_completions_to_print log_unique_prompts log_completions_hub_repo
        vllm_importance_sampling_correction vllm_importance_sampling_mode
        vllm_importance_sampling_cap vllm_importance_sampling_clip_max
        vllm_importance_sampling_clip_min off_policy_mask_threshold use_bias_correction_kl
        vllm_model_impl vllm_enable_sleep_mode vllm_structured_outputs_regex
        vllm_server_base_url vllm_server_host vllm_server_port vllm_server_timeout
        vllm_group_port vllm_gpu_memory_utilization vllm_max_model_length
        vllm_tensor_parallel_size sapo_temperature_neg sapo_temperature_pos vespo_k_pos
        vespo_k_neg vespo_lambda_pos vespo_lambda_neg ds3_gather_for_generation loss_type
        transformers_continuous_batching_config entropy_coef use_adaptive_entropy
        entropy_coef_min entropy_coef_max entropy_coef_delta entropy_target""".split()
)
OFF = frozenset(
    """auto_find_batch_size neftune_noise_alpha torch_compile parallelism_config
        router_aux_loss_coef padding_free sync_ref_model cast_lm_head_to_fp32
        use_transformers_paged use_transformers_continuous_batching""".split()
)
TRAINING_ARGUMENTS = Trainer(
    f"TrainingArguments of transformers {PROVEN['transformers']}, TRL {PROVEN['trl']}",
    (("per_device_train_batch_size",), ("output_dir", "num_train_epochs", "optim")),
    KEYS,
    ASIDE,
    OFF,
    _finish,
    DEFAULTS,
)
