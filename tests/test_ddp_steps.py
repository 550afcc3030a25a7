"""torch's DDP on two real ranks: the step of one device, and its gradients once more."""

import pytest
from depth import few

from memlab import Model, Run, estimate, storage
from memlab.adapters import Lora
from memlab.lab import ddp_steps
from memlab.lab.ranks import in_turn, on_ranks
from memlab.lab.trainers import CONFIG
from memlab.sharding import Sharding
from memlab.step import simulate

SMALL = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 4, "head_dim": 8}
SMALL |= {"intermediate_size": 70, "vocab_size": 101, "max_position_embeddings": 64}
SMALL |= {"num_key_value_heads": 2, "model_type": "llama", "tie_word_embeddings": False}
MODEL = Model.from_config(SMALL)
RUN = Run.cpu(batch=2, tokens=16)
CASES = few(
    2,
    (
        ("fp32", RUN),
        ("bf16", RUN),
        ("bf16", RUN.replace(checkpoint="block")),
        ("fp32", RUN.replace(lora=Lora(4, ("q", "v")))),
    ),
)
TRAINED = (RUN.replace(loop="trainer"), RUN.replace(loop="trainer", micro_batches=2))
TRAINED += (RUN.replace(loop="sft", checkpoint="none"),)


def over(run, ranks=2):
    return run.replace(devices=Sharding(data=ranks))


@pytest.fixture(scope="module")
def found():
    plain = [(ddp_steps.both, MODEL, *case) for case in CASES]
    return on_ranks(2, in_turn, *plain, *((ddp_steps.trained, "fp32", run) for run in TRAINED))


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("number", range(len(CASES)), ids=str)
def test_ddp_is_one_device_and_a_copy_of_the_gradients(found, number, rank):
    recipe, run = CASES[number]
    alone, step = simulate(MODEL, recipe, run), simulate(MODEL, recipe, over(run))
    buckets = step.peak.contents["reduce buckets"]
    assert buckets == alone.rows["gradients"] > 0
    if run.lora is None:
        assert buckets == storage(MODEL.parameter_count, recipe)
    assert step.peak.bytes == alone.peak.bytes + buckets
    own, view = found[rank][number]
    for moment, size in (step.held | {"peak": step.peak.bytes}).items():
        assert own[moment] == size, moment
    for moment in ("after_forward", "between_steps"):
        assert view[moment] == own[moment], moment
    assert view["after_backward"] == own["after_backward"] - buckets


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("number", range(len(TRAINED)), ids=str)
def test_a_trainer_has_besides_what_tells_used_parameters(found, number, rank):
    """find_unused_parameters=True: maps of 4 bytes for each tensor, and some numbers."""
    model = Model.from_config(CONFIG)
    step = simulate(model, "fp32", over(TRAINED[number]))
    more = found[rank][len(CASES) + number] - step.peak.bytes
    assert 0 < more <= 16 * sum(tensor.copies for tensor in model.tensors()) + 64


def test_the_ledger_is_the_step():
    step = simulate(MODEL, "bf16", over(RUN, 8))
    ledger = estimate(MODEL, "bf16", over(RUN, 8))
    assert ledger.total() == step.peak.bytes and "one rank of 8" in ledger.title
    assert step.peak.bytes == simulate(MODEL, "bf16", over(RUN)).peak.bytes  # whatever their number
