"""What chapter 24 says of trainers: their defaults, and that its flags do what it says."""

import inspect
from pathlib import Path

import pytest
from real_steps import quiet

from memlab import Model, Run
from memlab.lab.trainers import CONFIG, highest
from memlab.step import simulate

# Of the libraries, about each other.
pytestmark = pytest.mark.filterwarnings("ignore")


def test_defaults_are_those_that_the_chapter_lists(tmp_path):
    with quiet():
        import transformers
        import trl
        from trl.trainer import utils
    own = transformers.TrainingArguments(str(tmp_path), use_cpu=True)
    assert (own.bf16, own.gradient_checkpointing) == (False, False)
    assert own.optim == "adamw_torch_fused" and own.per_device_eval_batch_size == 8
    for kind in (trl.SFTConfig, trl.DPOConfig, trl.GRPOConfig):
        config = kind(str(tmp_path), use_cpu=True)
        assert (config.bf16, config.gradient_checkpointing) == (True, True)
        assert config.optim == own.optim
    assert trl.GRPOConfig(str(tmp_path), use_cpu=True).beta == 0.0
    assert not trl.DPOConfig(str(tmp_path), use_cpu=True).precompute_ref_log_probs
    source = inspect.getsource(utils.create_model_from_path)
    assert 'kwargs.get("dtype", "float32")' in source
    trainer = Path(inspect.getfile(trl.DPOTrainer)).read_text(encoding="utf-8")
    assert 'ref_model_init_kwargs.setdefault("dtype", self.model.dtype)' in trainer


def test_autocast_over_bf16_weights_takes_no_more_than_bf16_alone(tmp_path):
    run = Run.cpu(batch=2, tokens=32, loop="sft")
    alone = simulate(Model.from_config(CONFIG), "bf16", run).peak.bytes
    assert highest("bf16", run, tmp_path) == alone
    assert highest("bf16", run, tmp_path, bf16=True) == alone
