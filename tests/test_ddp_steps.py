"""torch's DDP on two real ranks: the step of one device, and its gradients once more."""

import pytest

from memlab import Model, Run, storage
from memlab.lab import ddp_steps
from memlab.lab.ranks import in_turn, on_ranks
from memlab.step import simulate

SMALL = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 4, "head_dim": 8}
SMALL |= {"intermediate_size": 70, "vocab_size": 101, "max_position_embeddings": 64}
SMALL |= {"num_key_value_heads": 2, "model_type": "llama", "tie_word_embeddings": False}
MODEL = Model.from_config(SMALL)
RUN = Run.cpu(batch=2, tokens=16)
RECIPES = ("fp32", "bf16")


@pytest.fixture(scope="module")
def found():
    return on_ranks(2, in_turn, *((ddp_steps.both, MODEL, recipe, RUN) for recipe in RECIPES))


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("number", range(len(RECIPES)), ids=RECIPES)
def test_ddp_is_one_device_and_a_copy_of_the_gradients(found, number, rank):
    step = simulate(MODEL, RECIPES[number], RUN)
    buckets = storage(MODEL.parameter_count, RECIPES[number])
    own, view = found[rank][number]
    for moment, size in (step.held | {"peak": step.peak.bytes}).items():
        assert own[moment] == size + buckets, moment
    for moment in ("after_forward", "between_steps"):
        assert view[moment] == own[moment], moment
    assert view["after_backward"] == own["after_backward"] - buckets
