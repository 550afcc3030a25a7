"""axolotl's YAML.

Source      axolotl, src/axolotl/utils/schemas/*.py (keys and defaults);
            utils/config/__init__.py: resolve_dtype; loaders/model.py; core/builders/base.py
The module is long: its table has a word for each of axolotl's 300 keys.
"""

from __future__ import annotations

from ...base.versions import READ
from ..documents import beside, shown
from .rules import (
    LESS,
    alone,
    counted,
    named,
    noted,
    one_of,
    optimizer,
    saved,
    targets,
    whole,
    worded,
)
from .said import Said, Trainer, later
from .settled import DOUBLE, EVALUATION, fsdp

TYPE_CHECKING = False  # as in `typing`, whose import a shell would feel
if TYPE_CHECKING:
    from typing import Any

    from .said import Rule

ROWS = "rows that are added to the tables for tokens are not counted"
WIDE = (
    "without adapters and without flash attention axolotl keeps embeddings, head and norms in fp32 "
    "beside bf16 layers, which is not described; --precision says what to count"
)


def _finish(said: Said) -> None:
    said.put("loop", "dpo" if said.value("rl") == "dpo" else "trainer", "rl")
    _adapters(said)
    _attention(said)
    _formats(said)
    _batches(said)
    if said.value("val_set_size") or said.value("test_datasets"):
        said.note(EVALUATION)
    sharded = said.value("fsdp_config") or ({} if said.value("fsdp") else None)
    if sharded is not None:
        try:
            fsdp(said, dict(sharded), "fsdp_config", version=said.value("fsdp_version"))
        except (ValueError, TypeError) as error:
            said.problem(f"fsdp_config: {error}")
    config = said.value("deepspeed")
    if config:
        said.facts.setdefault(
            "deepspeed", beside(said.path, config) if isinstance(config, str) else config
        )


def _adapters(said: Said) -> None:
    kind = said.value("adapter")
    codes = next((key for key in BASES if said.value(key)), None)
    if not kind:
        if codes:
            said.problem(f"{codes}: true without an adapter trains nothing; say adapter: qlora")
        return
    if kind not in ("lora", "qlora"):
        said.problem(f"adapter: {shown(kind)} is not described; known: lora, qlora")
        return
    if said.value("lora_r") is None:
        said.problem(f"adapter: {kind} needs lora_r")
        return
    try:
        said.put("lora_rank", whole(said.value("lora_r")), "adapter", "lora_r")
        names = said.value("lora_target_modules") or []
        if said.value("lora_target_linear"):
            targets(said, "lora_target_linear", "all")
        elif names:
            targets(said, "lora_target_modules", names)
        elif not said.value("lora_target_parameters"):
            said.problem("lora_target_linear, lora_target_modules: axolotl has no default; say one")
        if codes:
            said.put("lora_base", BASES[codes], codes)
        if codes == "load_in_4bit":
            kwargs = said.value("bnb_config_kwargs") or {}
            if kwargs.get("bnb_4bit_use_double_quant", True):
                said.note(DOUBLE)
        if said.value("peft_use_dora"):
            said.put("lora_dora", True, "peft_use_dora")
        if said.value("lora_dropout"):
            said.put("lora_dropout", said.value("lora_dropout"), "lora_dropout")
        if said.value("lora_modules_to_save"):
            saved(said, "lora_modules_to_save", said.value("lora_modules_to_save"))
    except (ValueError, TypeError, AttributeError) as error:
        said.problem(f"lora_r, lora_target_modules: {error}")


def _attention(said: Said) -> None:
    words = {"flash_attention_2": "flash_attention_2", "sdpa": "sdpa", "eager": "eager"}
    said_so = said.value("attn_implementation")
    if said_so:
        try:
            said.put("attention", one_of(words, said_so), "attn_implementation")
        except ValueError as error:
            said.problem(f"attn_implementation: {error}")
    for key, word in SWITCHES.items():
        if said.value(key):
            said.put("attention", word, key)


BASES = {"load_in_4bit": "nf4", "load_in_8bit": "int8"}  # the second is rehearsed
SWITCHES = {
    "flash_attention": "flash_attention_2",
    "sdp_attention": "sdpa",
    "eager_attention": "eager",
}


