"""Each loop that is described, held against a rehearsal of the trainer itself: the oracle.

Long, and some of it needs triton, which a card's machine has: MEMLAB_DEPTH=2 with '.[rehearse]'.
"""

import sys
from contextlib import ExitStack
from importlib.util import find_spec

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import memlab  # noqa: E402
from memlab import Model, Run  # noqa: E402
from memlab.lab import trainers  # noqa: E402
from memlab.lab.hugging_face import hugging_face  # noqa: E402
from memlab.lab.trainer_rows import rows_of  # noqa: E402
from memlab.step import simulate  # noqa: E402

pytestmark = [
    pytest.mark.deep,
    pytest.mark.skipif(sys.platform != "linux", reason="proven on Linux"),
    pytest.mark.filterwarnings("ignore"),
]
RECIPES = {"bf16": "bf16", "autocast": "autocast-bf16"}
LOOPS = (
    ("trainer", {}),
    ("trainer", {"checkpoint": "block"}),
    ("trainer", {"micro_batches": 2}),
    ("sft", {}),
    ("sft", {"checkpoint": "block", "micro_batches": 2}),
    ("dpo", {"completion": 16}),
    ("grpo", {"completion": 16}),
    ("distillation", {"completion": 16}),
    ("gkd", {"completion": 16}),
)


def trained(precision, run, folder):
    """As memlab.lab.trainers runs it on a CPU, on the card that torch finds."""
    model = trainers.decoder(precision, run)
    how = trainers._how(precision, run, folder) | {"use_cpu": False}
    with ExitStack() as stack:
        trainer = trainers.MADE[run.loop](model, rows_of(run, 1024), how, stack)
        trainer.train()


@pytest.mark.parametrize("precision", RECIPES)
@pytest.mark.parametrize(("loop", "more"), LOOPS, ids=str)
def test_a_loop_is_what_its_trainer_takes_on_a_card(tmp_path, loop, more, precision):
    if loop != "trainer":
        pytest.importorskip("trl")
        if find_spec("triton") is None:
            pytest.skip("no triton")
        __import__("trl.experimental.gkd" if loop == "gkd" else "trl", fromlist=["SFTTrainer"])
        import trl

        _ = trl.SFTTrainer, trl.DPOTrainer, trl.GRPOTrainer, trl.DistillationTrainer
    hugging_face()  # a library is imported before a card is shown
    run = Run(batch=2, tokens=32, loop=loop, **({"checkpoint": "none"} | more))
    model = Model.from_config(trainers.CONFIG)
    found = memlab.rehearse(trained, [precision, run, tmp_path], steps=3)
    assert found.failure is None, found.failure
    derived = simulate(model, RECIPES[precision], run).peak
    assert found.later == derived.bytes
