"""Configs of trainers: what each key comes to, what is taken where it is not said, what is refused.

The files here are written for these tests, after the documentation of each trainer.
"""

import dataclasses
import json
import os
import pickle
import shlex
import zipfile

import pytest
from described import described_alone

from memlab.cli import main, parser
from memlab.cli.config_argument import model_of
from memlab.files import documents
from memlab.files.trainer_configs import TRAINERS, read, trainer_of
from memlab.files.trainer_configs.accelerate import ACCELERATE
from memlab.files.trainer_configs.axolotl import AXOLOTL
from memlab.files.trainer_configs.llama_factory import LLAMA_FACTORY
from memlab.files.trainer_configs.torchtune import MODELS, TORCHTUNE
from memlab.files.trainer_configs.training_arguments import TRAINING_ARGUMENTS

yaml = pytest.importorskip("yaml")

AXOLOTL_FILE = """
base_model: llama-3-8b
adapter: qlora
load_in_4bit: true
lora_r: 32
lora_alpha: 16
lora_target_modules: [q_proj, v_proj]
sequence_len: 1024
micro_batch_size: 2
gradient_accumulation_steps: 4
gradient_checkpointing: true
flash_attention: true
optimizer: paged_adamw_8bit
learning_rate: 0.0002
datasets:
  - {path: my/texts, type: alpaca}
wandb_project: mine
"""
LLAMA_FACTORY_FILE = """
model_name_or_path: meta-llama/Meta-Llama-3-8B
stage: sft
do_train: true
finetuning_type: lora
lora_rank: 16
lora_target: q_proj,v_proj
dataset: mine
template: llama3
cutoff_len: 1024
per_device_train_batch_size: 1
bf16: true
output_dir: there
"""
TORCHTUNE_FILE = """
model:
  _component_: torchtune.models.llama3_2.lora_llama3_2_1b
  lora_attn_modules: [q_proj, v_proj, output_proj]
  apply_lora_to_mlp: True
  lora_rank: 8
tokenizer: {_component_: torchtune.models.llama3.llama3_tokenizer, max_seq_len: 1024}
batch_size: 2
batch_size_val: ${batch_size}
optimizer: {_component_: torch.optim.AdamW, fused: True, lr: 2e-5}
loss: {_component_: torchtune.modules.loss.LinearCrossEntropyLoss}
gradient_accumulation_steps: 8
enable_activation_checkpointing: True
dtype: bf16
epochs: 1
"""
TRAINING_ARGUMENTS_FILE = """
output_dir: there
per_device_train_batch_size: 2
num_train_epochs: 1
"""
ACCELERATE_FILE = """
compute_environment: LOCAL_MACHINE
distributed_type: FSDP
fsdp_config:
  fsdp_version: 2
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_reshard_after_forward: true
mixed_precision: bf16
num_machines: 1
num_processes: 8
"""
FILES = {
    AXOLOTL.called: AXOLOTL_FILE,
    LLAMA_FACTORY.called: LLAMA_FACTORY_FILE,
    TORCHTUNE.called: TORCHTUNE_FILE,
    TRAINING_ARGUMENTS.called: TRAINING_ARGUMENTS_FILE,
    ACCELERATE.called: ACCELERATE_FILE,
}
AS = {
    AXOLOTL.called: "llama-3-8b --tokens 1024 --batch 2 --micro-batches 4 --checkpoint block "
    "--optimizer bnb_paged_adamw8bit --loop trainer --lora-rank 32 --lora-targets q,v "
    "--lora-base nf4 --attention flash_attention_2 --precision bf16",
    LLAMA_FACTORY.called: "llama-3-8b --tokens 1024 --batch 1 --micro-batches 1 --optimizer adamw "
    "--optimizer-impl fused --loop trainer --lora-rank 16 --lora-targets q,v --checkpoint block "
    "--precision bf16",
    TORCHTUNE.called: "llama-3.2-1b --tokens 1024 --batch 2 --micro-batches 8 --optimizer adamw "
    "--optimizer-impl fused --checkpoint block --loop plain --precision bf16 --lora-rank 8 "
    "--lora-targets q,v,out,gate,up,down --lora-dtype bf16",
    TRAINING_ARGUMENTS.called: "qwen2.5-0.5b --batch 2 --micro-batches 1 --optimizer adamw "
    "--optimizer-impl fused --loop trainer --tokens 512",
    ACCELERATE.called: "qwen2.5-0.5b --fsdp 8 --precision fp32 --param-dtype bf16 --tokens 512",
}
NAMELESS = (TRAINING_ARGUMENTS, ACCELERATE)  # which name no model
every = pytest.mark.parametrize("trainer", TRAINERS, ids=lambda one: one.called.split()[0])