def _formats(said: Said) -> None:
    """As resolve_dtype has it, on a card that has bf16."""
    bf16, fp16 = said.value("bf16"), said.value("fp16")
    narrow = bf16 is True or bf16 == "full" or (bf16 == "auto" and not fp16)
    keys = ("bf16", "fp16")
    said.facts.setdefault("format_keys", [said.told(key) for key in keys])
    if narrow or said.value("bfloat16"):
        weights = "bf16"
    elif fp16 or said.value("float16"):
        weights = "fp16"
    else:
        weights = "fp32"
    said.facts.setdefault("weights", weights)
    if narrow or said.value("bfloat16") or fp16:
        said.facts.setdefault("mixed", weights)
    divided = said.value("fsdp_config") or said.value("fsdp") or said.value("deepspeed")
    whole_model = not said.value("adapter") and not divided and weights != "fp32"
    typed = "precision" in said.given or "recipe" in said.given
    if whole_model and not typed and said.options.get("attention") != "flash_attention_2":
        if "attention" not in said.given:
            said.problem(WIDE)


def _batches(said: Said) -> None:
    total, micro = said.value("batch_size"), said.options.get("batch", 1)
    if total and said.value("gradient_accumulation_steps") is None:
        said.put("micro_batches", max(1, whole(total) // micro), "batch_size")
    elif "micro_batches" not in said.options:
        said.put("micro_batches", 1)
    if said.value("sample_packing"):
        said.put("texts", "packed", "sample_packing")
    if said.value("liger_fused_linear_cross_entropy"):
        said.put("loss", "liger", "liger_fused_linear_cross_entropy")
    if said.value("chunked_cross_entropy"):
        said.put("loss", "chunked", "chunked_cross_entropy")
        said.put("loss_chunks", said.value("chunked_cross_entropy_num_chunks") or 8)


def _parallel(option: str) -> Rule:
    def rule(said: Said, key: str, value: Any) -> None:
        if whole(value) > 1:
            said.put(option, whole(value), key)

    return rule


def _shards(said: Said, key: str, value: Any) -> None:
    said.ranks = said.ranks or whole(value)


KEYS = {
    "base_model": named,
    "sequence_len": counted("tokens"),
    "micro_batch_size": counted("batch"),
    "gradient_accumulation_steps": counted("micro_batches"),
    "gradient_checkpointing": worded(
        "checkpoint",
        {True: "block", False: "none", "true": "block", "unsloth": "block", "offload": "block"}
        | {"offload_disk": "block"},
    ),
    "activation_offloading": noted(LESS.format("activation_offloading")),
    "optimizer": optimizer,
    "rl": lambda said, key, value: one_of({"dpo": 1}, value),
    "dp_shard_size": _shards,
    "dp_replicate_size": alone,
    "cut_cross_entropy": noted(LESS.format("cut_cross_entropy")),
    "torch_compile": noted("torch_compile is not counted; `memlab trace --compile` follows it"),
    "tokens": noted(ROWS),
    "resize_token_embeddings_to_32x": noted(ROWS),
    "tensor_parallel_size": _parallel("tensor_parallel"),
    "context_parallel_size": _parallel("context_parallel"),
    **{
        key: noted(LESS.format(key)) for key in "liger_rope liger_rms_norm liger_layer_norm".split()
    },
    **{
        key: noted(LESS.format(key))
        for key in """liger_glu_activation lora_mlp_kernel lora_qkv_kernel lora_o_kernel
        lora_embedding_kernel tiled_mlp flash_attn_cross_entropy""".split()
    },
    **dict.fromkeys(
        """adapter lora_r lora_target_modules lora_target_linear lora_dropout
            lora_modules_to_save lora_target_parameters peft_use_dora load_in_4bit load_in_8bit
            bnb_config_kwargs attn_implementation flash_attention sdp_attention eager_attention
            bf16 fp16 bfloat16 float16 float32 batch_size sample_packing
            liger_fused_linear_cross_entropy chunked_cross_entropy
            chunked_cross_entropy_num_chunks val_set_size test_datasets fsdp fsdp_config
            fsdp_version deepspeed""".split(),
        later,
    ),
}
DEFAULTS = {
    "sequence_len": 512,
    "micro_batch_size": 1,
    "gradient_checkpointing": False,
    "optimizer": "adamw_torch_fused",
    "bf16": "auto",
}
ASIDE = """evaluation_strategy eot_tokens low_cpu_mem_usage use_swanlab swanlab_project
    swanlab_mode swanlab_experiment_name swanlab_description swanlab_log_completions
    max_grad_norm base_model_config base_model_ignore_patterns revision_of_model model_type
    tokenizer_config tokenizer_use_fast tokenizer_legacy tokenizer_type
    tokenizer_use_mistral_common processor_type processor_kwargs tokenizer_save_jinja_files
    trust_remote_code type_of_model is_llama_derived_model is_mistral_derived_model
    is_qwen_derived_model is_falcon_derived_model strict resume_from_checkpoint
    auto_resume_from_checkpoints hub_model_id hub_strategy hub_revision output_dir
    save_safetensors save_first_step datasets dataset_prepared_path dataset_processes
    dataset_num_proc dataset_keep_in_memory dataset_exact_deduplication dataset_shard_num
    dataset_shard_idx shuffle_merged_datasets shuffle_before_merging_datasets
    skip_prepare_dataset num_dataset_shards_to_save push_dataset_to_hub hf_use_auth_token
    dataloader_pin_memory dataloader_num_workers dataloader_prefetch_factor dataloader_drop_last
    remove_unused_columns chat_template chat_template_jinja chat_template_kwargs
    default_system_message special_tokens train_on_inputs group_by_length learning_rate
    embedding_lr embedding_lr_scale weight_decay optim_args lr_scheduler lr_scheduler_kwargs
    lr_quadratic_warmup cosine_min_lr_ratio cosine_constant_lr_ratio lr_div_factor adam_epsilon
    adam_epsilon2 adam_beta1 adam_beta2 adam_beta3 num_epochs max_steps warmup_steps
    warmup_ratio eval_steps evals_per_epoch eval_strategy eval_batch_size eval_sample_packing
    eval_sequence_len eval_table_size eval_max_new_tokens eval_causal_lm_metrics
    do_causal_lm_eval do_bench_eval save_steps saves_per_epoch save_strategy save_total_limit
    save_only_model load_best_model_at_end metric_for_best_model greater_is_better
    early_stopping_patience logging_steps include_tokens_per_second include_tkps
    loss_watchdog_threshold loss_watchdog_patience wandb_mode wandb_project wandb_entity
    wandb_name wandb_run_id wandb_log_model wandb_watch use_wandb use_mlflow mlflow_tracking_uri
    mlflow_experiment_name mlflow_run_name use_comet use_tensorboard use_trackio
    trackio_project_name comet_project_name seed tf32 local_rank world_size device ddp
    ddp_timeout ddp_bucket_cap_mb ddp_broadcast_buffers ddp_find_unused_parameters debug
    gc_steps gc_collect_steps torch_empty_cache_steps gradient_checkpointing_kwargs lora_alpha
    lora_model_dir lora_fan_in_fan_out peft_use_rslora peft_init_lora_weights loraplus_lr_ratio
    loraplus_lr_embedding merge_lora merge_method pad_to_sequence_len pad_to_multiple_of
    excess_length_strategy min_sample_len max_prompt_len sample_packing_group_size
    sample_packing_bin_size sample_packing_sequentially sample_packing_eff_est
    sample_packing_mp_start_method curriculum_sampling pretrain_multipack_buffer_size streaming
    streaming_multipack_buffer_size total_num_tokens total_supervised_tokens is_preprocess
    preprocess_iterable plugins profiler_steps profiler_steps_start neftune_noise_alpha
    neftune_alpha noisy_embedding_alpha dpo_label_smoothing dpo_loss_type dpo_loss_weights
    rl_beta orpo_alpha added_tokens_overrides accelerator_config
    experimental_skip_move_to_device heads_k_stride ring_attn_func use_ray ray_run_name
    ray_num_workers resources_per_worker fsdp_final_state_dict_type mean_resizing_embeddings
    axolotl_config_path dataset_prepared_hash hub_private_repo tokens_per_second""".split()
OFF = """gptq relora relora_prune_ratio quantize_moe_experts torch_compile_backend
    torch_compile_mode fp8 xformers_attention flex_attention sage_attention flash_optimum
    sdpa_varlen fused_attn_kernel layer_offloading selective_checkpointing unfrozen_parameters
    lora_on_cpu peft_layers_to_transform peft_layers_pattern peft_trainable_token_indices
    lora_rank_pattern peft loftq_config reward_model process_reward_model qat trl vllm ebft
    precompute_ref_log_probs dpo_use_liger_kernel dpo_padding_free auto_find_batch_size
    batch_flattening sequence_parallel_degree torchdistx_path optim_target_modules
    cfg_fp32_norms fp32_norms use_onebitllms model_quantization_config reinit_weights
    deepcompile qlora_sharded_model_loading num_labels is_multimodal embeddings_skip_upcast
    shrink_embeddings flash_attn_fuse_mlp pretraining_dataset""".split()
AXOLOTL = Trainer(
    f"axolotl {READ['axolotl']}",
    (("base_model",), ("sequence_len", "micro_batch_size", "datasets", "adapter", "learning_rate")),
    KEYS,
    frozenset(ASIDE),
    frozenset(OFF),
    _finish,
    DEFAULTS,
)
