"""LoRA's step that is derived for one rank of FSDP2, against peft on real ranks over gloo."""

import json

import pytest
import torch
from compare import holds
from depth import few
from test_sharded_step import LAST, MESH, NARROW, on_the_host, question
from torch.distributed.fsdp import fully_shard

from memlab import Model, Run, Sharding
from memlab.cli import main
from memlab.formats import storage
from memlab.lab import sharded_steps
from memlab.lab.ranks import in_turn, on_ranks
from memlab.recipe import Recipe
from memlab.run.lower_bound import least
from memlab.sharding.adapter_rows import part_count, weight_bytes
from memlab.step import Lora, simulate

# Rank 3 is divided by neither number of ranks: the last ones pad.
ALL = ("q", "k", "v", "out", "gate", "up", "down")
EVERY, TWO = Lora(3, ALL), Lora(3)
ONE_FORMAT = Lora(3, ALL, dtype="bf16")  # autocast_adapter_dtype=False
TABLES = ("lm_head", "embedding")
DEEP = {"num_hidden_layers": 6}
OVER_TWO = few(
    5,
    (
        question("llama", lora=TWO),
        question("llama", "bf16", lora=EVERY),
        question("llama", "bf16", lora=ONE_FORMAT),
        question("llama", "bf16", lora=EVERY, checkpoint="block", **NARROW),
        question("llama", lora=TWO, **NARROW),
        question("qwen3", "bf16", lora=Lora(3, ALL, dropout=0.1), reduce_dtype="fp32", **LAST),
        question("gpt2", "autocast-bf16", lora=Lora(3, ("qkv", "down"))),
        question("llama", "bf16", lora=Lora(3, saved=TABLES), param_dtype="bf16"),
        question("llama", "bf16", lora=Lora(3, ("q", "down"), dora=True)),
        question("llama", "bf16", lora=TWO, config=DEEP, reshard_after_forward=False),
        question("llama", implementation="memlab", lora=TWO),
    ),
)
ON_HOST = (
    question("llama", "bf16", lora=TWO, cpu_offload="pageable"),
    question("qwen3", "bf16", lora=TWO, cpu_offload="pageable", micro_batches=2, **NARROW),
)
OVER_FOUR = few(
    2,
    (
        question("llama", "bf16", lora=EVERY, ranks=4, config=DEEP),
        question("qwen3", "bf16", lora=Lora(3, saved=("lm_head",)), ranks=4, **NARROW),
        question("llama", "bf16", lora=TWO, **MESH, **NARROW),
        question("gpt2", "bf16", lora=Lora(5, ("qkv",)), micro_batches=2, **MESH),
    ),
)
LLAMA = Model.preset("llama-3-8b")


@pytest.fixture(scope="module")
def over_two():
    return on_ranks(2, sharded_steps.several, OVER_TWO + ON_HOST, seconds=300)


@pytest.fixture(scope="module")
def over_four():
    return on_ranks(4, sharded_steps.several, OVER_FOUR, seconds=300)


@pytest.mark.parametrize("number", range(len(OVER_TWO)), ids=str)
def test_two_real_ranks_hold_what_is_derived(number, over_two):
    derived = holds(simulate(*OVER_TWO[number]), over_two[0][number])
    assert derived.peak.contents["gathered weights"] > 0


@pytest.mark.parametrize("number", range(len(ON_HOST)), ids=str)
def test_a_device_and_its_host_hold_what_is_derived(number, over_two):
    measured = over_two[0][len(OVER_TWO) + number]
    on_the_host(holds(simulate(*ON_HOST[number]), measured), measured["host"])


@pytest.mark.deep
@pytest.mark.parametrize("number", range(len(OVER_FOUR)), ids=str)
def test_four_real_ranks_hold_what_is_derived(number, over_four):
    model, recipe, run = OVER_FOUR[number]
    derived = holds(simulate(*OVER_FOUR[number]), over_four[0][number])
    theirs = run.lora.format(recipe, peft=True)
    parts = weight_bytes(run.lora, model, recipe, theirs, run.devices)
    assert derived.held_contents["between_steps"]["weights"] == parts


@pytest.mark.parametrize("more", [{}, NARROW, {"checkpoint": "block"}, {"replicas": 2}], ids=str)
def test_layers_that_are_counted_are_like_those_that_are_simulated(more):
    nine = {"num_hidden_layers": 9}
    asked = question("llama", "bf16", ranks=8, config=nine, lora=EVERY, **more)
    short, whole = simulate(*asked), simulate(*asked, every_layer=True)
    assert short.log.repeats and not whole.log.repeats
    assert short.peak == whole.peak and short.held_contents == whole.held_contents


