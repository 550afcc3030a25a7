"""Programs under DeepSpeed, rehearsed: one rank of eight is as described, less its counter.

DeepSpeed is no dependency of memlab: pip install deepspeed==0.19.8
"""

import json
import sys
from importlib.util import find_spec

import pytest
from offloaded_weights import CONFIG, FOUND

from memlab import Model, Run, Sharding, rehearse
from memlab.cli import main
from memlab.rehearse import of_command
from memlab.rehearse.command import program
from memlab.sharding.deepspeed_keys import key_of
from memlab.step import simulate

pytestmark = [
    pytest.mark.deep,
    pytest.mark.skipif(sys.platform != "linux", reason="proven on Linux"),
    pytest.mark.skipif(find_spec("deepspeed") is None, reason="no DeepSpeed here"),
    pytest.mark.filterwarnings("ignore"),
]
COUNTER = 4  # bytes of AdamW's step, which a description counts on the card by choice
PROGRAM = """
import argparse, json, torch, deepspeed
from transformers import AutoConfig, AutoModelForCausalLM

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank")
parser.add_argument("config")
config = json.load(open(parser.parse_args().config))
deepspeed.init_distributed()
third = config["zero_optimization"]["stage"] == 3
with deepspeed.zero.Init(config_dict_or_path=config, enabled=third):
    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained("model"))
given = {} if "optimizer" in config else {"optimizer": torch.optim.AdamW(model.parameters())}
engine = deepspeed.initialize(
    model=model, model_parameters=model.parameters(), config=config, **given
)[0]
for step in range(3):
    ids = torch.randint(300, (2, 64)).to(engine.device)
    loss = engine(input_ids=ids, labels=ids).loss
    engine.backward(loss)
    engine.step()
"""
TRAINER = """
import sys
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

arguments = TrainingArguments(
    "out", deepspeed=sys.argv[-1], per_device_train_batch_size=2, max_steps=3, bf16=True
)
model = AutoModelForCausalLM.from_pretrained("model")
data = [{"input_ids": list(range(64)), "labels": list(range(64))}] * 64
Trainer(model, arguments, train_dataset=data).train()
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "trainer.py").write_text(TRAINER)

    def config(stage, **more):
        zero = {"stage": stage, **more.pop("zero", {})}
        said = {"train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": True}}
        said |= {"zero_optimization": zero, "zero_allow_untested_optimizer": True, **more}
        (tmp_path / "ds.json").write_text(json.dumps(said))

    return config


def described(stage, **more):
    devices = Sharding.of(data=8, zero=stage, library="deepspeed" if stage == 3 else None, **more)
    run = Run(batch=2, tokens=64, devices=devices)
    return simulate(Model.from_config(CONFIG), "zero", run).peak.bytes


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_each_stage_is_as_described(folder, stage):
    folder(stage)
    found = of_command("deepspeed --num_gpus 8 train.py ds.json".split())
    assert [each.peak for each in (found, *found.others)] == [described(stage) - COUNTER] * 2


def test_its_own_optimizer_has_kernels_that_allocate_nothing(folder):
    folder(2, optimizer={"type": "AdamW", "params": {"lr": 1e-4}})
    found = of_command("deepspeed --num_gpus 8 train.py ds.json".split(), rank=0)
    assert any("fused_adam" in what for what in found.skipped)
    assert found.peak in (described(2), described(2) - COUNTER)


def test_states_that_are_offloaded_are_the_hosts(folder):
    away = {"offload_optimizer": {"device": "cpu", "pin_memory": True}}
    folder(1, zero=away, zero_force_ds_cpu_optimizer=False)
    found = of_command("deepspeed --num_gpus 8 train.py ds.json".split(), rank=0)
    assert found.peak == described(1, offload_optimizer="cpu")


@pytest.mark.parametrize("ranks, more, peak, _", FOUND)
def test_weights_that_are_offloaded_come_for_a_gathering(folder, ranks, more, peak, _):
    here = {key_of(name): value for name, value in more.items() if name != "offload_optimizer"}
    away = {"device": "cpu", "pin_memory": True}
    here |= {"offload_param": away} | dict.fromkeys(set(more) & {"offload_optimizer"}, away)
    folder(3, zero=here, zero_force_ds_cpu_optimizer=False)
    found = of_command(f"deepspeed --num_gpus {ranks} train.py ds.json".split(), rank=0)
    assert found.peak == found.later == peak


@pytest.mark.parametrize("stage", [2, 3])
def test_trainer_and_accelerate_take_their_own_way_to_it(folder, stage, capsys):
    folder(stage, zero={"reduce_bucket_size": 50000})
    found = rehearse("trainer.py", ["ds.json"], gpus=8, rank=0)
    words = ["estimate", "model", "--recipe", "zero", "--ranks", "8", "--zero", str(stage)]
    words += ["--deepspeed"] * (stage == 3) + ["--tokens", "64", "--batch", "2", "--json"]
    words += ["--loop", "trainer", "--checkpoint", "none", "--reduce-bucket-size", "50000"]
    assert main(words) == 0
    peak = json.loads(capsys.readouterr().out)["peak"]["bytes"]
    assert found.later in (peak, peak - COUNTER) and found.peak == found.later
    asked = program("accelerate launch --use_deepspeed --num_processes 8 train.py x".split())
    assert asked.ranks == 8 and asked.environment["ACCELERATE_USE_DEEPSPEED"] == "true"


def test_a_kernel_that_is_not_its_optimizers_is_refused(folder, tmp_path):
    text = "import deepspeed\nfrom deepspeed.ops.op_builder import QuantizerBuilder\n"
    (tmp_path / "train.py").write_text(f"{text}QuantizerBuilder().load()\n")
    with pytest.raises(ValueError, match="DeepSpeed's kernel quantizer is not rehearsed"):
        of_command("deepspeed --num_gpus 8 train.py".split())
