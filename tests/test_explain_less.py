"""Less was seen than predicted: settings that are cheaper than the told ones, and other moments."""

import json
import random

import explain_accuracy as turning
import pytest

from memlab import Model, Recipe, Run, Sharding
from memlab.cli import main
from memlab.explain.case import Case
from memlab.explain.causes import CAUSES, CONTEXTS, LESS
from memlab.explain.causes.turns import nearest
from memlab.explain.explanation import BETWEEN, explain
from memlab.explain.findings import cause_of
from memlab.explain.search import Search
from memlab.explain.watched import Watched, terms
from memlab.step import simulate
from memlab.step.core.allocator_replay import replayed

QWEN, SMALL = Model.preset("qwen3-0.6b"), Model.preset("tinyllama-1.1b")
TINY = Model.preset("tiny-llama")
HOW = {"batch": 4, "tokens": 256}
BY_NAME = {cause.name: cause for cause in LESS}


def _over(**how):
    return Run(batch=1, tokens=256, micro_batches=2, devices=Sharding.of(**how))


FSDP = {"data": 4, "zero": 3}
# What was told, and what was true in its place.
TOLD = [
    (QWEN, "fp32", Run(**HOW), "blocks are checkpointed"),
    (QWEN, "bf16", Run(batch=1, tokens=1024, attention="eager"), "SDPA, not eager attention"),
    (QWEN, "bf16", Run(**HOW), "Liger Kernel's loss: the logits in chunks"),
    (QWEN, "bf16", Run(**HOW, loop="trainer"), "TRL's fused head: the logits in tiles"),
    (QWEN, "bf16", Run(**HOW), "torch's loss in chunks"),
    (QWEN, "fp32", Run(**HOW, implementation="memlab"), "the loss in chunks"),
    (SMALL, "fp32", Run(batch=1, tokens=64), "fused AdamW, without temporaries"),
    (QWEN, "bf16", Run(batch=1, tokens=64), "one weight after the other in the optimizer's step"),
    (SMALL, "bf16", Run(batch=2, tokens=256), "the optimizer steps inside backward"),
    (
        QWEN,
        "bf16",
        Run(**HOW, loop="keeps-outputs"),
        "the model's output let go before the next forward pass",
    ),
    (QWEN, "bf16", Run(**HOW, holds=("graph",)), "what was told to be held is not there"),
    (QWEN, "bf16", Run(**HOW), "saved tensors wait on the host"),
    (SMALL, "bf16", Run(**HOW), "the optimizer's states on the host"),
    (QWEN, "fp32", Run(**HOW), "all in bf16, not fp32"),
    (QWEN, "fp32", Run(**HOW), "autocast: products in bf16"),
    (SMALL, "megatron", Run(**HOW), "no fp32 master copy"),
    (
        QWEN,
        Recipe(weights="bf16", gradients="bf16", states=("fp32", "fp32")),
        Run(**HOW, optimizer_impl="fused"),
        "states in the weights' format",
    ),
    (QWEN, "megatron", Run(), "gradients in the weights' format"),
    (QWEN, "fp32", Run(**HOW), "AdamW's states in few bits"),
    (QWEN, "fp32", Run(**HOW), "Adafactor, whose states are rows and columns"),
    (QWEN, "fp32", Run(**HOW), "one state: SGD with momentum, Lion"),
    (QWEN, "fp32", Run(**HOW), "no states: plain SGD"),
    (QWEN, "bf16", Run(**HOW), "adapters alone are trained (LoRA)"),
    (SMALL, "bf16", Run(**HOW), "adapters alone, on a base in nf4"),
    (QWEN, "fp32", Run(**HOW), "the embedding not trained"),
    (SMALL, "fp32", Run(**HOW), "embedding and output head not trained"),
    (QWEN, "fp32", Run(**HOW), "the feed-forward layers not trained"),
    (SMALL, "fp32", Run(**HOW), "the output head alone trained"),
    (SMALL, "fp32", Run(**HOW), "tied embeddings: the output head is the embedding"),
    (QWEN, "fp32", Run(**HOW), "the counter read between two steps, not at the peak"),
    (QWEN, "fp32", Run(**HOW), "the counter read after backward, before the optimizer's step"),
    (QWEN, "fp32", Run(**HOW), "the counter read between forward and backward"),
    (QWEN, "fp32", Run(**HOW), "the first step: the optimizer has no states yet"),
    (SMALL, "zero", _over(data=4, zero=1), "DeepSpeed's ZeRO one stage higher"),
    (SMALL, "zero", _over(data=4, zero=2), "DeepSpeed's ZeRO one stage higher"),
    (SMALL, "bf16", _over(**FSDP, replicas=2), "divided among all ranks, not a part"),
    (
        SMALL,
        "bf16",
        _over(**FSDP, reshard_after_forward=False),
        "layers let go after their forward pass",
    ),
    (SMALL, "fp32", _over(**FSDP), "weights gathered in bf16"),
    (
        SMALL,
        "fp32",
        _over(**FSDP, gradient_sync="last"),
        "gradients reduced after every micro-batch",
    ),
    (SMALL, "bf16", _over(**FSDP), "weights and states on the hosts"),
    (
        SMALL,
        "bf16",
        Run(
            batch=1, tokens=512, micro_batches=8, devices=Sharding.of(pipeline=2, schedule="gpipe")
        ),
        "backward as soon as it can, not GPipe",
    ),
    (QWEN, "fp32", Run(**HOW), "shorter texts, padded to the longest of their batch; tokens"),
    (
        QWEN,
        "fp32",
        Run(**HOW),
        "fewer rows in the batch that was watched, the last of an epoch; rows",
    ),
    (QWEN, "fp32", Run(**HOW), "the batch cut in pieces; micro-batches"),
    (SMALL, "bf16", Run(batch=2, tokens=256), "divided with FSDP2; ranks"),
    (SMALL, "bf16", _over(**FSDP), "divided with FSDP2; ranks"),
]