def typed(trainer, path):
    """What is typed to ask of a file."""
    beside = f"qwen2.5-0.5b --tokens 512 --trainer-config {path}"
    return beside if trainer in NAMELESS else str(path)


def said(config, path="a.yaml", given=(), model=None, ranks=None):
    """What is read of a file that says this."""
    words = config if isinstance(config, str) else json.dumps(config)
    with open(path, "w", encoding="utf-8") as file:
        file.write(words)
    return read([path], given, model_of, model, ranks)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@every
def test_a_file_is_the_command_by_hand(trainer, tmp_path, capsys):
    """To the byte: the document that --json prints."""
    path = tmp_path / "a file.txt"  # known by what it holds
    path.write_text(FILES[trainer.called])
    if trainer not in NAMELESS:
        path = path.rename(tmp_path / "a file.yaml")
    words = shlex.split(typed(trainer, shlex.quote(str(path))))
    assert main(["estimate", *words]) == 0
    shown = capsys.readouterr().out
    assert f"\nas: memlab estimate {AS[trainer.called]}\n" in shown
    assert f"{path}, {trainer.called}: read " in shown
    assert main(["estimate", *words, "--json"]) == 0
    found = capsys.readouterr()
    assert found.err.endswith(f"as: memlab estimate {AS[trainer.called]}\n")
    assert main(["estimate", *AS[trainer.called].split(), "--json"]) == 0
    assert found.out == capsys.readouterr().out


def test_fit_takes_one_too(tmp_path, capsys):
    (tmp_path / "axolotl.yaml").write_text(AXOLOTL_FILE)
    status = main(["fit", "axolotl.yaml", "--on", "RTX 4090"])
    shown = capsys.readouterr().out
    assert "as: memlab fit llama-3-8b " in shown and "--on 'RTX 4090'" in shown
    assert main(["fit", *AS[AXOLOTL.called].split(), "--on", "RTX 4090"]) == status
    assert shown.startswith(capsys.readouterr().out.splitlines()[0])


@every
def test_a_file_is_known_by_its_keys(trainer):
    config = yaml.safe_load(FILES[trainer.called])
    assert trainer_of(config) is trainer
    assert trainer_of(config | {"model_type": "llama", "architectures": []}) is None  # a model's


def test_what_was_typed_wins(tmp_path, capsys):
    (tmp_path / "axolotl.yaml").write_text(AXOLOTL_FILE)
    more = "--batch 1 --lora-rank 8 --recipe fp32 --attention sdpa --checkpoint none"
    assert main(["estimate", "axolotl.yaml", *more.split()]) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    assert "--batch 2" not in line and "--precision" not in line and "--lora-targets q,v" in line
    assert all(word in line for word in more.split())
    (tmp_path / "accelerate.yaml").write_text(ACCELERATE_FILE)
    words = "estimate qwen2.5-0.5b --tokens 64 --trainer-config accelerate.yaml --fsdp 2".split()
    assert main(words) == 0
    assert "--fsdp 2" in capsys.readouterr().out.splitlines()[-1]


