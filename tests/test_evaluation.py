"""An evaluation between two steps: transformers.Trainer on a CPU, counted, and what it gathers."""

from pathlib import Path

import pytest
from real_trainers import derived, trained

from memlab import Model, Recipe, Run, estimate
from memlab.adapters import Lora
from memlab.step import simulate
from memlab.step.loops.loop import tops
from memlab.units import text

ROOT = Path(__file__).resolve().parent.parent
TINY = Model.preset("tiny-llama")
BF16 = Recipe.named("bf16")


@pytest.mark.sample(3)
@pytest.mark.filterwarnings("ignore")  # of the libraries, about each other
@pytest.mark.parametrize(
    ("precision", "said"),
    [
        ("fp32", {"eval_batch": 4}),
        ("fp32", {"eval_batch": 4, "eval_logits": 4, "micro_batches": 2}),
        ("bf16", {"eval_batch": 8, "eval_logits": 1}),
        ("bf16", {"eval_batch": 8, "eval_logits": 5}),
        (
            "autocast",
            {"eval_batch": 8, "eval_logits": 3, "texts": "padded", "checkpoint": "block"},
        ),
    ],
    ids=str,
)
def test_an_evaluation_of_trainer_takes_what_is_derived(tmp_path, precision, said):
    run = Run.cpu(batch=3, tokens=32, loop="trainer", **said)
    found = derived(precision, run)
    assert found.evaluation and trained(precision, run, tmp_path) == found


SMALL = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 2, "vocab_size": 300}
SMALL |= {"max_position_embeddings": 64, "intermediate_size": 48}
OTHERS = [
    {"model_type": "gpt2", "n_layer": 2, "n_embd": 32, "n_head": 2, "vocab_size": 300}
    | {"n_positions": 64, "attn_pdrop": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0},
    SMALL | {"model_type": "gpt_neox", "attention_dropout": 0.0, "hidden_dropout": 0.0},
    {name: size for name, size in SMALL.items() if name != "intermediate_size"}
    | {"model_type": "opt", "ffn_dim": 48, "word_embed_proj_dim": 32, "dropout": 0.0}
    | {"attention_dropout": 0.0},
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("config", OTHERS, ids=lambda config: config["model_type"])
def test_other_families_are_evaluated_as_they_are_trained(tmp_path, config):
    run = Run.cpu(batch=3, tokens=32, loop="trainer", eval_batch=4, eval_logits=2)
    found = derived("fp32", run, config)
    assert found.evaluation and trained("fp32", run, tmp_path, config) == found


def test_gathered_logits_are_there_twice_for_a_moment():
    run = Run(batch=2, tokens=128, loop="trainer", eval_batch=16)
    high = {
        n: sum(tops(TINY, BF16, run.replace(eval_logits=n))["evaluation"].values())
        for n in (32, 33, 64)
    }
    one = 2 * 16 * 128 * TINY.vocab + 8 * 16 * 128 + 4 * 16  # logits, labels, losses
    logits = 2 * 16 * 128 * TINY.vocab
    assert high[33] - high[32] == 2 * logits + (one - logits)
    assert high[64] - high[33] == 31 * (high[33] - high[32])
    # Under autocast accelerate makes fp32 of them; so do weights in fp32.
    wide = [
        sum(tops(TINY, Recipe.named("autocast"), run.replace(eval_logits=n))["evaluation"].values())
        for n in (32, 33)
    ]
    assert wide[1] - wide[0] == 4 * logits + (one - logits)


def test_a_small_evaluation_leaves_the_peak_of_the_step():
    run = Run(batch=8, tokens=128, loop="trainer")
    step, more = (simulate(TINY, "bf16", r) for r in (run, run.replace(eval_batch=1)))
    assert more.peak == step.peak and more.held == step.held
    large = simulate(TINY, "bf16", run.replace(eval_batch=8, eval_logits=64))
    assert large.peak.moment == "evaluation" and "gradients" not in large.peak.contents
    assert large.held == step.held  # nothing of it stays


def test_what_an_evaluation_cannot_be_is_named():
    for said, words in (
        ({"eval_logits": 4}, "eval_logits=4 without eval_batch"),
        ({"eval_batch": 0, "loop": "trainer"}, "eval_batch=0; at least 1"),
        ({"eval_batch": 4, "loop": "sft"}, "eval_batch=4 is for loop='trainer'; this is 'sft'"),
        ({"eval_batch": 4, "loop": "trainer", "lora": Lora(4)}, "eval_batch=4 beside adapters"),
        ({"eval_batch": 4, "loop": "trainer", "texts": "packed"}, "beside texts='packed'"),
        ({"eval_batch": 4, "loop": "trainer", "eval_logits": 5000}, "eval_logits=5,000; at most"),
    ):
        with pytest.raises(ValueError, match=words):
            simulate(TINY, "bf16", Run(**{"tokens": 16} | said))


def test_the_page_repeats_what_is_derived():
    page = " ".join((ROOT / "book" / "loops.md").read_text(encoding="utf-8").split())
    model = Model.preset("Llama-3.2-1B")
    run = Run(batch=1, tokens=1024, loop="trainer", eval_batch=8)
    alone, few, many = (
        text(sum(tops(model, BF16, run.replace(eval_logits=n))["evaluation"].values()))
        for n in (0, 4, 16)
    )
    assert f"peaks at {alone} for the loss alone, at {few} with the logits of 4 batches" in page
    assert f"and at {many} with those of 16; the step" in page
    step = text(estimate(model, "bf16", run.replace(eval_batch=None)).total())
    assert f"the step itself takes {step} with one sequence" in page