def step(lora, recipe="bf16", **how):
    devices = Sharding.of(data=8, zero=3, **how)
    return simulate(LLAMA, recipe, Run(tokens=512, lora=lora, devices=devices))


def made(log, op):
    span = log.events[log.marks["second.forward"] : log.marks["second.optimizer"]]
    return [(r.dtype, change) for r, change, _ in span if r and r.op == op and change > 0]


def test_a_group_of_two_formats_is_sent_as_bytes():
    """peft's fp32 beside bf16: one buffer of bytes; with one format, or a policy, of bf16."""
    layer = sum(t.numel for t in LLAMA.tensors() if t.name.startswith("layers."))
    beside = part_count(EVERY, LLAMA, Sharding(data=8, zero=3)) // LLAMA.layers * 8
    assert max(made(step(EVERY).log, "all_gather")[1:-1]) == ("uint8", 2 * layer + 4 * beside)
    for other in (step(ONE_FORMAT), step(EVERY, param_dtype="bf16")):
        buffers = made(other.log, "all_gather")
        assert {dtype for dtype, _ in buffers} == {"bf16"}
        assert ("bf16", 2 * (layer + beside)) in buffers
    copies = made(step(EVERY, param_dtype="bf16").log, "all_gather_copy_in")
    assert set(copies) == {("bf16", 2 * beside // 8)}  # of the adapters alone


def test_gradients_are_reduced_of_what_is_trained_alone():
    derived = step(EVERY)
    beside = part_count(EVERY, LLAMA, Sharding(data=8, zero=3))
    reduced = made(derived.log, "reduce_scatter")
    assert len(reduced) > 1 and set(reduced) == {("fp32", 4 * beside // LLAMA.layers)}
    after = derived.held_contents["after_backward"]
    assert after["gradients"] == 4 * beside and after["optimizer"] >= 2 * 4 * beside


def test_more_ranks_than_the_rank_of_an_adapter_divide_its_a_no_further():
    one, eight, many = (part_count(TWO, LLAMA, Sharding(data=n, zero=3)) for n in (1, 8, 64))
    assert one == TWO.parameter_count(LLAMA)
    rows = 2 * LLAMA.layers * LLAMA.d_model  # one row of a beside q, and beside v
    assert eight > rows and many > rows and many - rows == (eight - rows) / 8


def test_the_least_is_of_parts():
    run = Run(tokens=512, lora=TWO, devices=Sharding(data=8, zero=3))
    found = least(LLAMA, Recipe(weights="bf16", gradients="bf16"), run)
    assert found["weights"] < storage(LLAMA.parameter_count, "bf16") / 7.9
    assert sum(found.values()) <= simulate(LLAMA, "bf16", run).peak.bytes


class Pair(torch.nn.Module):
    """A bf16 layer and an fp32 one, in one group."""

    def __init__(self):
        super().__init__()
        self.narrow, self.wide = torch.nn.Linear(4, 4).bfloat16(), torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.wide(self.narrow(x.bfloat16()).float()).sum()


def mixed(trained):
    """What fully_shard says of a step with both, the narrow one trained or frozen."""
    net = Pair()
    net.narrow.requires_grad_(trained)
    fully_shard(net)
    try:
        net(torch.ones(1, 4)).backward()
    except AssertionError as error:
        return str(error)
    return "done"


def test_of_two_formats_in_a_group_one_at_most_is_trained():
    """torch's own words: why peft's fp32 adapters may stand beside bf16, which is frozen."""
    frozen, trained = on_ranks(2, in_turn, (mixed, False), (mixed, True))[0]
    assert frozen == "done"
    assert "FSDP expects uniform original parameter dtype" in trained


def test_the_shell_answers_with_the_peak(tmp_path, capsys):
    config = tmp_path / "config.json"
    model, recipe, run = question("llama", "bf16", lora=EVERY)
    config.write_text(json.dumps(model.config), encoding="utf-8")
    asked = "--batch 2 --tokens 16 --backend cpu --precision bf16 --fsdp 2 --lora-rank 3"
    command = ["estimate", str(config), *asked.split(), "--lora-targets", ",".join(ALL), "--json"]
    assert main(command) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["peak"]["bytes"] == simulate(model, recipe, run).peak.bytes


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"lora": Lora(3, base="nf4")}, "base='nf4' is not described beside FSDP2"),
        (
            {"lora": Lora(3, saved=("lm_head",)), "loop": "trainer"},
            "saved=.'lm_head',. is not described beside Trainer's own FSDP2",
        ),
        ({"lora": TWO, "loop": "sft"}, "loop='sft' is not described beside FSDP2"),
    ],
    ids=str,
)
def test_what_is_not_described_is_refused_by_name(said, message):
    with pytest.raises(ValueError, match=message):
        simulate(*question("llama", "bf16", **said))