# One value a key, with which something else is read than without.
VALUES = {
    AXOLOTL.called: {
        "base_model": "qwen2.5-0.5b",
        "sequence_len": 99,
        "micro_batch_size": "3",
        "gradient_accumulation_steps": 2,
        "gradient_checkpointing": False,
        "activation_offloading": True,
        "optimizer": "adamw_torch",
        "rl": "dpo",
        "dp_shard_size": 4,
        "dp_replicate_size": 2,
        "cut_cross_entropy": True,
        "torch_compile": "auto",
        "tokens": ["<|new|>"],
        "resize_token_embeddings_to_32x": True,
        "tensor_parallel_size": 2,
        "context_parallel_size": 2,
        "liger_rope": True,
        "liger_rms_norm": True,
        "liger_layer_norm": True,
        "liger_glu_activation": True,
        "lora_mlp_kernel": True,
        "lora_qkv_kernel": True,
        "lora_o_kernel": True,
        "lora_embedding_kernel": True,
        "tiled_mlp": True,
        "flash_attn_cross_entropy": True,
        "adapter": "dora",
        "lora_r": 8,
        "lora_target_modules": ["k_proj"],
        "lora_target_linear": True,
        "lora_dropout": 0.1,
        "lora_modules_to_save": ["embed_tokens", "lm_head"],
        "peft_use_dora": True,
        "load_in_4bit": False,
        "bnb_config_kwargs": {"bnb_4bit_use_double_quant": False},
        "attn_implementation": "sdpa",
        "flash_attention": False,
        "bf16": False,
        "sample_packing": True,
        "liger_fused_linear_cross_entropy": True,
        "chunked_cross_entropy": True,
        "val_set_size": 0.1,
        "test_datasets": [{"path": "x"}],
        "fsdp": ["full_shard"],
        "fsdp_config": {"fsdp_version": 2},
        "deepspeed": "zero2.json",
    },
    LLAMA_FACTORY.called: {
        "model_name_or_path": "qwen2.5-0.5b",
        "cutoff_len": 99,
        "per_device_train_batch_size": 3,
        "gradient_accumulation_steps": 3,
        "optim": "adamw_bnb_8bit",
        "flash_attn": "fa2",
        "use_unsloth_gc": True,
        "stage": "ppo",
        "finetuning_type": "full",
        "lora_rank": 9,
        "lora_target": "all",
        "additional_target": "embed_tokens",
        "lora_dropout": 0.1,
        "use_dora": True,
        "quantization_bit": 4,
        "bf16": False,
        "disable_gradient_checkpointing": True,
        "packing": True,
        "neat_packing": True,
        "enable_liger_kernel": True,
        "val_size": 0.1,
        "eval_dataset": "mine",
        "deepspeed": "zero2.json",
        "fsdp": "full_shard",
    },
    TORCHTUNE.called: {
        "model": {"_component_": "torchtune.models.qwen2_5.qwen2_5_0_5b"},
        "tokenizer": {"max_seq_len": 99},
        "dataset": {"packed": True},
        "batch_size": 3,
        "gradient_accumulation_steps": 2,
        "optimizer": {"_component_": "bitsandbytes.optim.PagedAdamW8bit"},
        "loss": {"_component_": "torch.nn.CrossEntropyLoss"},
        "clip_grad_norm": 1.0,
        "enable_activation_checkpointing": False,
        "enable_activation_offloading": True,
        "optimizer_in_bwd": True,
        "compile": True,
        "dtype": "fp32",
        "fsdp_cpu_offload": True,
        "tensor_parallel_dim": 2,
        "data_parallel_shard_dim": 4,
        "data_parallel_replicate_dim": 2,
    },
    TRAINING_ARGUMENTS.called: {
        "per_device_train_batch_size": 3,
        "gradient_accumulation_steps": 3,
        "optim": "adamw_torch",
        "fsdp": "full_shard auto_wrap",
        "activation_offloading": True,
        "activation_checkpointing": True,
        "gradient_checkpointing": True,
        "bf16": True,
        "fp16": True,
        "use_liger_kernel": True,
        "do_eval": True,
        "eval_strategy": "steps",
        "deepspeed": "zero2.json",
        "model_init_kwargs": {"dtype": "bfloat16"},
        "num_generations": 8,
        "precompute_ref_log_probs": True,
        "packing_strategy": "bfd",
        "assistant_only_loss": False,
        "dataset_text_field": "text",
    },
    ACCELERATE.called: {
        "distributed_type": "MULTI_GPU",
        "num_processes": 4,
        "mixed_precision": "no",
        "fsdp_config": {"fsdp_version": 2, "fsdp_offload_params": True},
    },
}
# Keys that count beside another one alone: the other, and what is read of both.
BESIDE = {
    AXOLOTL.called: {
        "fp16": {"bf16": False},
        "bfloat16": {"bf16": False},
        "float16": {"bf16": False},
        "float32": None,  # as without bf16 and fp16
        "sdp_attention": {"flash_attention": False},
        "eager_attention": {"flash_attention": False},
        "batch_size": {"gradient_accumulation_steps": None},
        "lora_target_parameters": {"lora_target_modules": None},
        "chunked_cross_entropy_num_chunks": {"chunked_cross_entropy": True},
        "fsdp_version": {"fsdp": ["full_shard"]},
        "load_in_8bit": {"load_in_4bit": False},
    },
    LLAMA_FACTORY.called: {
        "fp16": {"bf16": False},
        "quantization_type": {"quantization_bit": 4},
        "quantization_method": {"quantization_bit": 4},
        "double_quantization": {"quantization_bit": 4},
        "pure_bf16": {"bf16": False, "finetuning_type": "full"},
        "fsdp_config": {"fsdp": "full_shard"},
    },
    TORCHTUNE.called: {},
    TRAINING_ARGUMENTS.called: {
        "fsdp_config": {"fsdp": "full_shard"},
        "max_length": {"packing_strategy": "bfd"},
        "packing": {"packing_strategy": "bfd"},
        "max_completion_length": {"num_generations": 8},
        "use_vllm": {"num_generations": 8, "vllm_mode": "colocate"},
        "vllm_mode": {"num_generations": 8, "use_vllm": True},
        "beta": {"num_generations": 8},
    },
    ACCELERATE.called: {"deepspeed_config": {"distributed_type": "DEEPSPEED"}},
}
SECOND = {
    "batch_size": 16,
    "lora_target_parameters": ["mlp.experts.gate_up_proj"],
    "chunked_cross_entropy_num_chunks": 3,
    "fsdp_version": 2,
    "quantization_type": "fp4",
    "quantization_method": "hqq",
    "double_quantization": False,
    "fsdp_config": {"fsdp_version": 2},
    "max_length": 77,
    "max_completion_length": 77,
    "beta": 0.1,
    "vllm_mode": "colocate",
    "deepspeed_config": {"zero_stage": 3},
}