def _base(model, recipe, run):
    chosen = recipe if isinstance(recipe, Recipe) else Recipe.named(recipe)
    return Case(model, chosen, run)


@pytest.mark.sample(16)
@pytest.mark.parametrize(("model", "recipe", "run", "true"), TOLD)
def test_what_was_cheaper_than_told_is_found_to_the_byte(model, recipe, run, true):
    base = _base(model, recipe, run)
    case = BY_NAME[true].turn(base)
    assert case is not None and case.peak() < base.peak()
    search = Search(base, case.peak() - base.peak(), case.peak(), "allocated", rounding=1)
    causes, _ = search.alone()
    names = [cause_of(one) for one in search.equal]
    assert true in names, (true, names)
    mine = next(one for one in causes if cause_of(one.name) == true)
    assert mine.bytes == base.peak() - case.peak()


def test_every_cause_of_less_is_named_once_and_turned_here():
    assert len(BY_NAME) == len(LESS) and not set(BY_NAME) & {cause.name for cause in CAUSES}
    assert {true for *_, true in TOLD} == set(BY_NAME)


def test_a_moment_that_is_no_peak_is_that_of_the_step():
    step = simulate(QWEN, "fp32", Run(**HOW))
    for moment, size in step.held.items():
        assert Case(QWEN, Recipe.named("fp32"), Run(**HOW), read=moment).peak() == size
    first = Case(QWEN, Recipe.named("fp32"), Run(**HOW), read="first_step").peak()
    assert first == step.peak.first_step_bytes < step.peak.bytes


def test_a_number_is_the_one_that_comes_nearest():
    told = Run(batch=8, tokens=512)
    base = _base(QWEN, "bf16", told)
    for truth, name in (
        ({"batch": 5}, "fewer rows in the batch that was watched, the last of an epoch; rows: 5"),
        ({"tokens": 317}, "shorter texts, padded to the longest of their batch; tokens: 317"),
        ({"batch": 2, "micro_batches": 4}, "the batch cut in pieces; micro-batches: 4"),
        ({"devices": Sharding(data=16, zero=3)}, "divided with FSDP2; ranks: 16"),
    ):
        seen = simulate(QWEN, "bf16", told.replace(**truth)).peak.bytes
        search = Search(base, seen - base.peak(), seen, "allocated", rounding=1)
        search.alone()
        assert name in search.equal, (name, search.equal)


@pytest.mark.parametrize("context", CONTEXTS)
def test_what_a_card_shows_has_hidden_a_part(context):
    """nvidia-smi's MiB: what is less by checkpoints, and a context and an allocator more."""
    told = Run(batch=4, tokens=1024)
    true = told.replace(checkpoint="block")
    more = replayed(QWEN, Recipe.named("bf16"), true).added + context
    seen = (simulate(QWEN, "bf16", true).peak.bytes + more) // 2**20 * 2**20
    found = explain(QWEN, "bf16", told, seen=seen, level="device")
    names = [cause_of(one.name) for one in found.causes]
    assert "blocks are checkpointed" in names[:6], names[:8]
    assert BETWEEN in names and "the CUDA context" not in names


