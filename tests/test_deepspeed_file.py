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
        "aside": [
            "zero_optimization.stage3_gather_16bit_weights_on_model_save",
            "steps_per_print",
            "train_batch_size",
            "wall_clock_breakdown",
        ],
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
        ({}, "zero_optimization: null; an object with a stage is needed"),
        (zero(stage=4), "zero_optimization.stage: 4; 1, 2 or 3 is described"),
        (zero(stage=True), "zero_optimization.stage: true; 1, 2 or 3"),
        (zero(reduce_bucket_size="big"), "zero_optimization.reduce_bucket_size: big; a whole num"),
        (zero(reduce_bucket_size=0.5), "zero_optimization.reduce_bucket_size: 0.5; a whole number"),
        (zero(reduce_bucket_size=1e999), "zero_optimization.reduce_bucket_size: Infinity; a whole"),
        (zero(overlap_comm="yes"), "zero_optimization.overlap_comm: yes; true or false"),
        (zero(round_robin_gradients=1), "zero_optimization.round_robin_gradients: 1; true or fa"),
        (zero(offload_optimizer={"device": "nvme"}), 'zero_optimization.offload_optimizer: {"devi'),
        (zero(offload_optimizer={"device": "cpu", "ratio": 0.3}), "offload_optimizer to cpu is, w"),
        (zero(stage=3, offload_param={"device": "nvme"}), "offload_param to cpu is, whole"),
        (zero(cpu_offload=True), "zero_optimization.cpu_offload: true is not described; false is"),
        (
            zero(stage3_model_persistence_threshold=9),
            "stage3_model_persistence_threshold: 9 is not",
        ),
        (zero(zero_quantized_weights=True), "zero_quantized_weights: true is not described; false"),
        (
            zero(reduce_bucket=5),
            "zero_optimization.reduce_bucket: 5 is not described; known: reduc",
        ),
        (zero() | {"bf16": {"enabled": "yes"}}, "bf16.enabled: yes; true, false or"),
        (zero() | {"optimizer": {"type": "OneBitAdam"}}, "known types: Adam, AdamW, Lion"),
        (
            zero() | {"optimizer": {"type": "Adam", "params": {"torch_adam": True}}},
            "is not described; known types: Adam, AdamW, Lion, without torch_adam",
        ),
        (
            zero() | {"gradient_accumulation_steps": 0},
            "gradient_accumulation_steps: 0; a whole num",
        ),
        (zero() | {"gradient_clipping": "no"}, "gradient_clipping: no; a number"),
        (zero() | {"pipeline": {"stages": 2}}, 'pipeline: {"stages": 2} is not described; leave'),
        (zero() | {"strange": 1}, "strange: 1 is not described; known: train_micro"),
        (
            zero() | {"bf16": {"enabled": True, "bf16_optimizer_states": True}},
            "bf16.bf16_optimizer_states: true is not described",
        ),
        (
            zero() | {"data_types": {"grad_accum_dtype": "fp32"}},
            "data_types.grad_accum_dtype: fp32 is not described",
        ),
    ],
    ids=str,
)
def test_what_is_wrong_is_named_by_its_key(config, message):
    with pytest.raises(ValueError) as error:
        read(config, 64)
    assert str(error.value).startswith(message) or message in str(error.value)


def test_all_that_is_wrong_is_said_at_once():
    config = zero(stage=4, reduce_bucket=5, zero_quantized_weights=True) | {
        "strange": 1,
        "amp": True,
    }
    with pytest.raises(ValueError) as error:
        read(config, 64)
    for key in ("stage", "reduce_bucket", "zero_quantized_weights", "strange", "amp"):
        assert f"{key}: " in str(error.value)


def test_what_says_nothing_of_memory_is_passed_over_and_named():
    """Sections of monitors, switches that are off: keys of files that people have."""
    quiet = {"comms_config": {"verbose": True}, "monitor_config": {"enabled": False}}
    off = {"amp": {"enabled": False}, "compile": {"deepcompile": False}, "sparse_gradients": False}
    found = read(zero() | quiet | off, 64)
    assert found == read(zero(), 64) | {"aside": ["comms_config", "monitor_config"]}


def test_what_is_counted_otherwise_is_told():
    """An order of weights, weights on the host below stage 3, fp16: none changes the question."""
    plain = read(zero(), 64)
    turned = read(zero(round_robin_gradients=True), 64)
    assert turned.pop("told")[0].startswith("round_robin_gradients: true is another order")
    assert turned == plain
    third = read(zero(stage=3, round_robin_gradients=True), 64)  # of stages 1 and 2
    assert "told" not in third
    moved = read(zero(stage=3, offload_param={"device": "cpu"}), 64)
    assert moved["devices"] == third["devices"] | {"offload_param": "cpu"}
    assert read(zero(offload_param={"device": "cpu"}), 64) == plain  # of stage 3 alone
    narrow = {"zero_optimization": {"stage": 2}, "fp16": {"enabled": True, "loss_scale": 0}}
    assert read(narrow, 64) == plain | {
        "told": ["fp16.enabled: true is counted as bf16, without its check for overflow"]
    }


@pytest.mark.parametrize(
    ("kind", "ours"), [("AdamW", "adamw"), ("adam", "adamw"), ("Lion", "lion")]
)
def test_deepspeeds_own_optimizer_is_one_of_ours(kind, ours):
    section = {"type": kind, "params": {"lr": "auto", "weight_decay": 0.1}}
    assert read(zero() | {"optimizer": section}, 64)["optimizer"] == ours


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
    devices = Sharding.of(data=8, **read(WIDE, 4096)["devices"])
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
    assert "fp32 beside" in capsys.readouterr().err