def seen(trainer, config):
    """All that is read of a config: what it comes to, or what is wrong with it."""
    try:
        found = said(config, model="qwen2.5-0.5b" if trainer in NAMELESS else None)
    except ValueError as error:
        return str(error)
    return found.model, found.options, found.notes, found.facts.get("packed")


@every
def test_every_key_of_a_table_counts(trainer):
    """A key that changes nothing here stands in the table of what has no bearing."""
    base = yaml.safe_load(FILES[trainer.called])
    beside = BESIDE[trainer.called]
    assert VALUES[trainer.called].keys() | beside.keys() == set(trainer.keys)
    for key, value in VALUES[trainer.called].items():
        assert seen(trainer, base | {key: value}) != seen(trainer, base), key
    for key, others in beside.items():
        if others is not None:
            config = base | others
            config.pop(key, None)
            told = config | {key: SECOND.get(key, True)}
            assert seen(trainer, told) != seen(trainer, config), key


@every
def test_what_has_no_bearing_changes_nothing_and_is_named(trainer):
    base = yaml.safe_load(FILES[trainer.called])
    before = seen(trainer, base)
    for key in trainer.aside - base.keys():
        assert seen(trainer, base | {key: "anything"}) == before, key
    for key in trainer.off:
        assert seen(trainer, base | {key: False}) == before, key
    assert not trainer.off & trainer.aside and not trainer.keys.keys() & (
        trainer.off | trainer.aside
    )


@every
def test_what_is_described_only_off_is_refused_all_at_once(trainer):
    keys = sorted(trainer.off)
    told = seen(trainer, yaml.safe_load(FILES[trainer.called]) | dict.fromkeys(keys, True))
    for key in keys:
        assert f"{key}: true is not described; leave it off" in told


@every
def test_unknown_keys_are_listed_in_one_answer(trainer, capsys):
    config = yaml.safe_load(FILES[trainer.called]) | {"zzz_one": 1, "zzz_two": True}
    with open("a.yaml", "w") as file:
        yaml.safe_dump(config, file)
    assert main(["estimate", *shlex.split(typed(trainer, "a.yaml"))]) == 0
    assert "not known here, not counted: zzz_one, zzz_two\n" in capsys.readouterr().out