def test_a_tracker_tells_terms_apart():
    """Of nothing but bytes two fit; by terms the optimizer's have gone, and nothing else."""
    base = _base(SMALL, "fp32", Run(batch=1, tokens=64))
    case = BY_NAME["no states: plain SGD"].turn(base)
    found = explain(
        SMALL,
        "fp32",
        base.run,
        seen=case.peak(),
        level="tensors",
        watched=Watched(terms(case.contents()), 0),
    )
    assert cause_of(found.causes[0].name) == "no states: plain SGD"


def test_two_at_once_are_a_sum_and_idle_ones_are_not():
    told = Run(batch=4, tokens=512)
    true = told.replace(checkpoint="block", batch=4)
    seen = simulate(QWEN, "bf16", true).peak.bytes
    found = explain(QWEN, "fp32", told, seen=seen, level="allocated")
    best = [set(one.names) for one in found.sums if one.left == 0]
    assert {"all in bf16, not fp32", "blocks are checkpointed"} in best
    assert not any(some > other for some in best for other in best), best


def test_as_much_as_predicted_and_more_ask_for_nothing_of_it():
    peak = simulate(TINY, "fp32", Run(batch=4, tokens=64)).peak.bytes
    for seen in (peak, 2 * peak):
        found = explain(TINY, "fp32", Run(batch=4, tokens=64), seen=seen, level="tensors")
        told = (*found.causes, *found.ruled_out)
        assert not {cause_of(one.name) for one in told} & set(BY_NAME)


def test_the_true_cause_of_less_is_found():
    """Of turned figures in bytes: tools/explain_accuracy.py --less prints the share of all."""
    every = turning.turned(("qwen3-0.6b",), turning.SAID[:1], less=True)
    cases = random.Random("less").sample(every, 20)
    places = [turning.place(*each, level="allocated") for each in cases]
    first, three = turning.score(places)
    assert len(every) > 50 and min(places) > 0
    assert first / len(cases) >= 0.75 and three / len(cases) >= 0.9, places


def test_the_shell_answers(capsys):
    words = "explain qwen3-0.6b --batch 4 --tokens 256 --precision bf16 --seen".split()
    assert main([*words, "3GiB", "--level", "allocated"]) == 0
    said = capsys.readouterr().out
    assert "less than predicted" in said and "blocks are checkpointed" in said
    assert main([*words, "3GiB", "--level", "allocated", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["gap_bytes"] < 0 < told["causes"][0]["bytes"]


def test_the_nearest_number_is_that_of_halving_and_is_found_in_fewer_looks():
    rng, looks = random.Random(3), [0, 0]

    class Grows:
        def __init__(self, size, which):
            self.size, self.which = size, which

        def peak(self):
            looks[self.which] += 1
            return self.size

    def halving(made, low, high, goal):
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if made(middle).peak() <= goal else (low, middle)
        return min((low, high), key=lambda count: abs(made(count).peak() - goal))

    for _ in range(500):
        lines = [(rng.randint(0, 50), rng.randint(-9999, 30000)) for _ in range(rng.randint(1, 4))]
        bend, last = rng.choice([0, 0, 0.01]), rng.choice([3, 4, 5, 100, 4095, 8191])

        def size(n, lines=lines, bend=bend):
            return max(0, *(int(a * n + b + bend * n * n) for a, b in lines))

        goal = rng.randint(size(2) - 500, size(last) + 500)
        slow = halving(lambda n, f=size: Grows(f(n), 0), 2, last, goal)
        found = nearest(lambda n, f=size: Grows(f(n), 1), 2, last, goal)
        assert found[1] == slow
    assert looks[1] < 0.8 * looks[0]


def test_what_is_not_described_at_an_end_does_not_stop_the_search():
    class One:
        def __init__(self, n):
            self.n = n

        def peak(self):
            return self.n

    def made(n):
        if n < 10:
            raise ValueError("completion=10; of 9 tokens 1 to 8 can be the completion")
        return One(n)

    assert nearest(made, 2, 1000, 700)[1] == 700
    with pytest.raises(ValueError, match="completion=10"):
        nearest(made, 2, 1000, 3)
