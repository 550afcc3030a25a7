"""A loop of which nothing is said, and the real trainer as it comes, to the byte."""

import pytest

from memlab import Model, Run
from memlab.lab.trainers import CONFIG, highest
from memlab.step import Lora, simulate

# Of the libraries, about each other.
pytestmark = pytest.mark.filterwarnings("ignore")
SMALL = CONFIG | {"intermediate_size": 192}  # rows that fill blocks of 64
PUBLISHED = SMALL | {"dtype": "bfloat16"}
ROLLED_OUT = {"completion": 24}
QLORA = {"lora": Lora(4, ("q", "v"), "nf4")}
LOOPS = [
    ("trainer", {}),
    ("sft", {}),
    ("dpo", {}),
    ("grpo", ROLLED_OUT),
    ("distillation", ROLLED_OUT),
    ("gkd", {}),
    ("sft", QLORA),
]


@pytest.mark.sample(5)
@pytest.mark.parametrize(("loop", "more"), LOOPS, ids=lambda each: str(each)[:30])
def test_a_loop_of_which_nothing_is_said_is_the_trainer_as_it_comes(loop, more, tmp_path):
    """The trainer is given a model in bf16, by its name, and no setting that costs memory."""
    run = Run.cpu(batch=2, tokens=32, loop=loop, **more)
    derived = simulate(Model.from_config(PUBLISHED), None, run).peak.bytes
    assert highest(None, run, tmp_path, SMALL) == derived