def test_slips_are_refused_all_at_once():
    config = yaml.safe_load(AXOLOTL_FILE) | {"micro_batch_sizes": 8, "sequence_length": 9}
    config["optimizer"] = "came_pytorch"
    with pytest.raises(ValueError) as error:
        said(config)
    words = str(error.value)
    assert "micro_batch_sizes: not known here; did you mean micro_batch_size?" in words
    assert "sequence_length: not known here; did you mean sequence_len?" in words
    assert "optimizer: came_pytorch is not described; known: adamw_torch, " in words


DEFAULT = {
    AXOLOTL.called: (
        {"base_model": "llama-3-8b", "datasets": [], "flash_attention": True},
        {"tokens": 512, "batch": 1, "micro_batches": 1, "checkpoint": "none", "optimizer": "adamw"}
        | {"optimizer_impl": "fused", "loop": "trainer", "attention": "flash_attention_2"}
        | {"precision": "bf16"},
    ),
    LLAMA_FACTORY.called: (
        {"model_name_or_path": "llama-3-8b", "stage": "sft"},
        {"tokens": 2048, "batch": 8, "micro_batches": 1, "optimizer": "adamw"}
        | {"optimizer_impl": "fused", "loop": "trainer", "lora_rank": 8, "checkpoint": "block"}
        | {"lora_targets": "q,k,v,out,gate,up,down"},
    ),
    TORCHTUNE.called: (
        {"model": {"_component_": "torchtune.models.llama3.llama3_8b"}, "tokenizer": {}},
        {"batch": 1, "micro_batches": 1, "checkpoint": "none", "loop": "plain"}
        | {"precision": "bf16"},
    ),
    TRAINING_ARGUMENTS.called: (
        {"output_dir": "there", "per_device_train_batch_size": None, "num_train_epochs": 1},
        {"batch": 8, "micro_batches": 1, "optimizer": "adamw", "optimizer_impl": "fused"}
        | {"loop": "trainer"},
    ),
    ACCELERATE.called: ({"distributed_type": "NO", "num_processes": 1}, {}),
}


@every
def test_what_is_not_said_is_the_trainers_default(trainer):
    config, options = DEFAULT[trainer.called]
    found = said(config, model="llama-3-8b" if trainer in NAMELESS else None)
    assert found.options == options
    defaults = [key for key in trainer.defaults if f"{key} " in found.lines[0]]
    assert defaults or trainer is ACCELERATE


def test_llama_factorys_full_training_is_upcast():
    """model/adapter.py: what is trained is fp32 under autocast, but for pure_bf16."""
    base = {"model_name_or_path": "llama-3-8b", "stage": "sft", "finetuning_type": "full"}
    formats = {
        "autocast-bf16": {"bf16": True},
        "autocast-fp16": {"fp16": True},
        "bf16": {"pure_bf16": True},
        "fp32": {},
    }
    for precision, config in formats.items():
        assert said(base | config).options["precision"] == precision


def test_peft_matches_the_names_of_layers():
    base = yaml.safe_load(AXOLOTL_FILE)
    pattern = r".*\.(mlp|self_attn)\.(up|down|q)_proj"
    for names, ours in ((pattern, "q,up,down"), (["self_attn.o_proj", "odd"], "out")):
        assert said(base | {"lora_target_modules": names}).options["lora_targets"] == ours
    for names in (r"(up|down)_proj", "(" * 40, "x" * 300, ["odd"], [1]):
        with pytest.raises(ValueError, match="lora_target_modules: "):
            said(base | {"lora_target_modules": names})


def test_axolotls_wide_embeddings_are_refused_with_a_way_out():
    config = {"base_model": "llama-3-8b", "datasets": [], "sequence_len": 64}
    with pytest.raises(ValueError, match="embeddings, head and norms in fp32.*--precision says"):
        said(config)
    assert "precision" not in said(config, given={"precision": "fp32"}).options


def test_devices_of_one_file_and_formats_of_another(tmp_path, capsys):
    """accelerate's FSDP and the bf16 of TrainingArguments are one policy."""
    (tmp_path / "acc.yaml").write_text(ACCELERATE_FILE.replace("mixed_precision: bf16", ""))
    arguments = {"output_dir": "x", "per_device_train_batch_size": 1, "bf16": True}
    arguments |= {"gradient_accumulation_steps": 4}
    (tmp_path / "args.json").write_text(json.dumps(arguments))
    words = "estimate qwen2.5-0.5b --tokens 64 --trainer-config args.json --trainer-config acc.yaml"
    assert main(words.split()) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    assert "--fsdp 8 --gradient-sync last --precision fp32 --param-dtype bf16" in line


