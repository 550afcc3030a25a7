"""The lines of FSDP2, taken by the libraries that they are for."""

import re

import pytest
import yaml
from accelerate.commands.config.config_args import ClusterConfig, load_config_from_file
from accelerate.commands.launch import _validate_launch_command, launch_command_parser
from accelerate.utils.launch import prepare_multi_gpu_env
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy
from transformers import TrainingArguments

from memlab import Recipe, Run, Sharding
from memlab.explain.flags import divided
from memlab.explain.fsdp_lines import (
    accelerate_line,
    fsdp_line,
    torch_line,
    torchtitan_line,
    trainer_line,
)

OVER = {"data": 8, "zero": 3}
FP32 = Recipe.named("fp32")
# What FSDP2 is told beside its ranks, as far as these libraries have a flag for it.
POLICIES = (
    {},
    {"param_dtype": "bf16"},
    {"cpu_offload": "pinned"},
    {"reshard_after_forward": False},
    {"param_dtype": "bf16", "cpu_offload": "pinned", "reshard_after_forward": False},
)


def _written(line):
    """The config file that a line of accelerate stands for."""
    words = line.removeprefix("accelerate launch --config_file of ")
    outer, inner = re.fullmatch(r"(.*), fsdp_config: \{(.*)\}", words).groups()
    text = "\n".join(outer.split(", "))
    return text + "\nfsdp_config:\n" + "\n".join(f"  {each}" for each in inner.split(", "))


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_accelerate_reads_its_config_and_hands_it_on(policy, tmp_path):
    there = Sharding.of(**OVER, **policy)
    written = _written(accelerate_line(there))
    path = tmp_path / "fsdp.yaml"
    path.write_text(f"compute_environment: LOCAL_MACHINE\nuse_cpu: false\ndebug: false\n{written}")
    read = load_config_from_file(str(path))
    assert isinstance(read, ClusterConfig) and read.distributed_type == "FSDP"
    assert read.num_processes == 8
    keys = yaml.safe_load(written)["fsdp_config"]
    assert read.fsdp_config == keys
    options = launch_command_parser().parse_args(["--config_file", str(path), "train.py"])
    options, *_ = _validate_launch_command(options)
    env = prepare_multi_gpu_env(options)
    assert env["FSDP_VERSION"] == "2"
    assert env["FSDP_AUTO_WRAP_POLICY"] == "TRANSFORMER_BASED_WRAP"
    assert env["FSDP_OFFLOAD_PARAMS"] == str("cpu_offload" in policy).lower()
    assert env["FSDP_RESHARD_AFTER_FORWARD"] == str("reshard_after_forward" not in policy).lower()
    assert env["ACCELERATE_MIXED_PRECISION"] == policy.get("param_dtype", "no")


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_trainer_takes_its_arguments(policy, tmp_path):
    line, after = trainer_line(Sharding.of(**OVER, **policy)).split("; ")
    assert after == "torchrun --nproc-per-node 8"
    made = eval(line.replace("(", f"(output_dir={str(tmp_path)!r}, use_cpu=True, ", 1))  # noqa: S307
    assert isinstance(made, TrainingArguments) and made.bf16 == ("param_dtype" in policy)
    told = made.fsdp_plugin_args
    assert told["fsdp_version"] == 2
    assert told.get("cpu_offload", False) == ("cpu_offload" in policy)
    assert told["reshard_after_forward"] == ("reshard_after_forward" not in policy)


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_torch_has_the_policies_that_its_line_says(policy):
    calls = []

    def fully_shard(module, **how):
        calls.append((module, how))

    *lines, _ = torch_line(Sharding.of(**OVER, **policy)).split("; ")
    line = "; ".join(lines).replace("torch.distributed.fsdp.", "")
    import torch

    known = {"CPUOffloadPolicy": CPUOffloadPolicy, "MixedPrecisionPolicy": MixedPrecisionPolicy}
    exec(
        line,
        known | {"fully_shard": fully_shard, "decoder_layers": [1], "model": 2, "torch": torch},
    )  # noqa: S102
    (layer, on_layer), (model, on_model) = calls
    assert (layer, model) == (1, 2)
    assert on_layer.get("reshard_after_forward", True) == ("reshard_after_forward" not in policy)
    assert "reshard_after_forward" not in on_model  # the root's group stays by itself
    for how in (on_layer, on_model):
        assert ("offload_policy" in how) == ("cpu_offload" in policy)
        mixed = how.get("mp_policy", MixedPrecisionPolicy())
        assert mixed.param_dtype == (torch.bfloat16 if "param_dtype" in policy else None)


def test_torchtitan_is_told_of_replicas_too():
    line = torchtitan_line(FP32, Sharding.of(**OVER, replicas=2, cpu_offload="pinned"))
    assert line == (
        "--parallelism.data_parallel_shard_degree 4 --parallelism.data_parallel_replicate_degree 2 "
        "--training.enable_cpu_offload --training.mixed_precision_param float32"
    )
    narrow = torchtitan_line(FP32, Sharding.of(**OVER, param_dtype="bf16"))
    assert narrow == "--parallelism.data_parallel_shard_degree 8"  # it gathers in bf16 by itself


def test_each_reader_gets_the_lines_of_the_own_loop():
    plain = Run(tokens=64, devices=Sharding.of(**OVER))
    assert fsdp_line(FP32, plain).startswith(divided(plain))  # as the page has it
    mixture = plain.replace(devices=Sharding.of(**OVER, expert=4))
    assert "accelerate" not in fsdp_line(FP32, mixture)
    trainer = fsdp_line(FP32, plain.replace(loop="trainer"))
    assert trainer.startswith("TrainingArguments(") and "torchtitan" not in trainer
    for run in (
        plain.replace(devices=Sharding()),
        plain.replace(devices=Sharding.of(**OVER, library="deepspeed")),
        plain.replace(implementation="memlab"),
        plain.replace(loop="sft", checkpoint="none"),
    ):
        assert fsdp_line(FP32, run) is None
