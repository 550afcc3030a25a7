"""The step that is derived for a rank with a part of each matrix, against real ranks over gloo."""

import json

import compare
import pytest
from compare import holds
from depth import few

from memlab import Model, Recipe, Run, Sharding, estimate, text
from memlab.cli import main
from memlab.fit import largest_batch
from memlab.lab import tensor_steps
from memlab.lab.ranks import fake_group, on_ranks
from memlab.step import simulate

SMALL = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 4, "head_dim": 8}
SMALL |= {"intermediate_size": 72, "vocab_size": 101, "max_position_embeddings": 64}
FEW, MANY = {"num_key_value_heads": 2}, {"num_key_value_heads": 4}
CONFIGS = {
    "llama": {"model_type": "llama", "tie_word_embeddings": False} | SMALL | FEW,
    "qwen2": {"model_type": "qwen2", "tie_word_embeddings": False} | SMALL | FEW,
    "qwen3": {"model_type": "qwen3", "tie_word_embeddings": True} | SMALL | FEW,
}
LLAMA = Model.preset("llama-3-8b")


def question(family, recipe="fp32", ranks=2, *, config=None, **said):
    return compare.question(CONFIGS[family] | (config or {}), recipe, {"tensor": ranks}, said)


EVEN = {"vocab_size": 600}
# On two real processes; words that come out even, and words that do not.
REAL = few(
    2,
    (
        question("llama"),
        question("llama", "bf16", sequence=True, micro_batches=2, checkpoint="block", config=EVEN),
        question("qwen3", plan="transformers"),
    ),
)
# On rank 0 of two or four that this process makes believe are there. Their peaks were also counted
# on four real processes, to the same byte; processes are what takes time here.
PRETENDED = (
    question("llama", "bf16", micro_batches=2, config=EVEN),
    question("llama", sequence=True),
    question("llama", sequence=True, batch=1, config={"num_hidden_layers": 6}),
    question("qwen3", checkpoint="block", config={"tie_word_embeddings": False}),
    question("qwen3", batch=1, tokens=5, config=EVEN),
    question("qwen3", "bf16", sequence=True),
    question("qwen2"),
    question("llama", "bf16", plan="transformers", config=EVEN),
    question("llama", ranks=4, config=MANY, tokens=24),
    question("llama", ranks=4, config=MANY | EVEN, sequence=True, batch=3),
)


@pytest.fixture(scope="module")
def found():
    return on_ranks(2, tensor_steps.several, REAL)


PARTS = ("weights", "gradients", "optimizer")


@pytest.mark.parametrize("number", range(len(REAL)), ids=str)
def test_two_real_ranks_hold_what_is_derived(number, found):
    holds(simulate(*REAL[number]), found[0][number], PARTS)
    first, second = (ranks[number]["peak"] for ranks in found)
    uneven = REAL[number][0].vocab % 2  # the last rank has fewer words then
    assert second < first if uneven else second == first


@pytest.mark.sample(5)
@pytest.mark.parametrize("number", range(len(PRETENDED)), ids=str)
def test_rank_0_of_several_holds_what_is_derived(number):
    asked = PRETENDED[number]
    with fake_group(asked[2].devices.tensor):
        holds(simulate(*asked), tensor_steps.steps(*asked), PARTS)


@pytest.mark.parametrize("sequence", [False, True])
def test_layers_that_are_counted_are_like_those_that_are_simulated(sequence):
    asked = question("qwen3", config={"num_hidden_layers": 9}, sequence=sequence)
    short, whole = simulate(*asked), simulate(*asked, every_layer=True)
    assert short.log.repeats and not whole.log.repeats
    assert short.peak == whole.peak
    assert short.held_contents == whole.held_contents


def test_each_way_to_divide_leaves_less_and_the_table_has_a_whole_gradient():
    def step(**devices):
        return simulate(LLAMA, "bf16", Run(tokens=4096, devices=Sharding.of(**devices)))

    alone, eight, tokens = step(), step(tensor=8), step(tensor=8, sequence=True)
    assert alone.peak.bytes > eight.peak.bytes > tokens.peak.bytes
    assert eight.rows["activations"] > tokens.rows["activations"] > alone.rows["activations"] / 8
    assert eight.rows["logits"] < alone.rows["logits"] / 7
    words = 2 * LLAMA.vocab * LLAMA.d_model
    resident = estimate(LLAMA, "bf16", Run(devices=Sharding(tensor=8)))
    assert eight.rows["weights"] == resident["weights"].derived
    assert eight.rows["optimizer"] == resident["optimizer"].derived
    assert eight.rows["gradients"] == resident["gradients"].derived + words - words // 8