def test_accelerates_processes_are_ranks():
    config = {"distributed_type": "MULTI_GPU", "num_processes": 4, "mixed_precision": "no"}
    assert said(config, model="llama-3-8b").options == {"ranks": 4}
    inline = {"zero_stage": 3, "offload_optimizer_device": "cpu", "zero3_init_flag": True}
    config |= {
        "distributed_type": "DEEPSPEED",
        "deepspeed_config": inline,
        "mixed_precision": "bf16",
    }
    with open("acc.yaml", "w") as file:
        yaml.safe_dump(config, file)
    words = "estimate llama-3-8b --tokens 64 --loop trainer --trainer-config acc.yaml".split()
    options = parser("estimate").parse_args(words)
    assert (options.zero, options.deepspeed, options.recipe, options.ranks) == (3, True, "zero", 4)
    assert options.offload_optimizer == "cpu"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"distributed_type": "MEGATRON_LM"}, "distributed_type: MEGATRON_LM: MEGATRON_LM is not"),
        ({"fsdp_config": {}}, "FSDP 1 is not described: fsdp_version: 2 is"),
        ({"fsdp_config": {"fsdp_version": 2, "fsdp_odd": 1}}, "odd: 1 of FSDP is not described"),
        (
            {"mixed_precision": "fp8"},
            "mixed_precision: fp8 is not described; known: no, bf16",
        ),
        ({"num_processes": 0}, "0; a whole number of at least 1 is needed"),
    ],
    ids=str,
)
def test_devices_that_are_not_described(change, message):
    with pytest.raises(ValueError) as error:
        said(yaml.safe_load(ACCELERATE_FILE) | change, model="llama-3-8b")
    assert message in str(error.value)


def test_devices_need_to_be_counted():
    config = yaml.safe_load(AXOLOTL_FILE) | {"fsdp_config": {"fsdp_version": 2}}
    with pytest.raises(ValueError, match="on how many devices it is launched; give --ranks N"):
        said(config)


def test_a_refusal_of_the_command_names_the_keys(tmp_path, capsys):
    config = yaml.safe_load(AXOLOTL_FILE) | {"fsdp_config": {"fsdp_version": 2}, "fsdp": ["x"]}
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(config))
    with described_alone():
        assert main("estimate a.yaml --ranks 2 --optimizer adamw".split()) == 2
    line = capsys.readouterr().err
    assert "--lora-base nf4 is not described beside FSDP2" in line
    assert 'a.yaml: load_in_4bit: true, fsdp_config: {"fsdp_version": 2}; without ' in line


def test_a_file_without_a_model_says_where_to_name_one(tmp_path, capsys):
    (tmp_path / "acc.yaml").write_text(ACCELERATE_FILE)
    assert main(["estimate", "acc.yaml"]) == 2
    assert "no model is named; say memlab estimate MODEL --trainer-config acc.yaml" in (
        capsys.readouterr().err
    )
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 2}}')
    assert main(["estimate", "llama-3-8b", "--trainer-config", "ds.json"]) == 2
    assert "DeepSpeed's is --deepspeed-config" in capsys.readouterr().err


def test_a_model_that_is_not_known_is_told_as_by_the_command(tmp_path, capsys):
    config = yaml.safe_load(AXOLOTL_FILE) | {"base_model": "some/model"}
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(config))
    assert main(["estimate", "a.yaml"]) == 2
    assert "memlab reads no hub: get its config" in capsys.readouterr().err


def test_torchtunes_builders_are_presets():
    from memlab.model import presets

    assert set(MODELS.values()) <= set(presets())
    names = {"gemma2.gemma2_9b": "gemma-2-9b", "phi3.phi3_mini": "phi-3-mini-4k"}
    names |= {"qwen2_5.qwen2_5_14b_instruct": "qwen2.5-14b", "qwen3.qwen3_0_6b_base": "qwen3-0.6b"}
    names |= {"llama3_1.llama3_1_405b": "llama-3.1-405b", "mistral.mistral_7b": "mistral-7b-v0.1"}
    for builder, preset in names.items():
        config = {"model": {"_component_": f"torchtune.models.{builder}"}, "tokenizer": {}}
        assert said(config).model == preset
    with pytest.raises(ValueError, match="qwen2_7b is no preset; name a model"):
        said({"model": {"_component_": "torchtune.models.qwen2.qwen2_7b"}, "tokenizer": {}})
    quantized = yaml.safe_load(TORCHTUNE_FILE)
    quantized["model"]["_component_"] = "torchtune.models.llama3_2.qlora_llama3_2_1b"
    assert said(quantized).options["lora_base"] == "nf4"


