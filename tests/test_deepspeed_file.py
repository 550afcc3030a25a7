"""A ds_config.json, read as Trainer reads it, and what is wrong in one, named by its key."""

import json

import pytest

from memlab import Model, Run, Sharding
from memlab.cli import main
from memlab.files.deepspeed_config import read, read_file
from memlab.step import simulate
from memlab.units import text

# The example of transformers' documentation for ZeRO 3 with offload, without its optimizer.
# Source      huggingface.co/docs/transformers/deepspeed
WIDE = {
    "bf16": {"enabled": "auto"},
    "zero_optimization": {
        "stage": 3,
        "offload_optimizer": {"device": "cpu", "pin_memory": True},
        "overlap_comm": True,
        "contiguous_gradients": True,
        "sub_group_size": 1e9,
        "reduce_bucket_size": "auto",
        "stage3_prefetch_bucket_size": "auto",
        "stage3_param_persistence_threshold": "auto",
        "stage3_max_live_parameters": 1e9,
        "stage3_max_reuse_distance": 1e9,
        "stage3_gather_16bit_weights_on_model_save": True,
    },
    "gradient_accumulation_steps": "auto",
    "gradient_clipping": "auto",
    "steps_per_print": 2000,
    "train_batch_size": "auto",
    "train_micro_batch_size_per_gpu": "auto",
    "wall_clock_breakdown": False,
}


def zero(**more):
    return {"zero_optimization": {"stage": 2} | more, "bf16": {"enabled": True}}


def test_auto_comes_from_the_width_and_from_trainings_arguments():
    assert read(WIDE, 4096) == {
        "devices": {
            "zero": 3,
            "library": "deepspeed",
            "offload_optimizer": "cpu",
            "overlap_comm": True,
            "contiguous_gradients": True,
            "sub_group_size": 10**9,
            "reduce_bucket_size": 4096 * 4096,
            "prefetch_bucket_size": 15_099_494,
            "param_persistence_threshold": 40_960,
            "max_live_parameters": 10**9,
            "max_reuse_distance": 10**9,
        },
        "run": {},
    }


def test_numbers_are_the_runs_and_bf16_the_recipe():
    said = zero() | {"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4}
    found = read(said, 64)
    assert found == {
        "devices": {"zero": 2},
        "run": {"batch": 2, "micro_batches": 4},
        "recipe": "zero",
    }
    assert read(zero() | {"bf16": {"enabled": False}}, 64)["recipe"] == "fp32"


def test_what_a_stage_does_not_use_changes_nothing():
    """Keys of the third are in many files of the second, and a file leaves what it does not say."""
    assert read(zero(stage3_max_reuse_distance=5, sub_group_size=9), 64)["devices"] == {"zero": 2}
    third = read({"zero_optimization": {"stage": 3, "sub_group_size": "auto"}}, 64)
    assert third["devices"] == {"zero": 3, "library": "deepspeed"}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "zero_optimization=None; an object with a stage is needed"),
        (zero(stage=4), "zero_optimization.stage=4; 1, 2 or 3 is described"),
        (zero(stage=True), "zero_optimization.stage=True; 1, 2 or 3"),
        (zero(reduce_bucket_size="big"), "zero_optimization.reduce_bucket_size='big'; a whole nu"),
        (zero(reduce_bucket_size=0.5), "zero_optimization.reduce_bucket_size=0.5; a whole number"),
        (zero(overlap_comm="yes"), "zero_optimization.overlap_comm='yes'; true or false"),
        (zero(offload_optimizer={"device": "nvme"}), "zero_optimization.offload_optimizer={'devi"),
        (
            zero(stage=3, offload_param={"device": "cpu"}),
            "zero_optimization.offload_param={'device",
        ),
        (zero(zero_quantized_weights=True), "zero_quantized_weights=True is not described; False"),
        (zero(reduce_bucket=5), "zero_optimization.reduce_bucket=5 is not described; known: reduc"),
        (zero() | {"fp16": {"enabled": True}}, "fp16.enabled=true: its scaler is not described"),
        (zero() | {"bf16": {"enabled": "yes"}}, "bf16.enabled='yes'; true, false or"),
        (zero() | {"optimizer": {"type": "AdamW"}}, "optimizer={'type': 'AdamW'}: DeepSpeed's own"),
        (zero() | {"gradient_accumulation_steps": 0}, "gradient_accumulation_steps=0; a whole num"),
        (zero() | {"gradient_clipping": "no"}, "gradient_clipping='no'; a number"),
        (zero() | {"pipeline": {}}, "pipeline={} is not described; known: "),
        (
            zero() | {"data_types": {"grad_accum_dtype": "fp32"}},
            "data_types.grad_accum_dtype='fp32' is not described",
        ),
    ],
    ids=str,
)
def test_what_is_wrong_is_named_by_its_key(config, message):
    with pytest.raises(ValueError) as error:
        read(config, 64)
    assert str(error.value).startswith(message) or message in str(error.value)


def test_a_file_that_is_none_fails_by_name(tmp_path):
    for words, message in (("{", "no JSON"), ("[]", "an object is needed")):
        path = tmp_path / "ds_config.json"
        path.write_text(words)
        with pytest.raises(ValueError, match=message):
            read_file(str(path), 64)


def test_the_shell_reads_one(tmp_path, capsys):
    path = tmp_path / "ds_config.json"
    path.write_text(json.dumps(WIDE))
    words = f"estimate llama-3-8b --ranks 8 --loop trainer --tokens 512 --deepspeed-config {path}"
    assert main(words.split()) == 2
    assert "leaves bf16.enabled to TrainingArguments: say --recipe" in capsys.readouterr().err
    assert main([*words.split(), "--recipe", "zero"]) == 0
    said = capsys.readouterr().out
    devices = Sharding(data=8, **read(WIDE, 4096)["devices"])
    run = Run(tokens=512, loop="trainer", devices=devices)
    made = simulate(Model.preset("llama-3-8b"), "zero", run)
    assert text(made.peak.bytes) in said and text(made.host.bytes) in said
    other = [*words.split(), "--recipe", "zero", "--reduce-bucket-size", "5"]
    assert main(other) == 2
    assert "--reduce-bucket-size 5 beside" in capsys.readouterr().err
    path.write_text(json.dumps(zero() | {"train_micro_batch_size_per_gpu": 2}))
    assert main(words.split()) == 0
    said = capsys.readouterr().out
    assert "llama-3-8b · zero · 2 x 512 tokens" in said and "data 8, ZeRO 2)" in said
    assert main([*words.split(), "--batch", "4"]) == 2
    assert "--batch 4 beside" in capsys.readouterr().err
    assert main([*words.split(), "--recipe", "fp32"]) == 2
    assert "'fp32' beside" in capsys.readouterr().err