@pytest.mark.parametrize(
    ("said", "recipe", "message"),
    [
        ({"loss": "chunked"}, "fp32", "loss='chunked' is not described beside tensor parallelism"),
        ({"clip": True}, "fp32", "clip=True is not described beside tensor parallelism"),
        ({"holds": ("model",)}, "fp32", "holds=.* is not described beside tensor parallelism"),
        ({}, "autocast-bf16", "autocast='bf16' is not described beside tensor parallelism"),
        ({}, Recipe(optimizer="sgd"), "sgd is not described beside tensor .*; known: adamw"),
        ({"optimizer_impl": "foreach"}, "fp32", "refuse plain weights beside DTensors"),
        ({"attention": "eager"}, "fp32", "attention='eager' is not described beside tensor"),
        ({"implementation": "memlab"}, "fp32", "memlab 'llama' is not described beside tensor"),
        ({"sequence": True, "tokens": 15}, "fp32", "tokens=15; a multiple of tensor=2 is needed"),
        ({"ranks": 4}, "fp32", r"tensor=4 does not divide K=2 \(key/value heads\)"),
        ({"config": {"mlp_bias": True}}, "fp32", "ff_bias=True is not described beside tensor"),
    ],
    ids=str,
)
def test_what_is_not_described_is_refused_by_name(said, recipe, message):
    with pytest.raises(ValueError, match=message):
        estimate(*question("llama", recipe, **said))


def test_a_family_and_devices_that_are_not_described_are_refused_by_name():
    with pytest.raises(ValueError, match="transformers 'gpt2' is not described beside tensor"):
        estimate(Model.preset("gpt2"), "fp32", Run(tokens=64, devices=Sharding(tensor=2)))
    for more in ({"data": 2}, {"context": 2}, {"pipeline": 2}, {"data": 2, "zero": 3}):
        devices = Sharding.of(tensor=2, **more)
        with pytest.raises(ValueError, match="the step of one device alone is described"):
            estimate(LLAMA, "bf16", Run(tokens=64, devices=devices))


def test_sequence_needs_ranks_and_a_truth_value():
    with pytest.raises(ValueError, match="sequence=True is tensor parallelism's, of 2 ranks"):
        Sharding.of(sequence=True)
    with pytest.raises(TypeError, match="sequence=1; True or False is needed"):
        Sharding.of(tensor=2, sequence=1)


def test_a_run_goes_through_json():
    run = question("llama", sequence=True)[2]
    assert Run.from_json(run.to_json()) == run


def test_the_shell_answers_with_a_peak(capsys):
    words = "estimate llama-3-8b --tensor 8 --sequence --tokens 4096".split()
    assert main(words) == 0
    said = capsys.readouterr().out
    devices = Sharding.of(tensor=8, sequence=True)
    derived = estimate(LLAMA, None, Run(tokens=4096, devices=devices))
    assert str(derived) in said
    assert "one rank of 8 (tensor 8, sequence=True): the peak" in said
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["sharding"]["sequence"] is True and told["sharding"]["tensor"] == 8
    assert told["peak"]["bytes"] == derived.total() and text(derived.total())
    for wrong, message in (
        ("--tensor 3", "--tensor-parallel 3 does not divide K=8"),
        ("--sequence", "--sequence is tensor parallelism's"),
        ("--fsdp 8 --sequence", "--sequence beside --fsdp; give one"),
    ):
        assert main(["estimate", "llama-3-8b", *wrong.split()]) == 2
        assert message in capsys.readouterr().err


def test_the_largest_batch_of_a_rank_is_found():
    run = Run(tokens=4096, devices=Sharding.of(tensor=8, sequence=True))
    alone = largest_batch(LLAMA, "bf16", run.replace(devices=Sharding()), on="H200")
    assert 0 < alone.value < largest_batch(LLAMA, "bf16", run, on="H200").value


def test_torch_refuses_its_faster_loops_on_weights_of_two_kinds():
    """Why `optimizer_loop` is forloop: a norm's weight is plain, the matrices' are DTensors."""
    import torch
    from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module

    from memlab.lab.ranks import fake_ranks

    run = Run(devices=Sharding(tensor=2))
    assert (run.optimizer_loop, Run().optimizer_loop) == ("forloop", "foreach")
    with fake_ranks(1, 2) as (_, mesh):
        net = torch.nn.Sequential(torch.nn.LayerNorm(4), torch.nn.Linear(4, 4, bias=False))
        parallelize_module(net, mesh, {"1": ColwiseParallel()})
        for weight in net.parameters():
            weight.grad = torch.zeros_like(weight)
        for loop in ("foreach", "fused"):
            with pytest.raises(RuntimeError, match="mixed torch.Tensor and DTensor"):
                torch.optim.AdamW(net.parameters(), **{loop: True}).step()
        torch.optim.AdamW(net.parameters(), foreach=False).step()