def test_a_reference_is_followed_and_not_for_ever():
    config = yaml.safe_load(TORCHTUNE_FILE)
    config |= {"batch_size": "${tokenizer.max_seq_len}"}
    assert said(config).options["batch"] == 1024
    config |= {"batch_size": "${epochs}", "epochs": "${batch_size}"}
    with pytest.raises(ValueError, match="a whole number of at least 1"):
        said(config)


# transformers' and TRL's own classes


def classes():
    trl = pytest.importorskip("trl")
    transformers = pytest.importorskip("transformers")
    return {
        "trainer": transformers.TrainingArguments,
        "sft": trl.SFTConfig,
        "dpo": trl.DPOConfig,
        "grpo": trl.GRPOConfig,
    }


def test_the_table_has_every_argument_of_the_installed_classes():
    table = TRAINING_ARGUMENTS
    known = table.keys.keys() | table.aside | table.off
    for loop, one in classes().items():
        fields = {field.name: field.default for field in dataclasses.fields(one)}
        assert fields.keys() - known == set(), loop
        for key, value in table.defaults.items():
            assert loop != "trainer" or fields[key] in (value, dataclasses.MISSING, None), key


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("loop", ["trainer", "sft", "dpo", "grpo"])
def test_arguments_are_read_back_from_json_and_from_torchs_file(loop, tmp_path):
    import torch

    more = {"num_generations": 2} if loop == "grpo" else {}
    made = classes()[loop](
        output_dir=str(tmp_path / "out"),
        per_device_train_batch_size=2,
        gradient_accumulation_steps=3,
        gradient_checkpointing=True,
        use_cpu=True,
        **more,
    )
    (tmp_path / "args.json").write_text(made.to_json_string())
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    torch.save(made, folder / "training_args.bin")
    found = [
        read([path], (), model_of, "llama-3-8b").options
        for path in ("args.json", "checkpoint", "checkpoint/training_args.bin")
    ]
    assert found[0] == found[1] == found[2]
    options = found[0]
    assert (options["loop"], options["batch"], options["micro_batches"]) == (loop, 2, 3)
    assert options["checkpoint"] == "block" and options["optimizer"] == "adamw"
    assert options.get("tokens") == (1024 if loop in ("sft", "dpo") else None)


def test_a_folder_has_the_model_and_the_adapters_too(tmp_path, capsys):
    path = arguments(tmp_path / "run")
    adapter = {"peft_type": "LORA", "r": 4, "lora_alpha": 8, "target_modules": ["q_proj"]}
    adapter["base_model_name_or_path"] = "Qwen/Qwen2.5-0.5B"
    (path.parent / "adapter_config.json").write_text(json.dumps(adapter))
    assert main(["estimate", "run", "--tokens", "64"]) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.startswith("as: memlab estimate qwen2.5-0.5b ") and "--adapter run" in line


class Made:
    """Pickled as a call of what is named, with a state."""

    def __init__(self, called, given, state=None):
        self.reduced = (called, given) if state is None else (called, given, state)

    def __reduce__(self):
        return self.reduced


class Arguments:
    """Pickled as an object with a state."""


def arguments(folder, state=None, data=None):
    """A training_args.bin as torch.save lays it out."""
    folder.mkdir(exist_ok=True)
    if data is None:
        made = Arguments()
        made.__dict__.update(state or {"per_device_train_batch_size": 2, "output_dir": "x"})
        data = pickle.dumps(made, protocol=2)
    path = folder / "training_args.bin"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("training_args/data.pkl", data)
    return path


def test_nothing_of_a_pickle_runs(tmp_path):
    target = tmp_path / "was run"
    state = {"per_device_train_batch_size": 2, "output_dir": Made(os.mkdir, (str(target),))}
    path = arguments(tmp_path / "a", state)
    assert read([str(path)], (), model_of, "llama-3-8b").options["batch"] == 2
    path = arguments(tmp_path / "a", data=pickle.dumps(Made(os.mkdir, (str(target),))))
    with pytest.raises(ValueError, match="holds no arguments of a trainer"):
        read([str(path)], (), model_of, "llama-3-8b")
    assert not target.exists()


def test_a_pickle_that_holds_itself_ends(tmp_path):
    wide = [1] * 1000
    for _ in range(4):
        wide = [wide] * 1000
    path = arguments(tmp_path / "a", {"per_device_train_batch_size": 2, "label_names": wide})
    assert read([str(path)], (), model_of, "llama-3-8b").options["batch"] == 2


def test_damaged_arguments_are_refused(tmp_path):
    path = arguments(tmp_path / "a")
    whole = path.read_bytes()
    for data in (whole[: len(whole) // 2], whole[:4]):
        path.write_bytes(data)
        with pytest.raises(ValueError, match="no training_args.bin"):
            read([str(path)], (), model_of, "llama-3-8b")
    arguments(tmp_path / "a", data=b"\x80\x02]q\x00.")
    with pytest.raises(ValueError, match="holds no arguments"):
        read([str(path)], (), model_of, "llama-3-8b")
    arguments(tmp_path / "a", data=b"\x80\x02" + b"]" * 300_000)
    with pytest.raises(ValueError):
        read([str(path)], (), model_of, "llama-3-8b")


# Hostile text

LAUGHS = "a: &a [x,x]\n" + "\n".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]" for i in range(12)
)
MERGED = "a: &a {x: 1}\n" + "\n".join(
    f"{chr(98 + i)}: &{chr(98 + i)} {{<<: [{','.join(['*' + chr(97 + i)] * 9)}]}}"
    for i in range(12)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LAUGHS, "16 aliases or 20 levels are not read"),
        (MERGED, "16 aliases or 20 levels are not read"),
        ("a: " + "[" * 3000, "16 aliases or 20 levels are not read"),
        ("{" + '"a":[' * 3000, "no JSON"),
        ("[" * 100_000, "no JSON: it is nested too deeply"),
        ("a: [" + "1," * 30_000 + "]", "more than 20,000 values"),
        ("x: " + "y" * 2**20, "more than 1,048,576 bytes"),
        ("a: !!python/object/apply:os.mkdir [was_run]", "no YAML in line 1: could not determine"),
        ("a: b: c", "no YAML in line 1: mapping values are not allowed"),
        ("- a\n- b", "an object is needed"),
        ("just words", "an object is needed"),
        ("1: a", "an object is needed"),
        ("", "an object is needed"),
        ("a: 2026-99-99", "no YAML"),
        ("? {a: b}\n: c", "no YAML"),
    ],
    ids=range(15),
)
def test_hostile_text_is_refused_by_name(text, message):
    with open("a.yaml", "w") as file:
        file.write(text)
    with pytest.raises(ValueError) as error:
        documents.mapping("a.yaml")
    assert str(error.value).startswith("a.yaml") and message in str(error.value)
    assert not os.path.exists("was_run")


def test_other_encodings():
    with open("a.yaml", "wb") as file:
        file.write(b"\xef\xbb\xbfbase_model: x")  # a BOM is taken
    assert documents.mapping("a.yaml") == {"base_model": "x"}
    with open("a.yaml", "wb") as file:
        file.write(b"a: \xff\xfe")
    with pytest.raises(ValueError, match="not UTF-8 text, at byte 3"):
        documents.mapping("a.yaml")


def test_a_value_of_any_kind_is_refused_or_read():
    """Whatever stands in the place of a value: one line, and no other end."""
    strange = [[], {}, [[]], {"a": 1}, "x" * 300, -1, 1.5, 10**30, True, "\x1b[31m", [None]]
    for trainer in TRAINERS:
        base = yaml.safe_load(FILES[trainer.called])
        for key in trainer.keys:
            for value in strange:
                seen(trainer, base | {key: value})


def test_without_pyyaml_it_is_said_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "yaml", None)
    with open("a.yaml", "w") as file:
        file.write("base_model: x")
    with pytest.raises(ValueError, match="YAML needs yaml: pip install pyyaml"):
        documents.mapping("a.yaml")
