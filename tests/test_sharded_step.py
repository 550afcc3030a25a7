"""The step that is derived for one rank of FSDP2, against real ranks that talk over gloo."""

import json

import compare
import pytest
from compare import holds
from depth import few

from memlab import Model, Recipe, Run, Sharding, estimate
from memlab.cli import main
from memlab.fit import largest_batch
from memlab.lab import sharded_steps
from memlab.lab.ranks import on_ranks
from memlab.step import simulate
from memlab.terms.host import pinned
from memlab.terms.optimizer import numel
from memlab.terms.sharding import row_shard
from memlab.units import text

SMALL = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 4}
SMALL |= {"intermediate_size": 70, "vocab_size": 101, "max_position_embeddings": 64}
HEADS = {"num_key_value_heads": 2, "head_dim": 8}
# No vocabulary and no feed-forward width here is a multiple of 4: the last ranks pad.
CONFIGS = {
    "llama": {"model_type": "llama", "tie_word_embeddings": False} | SMALL | HEADS,
    "qwen3": {"model_type": "qwen3", "tie_word_embeddings": True} | SMALL | HEADS,
    "gpt_neox": {"model_type": "gpt_neox"} | SMALL,
    "gpt2": {"model_type": "gpt2", "n_layer": 2, "n_embd": 32, "n_head": 4}
    | {"n_positions": 64, "vocab_size": 101},
}
NARROW = {"param_dtype": "bf16", "reduce_dtype": "fp32"}
LAST = {"micro_batches": 3, "gradient_sync": "last"}
LLAMA = Model.preset("llama-3-8b")


def question(family, recipe="fp32", ranks=2, *, config=None, **said):
    whole = CONFIGS[family] | (config or {})
    return compare.question(whole, recipe, {"data": ranks, "zero": 3}, said)


OVER_TWO = few(
    4,
    (
        question("llama"),
        question("llama", checkpoint="block", **NARROW),
        question("llama", "autocast-bf16"),
        question("llama", Recipe(optimizer="sgd"), config={"num_hidden_layers": 6}, tokens=5),
        question("gpt2", **LAST, **NARROW),
        question("qwen3", reshard_after_forward=False),
        question("qwen3", "bf16", micro_batches=2, reduce_dtype="fp32"),
        question("gpt_neox", param_dtype="bf16", optimizer_impl="foreach"),
    ),
)
ON_HOST = few(
    2,
    (
        question("llama", cpu_offload="pageable"),
        question("gpt2", cpu_offload="pageable", micro_batches=2, checkpoint="block", **NARROW),
        question("qwen3", "bf16", cpu_offload="pageable", reduce_dtype="fp32", **LAST),
    ),
)
OVER_FOUR = (
    question("llama", ranks=4, implementation="memlab", config={"vocab_size": 601}),
    question("gpt2", ranks=4, implementation="memlab", checkpoint="block", **LAST),
)
MESH = {"ranks": 4, "replicas": 2}
OVER_A_MESH = few(
    2,
    (
        question("llama", config={"num_hidden_layers": 3}, **MESH),
        question("qwen3", "bf16", reduce_dtype="fp32", micro_batches=2, **MESH),
        question("gpt2", micro_batches=3, gradient_sync="shards", **NARROW, **MESH),
        question("llama", "bf16", cpu_offload="pageable", micro_batches=2, **MESH),
    ),
)


@pytest.fixture(scope="module")
def over_two():
    return on_ranks(2, sharded_steps.several, OVER_TWO + ON_HOST, seconds=300)


@pytest.fixture(scope="module")
def over_four():
    return on_ranks(4, sharded_steps.several, OVER_FOUR + OVER_A_MESH, seconds=300)


def padding(model, ranks, rank):
    """Values that a rank stores of the weights and has no states for, because they are padding."""
    missing = 0
    for tensor in model.tensors():
        whole, own = (row_shard(tensor.shape, ranks=ranks, rank=r) for r in (None, rank))
        missing += (numel(whole) - numel(own)) * tensor.copies
    return missing


@pytest.mark.parametrize("number", range(len(OVER_TWO)), ids=str)
def test_two_real_ranks_hold_what_is_derived(number, over_two):
    derived = holds(simulate(*OVER_TWO[number]), over_two[0][number])
    assert derived.peak.contents["gathered weights"] > 0


@pytest.mark.parametrize("number", range(len(ON_HOST)), ids=str)
def test_a_device_and_its_host_hold_what_is_derived(number, over_two):
    measured = over_two[0][len(OVER_TWO) + number]
    derived = holds(simulate(*ON_HOST[number]), measured)
    assert derived.held_contents["between_steps"]["weights"] == 0
    on_the_host(derived, measured["host"])


def on_the_host(derived, measured):
    assert measured["peak"] == derived.host.bytes
    assert measured["first_peak"] == derived.host.first_step_bytes
    assert measured["contents"] == derived.host.contents
    assert measured["phase"] == derived.host.moment == "optimizer"


@pytest.mark.parametrize("number", range(len(OVER_A_MESH)), ids=str)
def test_a_mesh_of_two_dimensions_holds_what_is_derived(number, over_four):
    asked, measured = OVER_A_MESH[number], over_four[0][len(OVER_FOUR) + number]
    derived = holds(simulate(*asked), measured)
    if derived.host is not None:
        on_the_host(derived, measured["host"])


@pytest.mark.parametrize("number", range(len(OVER_FOUR)), ids=str)
def test_four_real_ranks_hold_what_is_derived_and_the_last_less_by_its_padding(number, over_four):
    derived = holds(simulate(*OVER_FOUR[number]), over_four[0][number])
    assert derived.peak.moment != "optimizer"
    model = OVER_FOUR[number][0]
    missing = [padding(model, 4, rank) for rank in range(4)]
    assert missing[0] == 0 < missing[3]
    below = [over_four[0][number]["peak"] - ranks[number]["peak"] for ranks in over_four]
    assert below == [2 * 4 * count for count in missing]  # two fp32 states


@pytest.mark.parametrize(
    "more",
    [
        {},
        LAST | {"micro_batches": 4},
        {"reshard_after_forward": False},
        {"checkpoint": "block"},
        {"replicas": 2, "micro_batches": 2},
        {"replicas": 4, "gradient_sync": "shards", "micro_batches": 4},
        {"cpu_offload": "pinned", "micro_batches": 2},
    ],
    ids=str,
)
def test_layers_that_are_counted_are_like_those_that_are_simulated(more):
    asked = question("llama", ranks=8, config={"num_hidden_layers": 9}, **NARROW, **more)
    short, whole = simulate(*asked), simulate(*asked, every_layer=True)
    assert short.log.repeats and not whole.log.repeats
    assert short.peak == whole.peak
    assert short.held_contents == whole.held_contents
    assert short.host == whole.host


def test_an_all_reduce_holds_the_gradients_of_all_layers_in_the_format_of_the_reduction():
    """HSDP's alone, until backward is over: the same parts without replicas go one by one."""

    def as_the_root_is_reduced(**how):
        devices = Sharding.of(zero=3, **NARROW, **how)
        log = simulate(LLAMA, "bf16", Run(tokens=64, devices=devices)).log
        span = log.events[log.marks["second.backward"] : log.marks["second.optimizer"]]
        made = [at for r, change, at in span if r and r.op == "reduce_scatter" and change > 0]
        return made[-1]

    layers = [t for t in LLAMA.tensors() if t.name.startswith("layers.")]
    parts = sum(4 * numel(row_shard(t.shape, ranks=4)) * t.copies for t in layers)
    mesh, alone = as_the_root_is_reduced(data=8, replicas=2), as_the_root_is_reduced(data=4)
    assert mesh - alone == parts > 6 * 2**30


def test_weights_on_a_host_leave_the_device_and_take_pinned_blocks_there():
    def step(**how):
        run = Run(tokens=512, devices=Sharding.of(data=8, zero=3, param_dtype="bf16", **how))
        return simulate(LLAMA, "fp32", run)

    near, away, paged = step(), step(cpu_offload="pinned"), step(cpu_offload="pageable")
    assert away.peak == paged.peak and away.peak.bytes < near.peak.bytes
    gone = [away.held_contents["after_backward"][name] for name in ("weights", "gradients")]
    assert gone == [0, 0] and "optimizer" not in away.peak.contents
    assert near.host is None and away.host.moment == "optimizer"
    parts = [(row_shard(t.shape, ranks=8), t.copies) for t in LLAMA.tensors()]
    assert paged.host.contents["weights"] == sum(4 * numel(cut) * n for cut, n in parts)
    assert away.host.contents["weights"] == sum(pinned(4 * numel(cut)) * n for cut, n in parts)
    assert away.host.contents["optimizer"] == paged.host.contents["optimizer"]


def test_two_groups_have_buffers_at_once_on_a_gpu():
    """In forward the next group's buffer is there before the last one's goes."""
    run = Run(tokens=64, devices=Sharding.of(data=8, zero=3, param_dtype="bf16"))
    step = simulate(LLAMA, "fp32", run)
    layer = sum(t.numel for t in LLAMA.tensors() if t.name.startswith("layers."))
    root = LLAMA.parameter_count - LLAMA.layers * layer
    span = step.log.events[step.log.marks["second.forward"] : step.log.marks["second.loss"]]
    changes = [change for r, change, _ in span if r is not None and r.op == "all_gather"]
    held = [sum(changes[: i + 1]) for i in range(len(changes))]
    assert held[:2] == [2 * root, 2 * (root + layer)]
    assert set(held[2:]) == {2 * layer, 2 * (2 * layer)}
    made = {record.op for record, _, _ in step.log.events if record is not None}
    assert "reduce_scatter" in made and "all_reduce" not in made  # the copy is gloo's


def test_less_is_held_where_more_ranks_divide_and_layers_are_let_go():
    def peak(**how):
        devices = {"data": 8, "zero": 3, "param_dtype": "bf16"} | how
        return estimate(LLAMA, "fp32", Run(tokens=512, devices=Sharding.of(**devices)))

    usual, kept = peak(), peak(reshard_after_forward=False)
    layers = sum(t.numel * t.copies for t in LLAMA.tensors() if t.name.startswith("layers."))
    assert kept["gathered weights"].derived > 2 * layers > usual["gathered weights"].derived
    assert peak(data=64).total() < usual.total() < kept.total()
    assert "one rank of 8 (data 8, ZeRO 3, param_dtype=bf16)" in usual.title


@pytest.mark.parametrize(
    ("said", "recipe", "message"),
    [
        ({"step_in_backward": True}, "fp32", "step_in_backward=True is not described beside FSDP2"),
        ({"loss": "chunked"}, "fp32", "loss='chunked' is not described beside FSDP2"),
        ({"frozen": ("norm",)}, "fp32", "frozen=.* is not described beside FSDP2"),
        ({"loop": "sft"}, "fp32", "loop='sft' is not described beside FSDP2"),
        ({"holds": ("model",)}, "fp32", "holds=.* is not described beside FSDP2"),
        ({}, Recipe(optimizer="muon"), "muon is not described on FSDP2's parts"),
        ({}, "zero", "recipe 'zero': copies beside weights are not described on FSDP2"),
        (NARROW, "autocast-bf16", "beside autocast: describe one of them"),
    ],
    ids=str,
)
def test_what_is_not_described_is_refused_by_name(said, recipe, message):
    with pytest.raises(ValueError, match=message):
        estimate(*question("llama", recipe, **said))


def test_a_buffer_in_the_format_of_the_weights_is_refused_beside_another():
    gemma = Model.from_config(CONFIGS["llama"] | {"model_type": "gemma"})
    with pytest.raises(ValueError, match="embed_scale, a buffer of fp32, is not described"):
        estimate(gemma, "fp32", question("llama", **NARROW)[2])


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"zero": 2, "param_dtype": "bf16"}, "param_dtype='bf16' is FSDP2's, which is zero=3"),
        ({"zero": 3, "reduce_dtype": "int8"}, "reduce_dtype='int8' is not described; known: fp32"),
        ({"zero": 3, "gradient_sync": "never"}, "gradient_sync='never' is not described"),
        ({"zero": 3, "reshard_after_forward": 2}, "reshard_after_forward=2; True or False"),
        ({"zero": 3, "cpu_offload": "nvme"}, "cpu_offload='nvme' is not described; known: pinned"),
        ({"zero": 3, "replicas": 3}, "replicas=3 of data=8 ranks: groups of the same size"),
        ({"zero": 3, "replicas": 8}, "replicas=8 of data=8 ranks: .* of 2 ranks or more"),
        ({"zero": 3, "replicas": 2, "tensor": 2}, "replicas=2 beside other divisions"),
        ({"zero": 3, "gradient_sync": "shards"}, "'shards' is between replicas"),
    ],
    ids=str,
)
def test_a_policy_fails_by_name(said, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Sharding.of(data=8, **said)


def test_a_run_goes_through_json_with_its_policy():
    said = {"replicas": 2, "cpu_offload": "pageable", "reshard_after_forward": False}
    run = question("llama", ranks=4, **said, **LAST, **NARROW)[2]
    assert Run.from_json(run.to_json()) == run


def test_the_shell_answers_with_a_peak(capsys):
    words = "llama-3-8b --fsdp 8 --tokens 512 --param-dtype bf16 --no-reshard --gradient-sync last"
    assert main(["estimate", *words.split()]) == 0
    said = capsys.readouterr().out
    devices = Sharding.of(
        data=8, zero=3, param_dtype="bf16", reshard_after_forward=False, gradient_sync="last"
    )
    derived = estimate(LLAMA, None, Run(tokens=512, devices=devices))
    assert str(derived) in said and "gathered weights" in said
    words = "llama-3-8b --fsdp 8 --replicas 2 --cpu-offload --tokens 512 --param-dtype bf16"
    assert main(["estimate", *words.split()]) == 0
    said = capsys.readouterr().out
    devices = Sharding.of(data=8, zero=3, param_dtype="bf16", replicas=2, cpu_offload="pinned")
    step = simulate(LLAMA, None, Run(tokens=512, devices=devices))
    size = step.host.bytes
    whole = (
        f"{text(8 * size)} if one machine has all 8 ranks, {text(size)} of one rank, in optimizer: "
    )
    assert f"on the pinned host     {whole}" in said
    assert main(["estimate", *words.split(), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["host"]["bytes"] == step.host.bytes == sum(told["host"]["contents"].values())
    assert told["peak"]["bytes"] == step.peak.bytes and told["rows"]["weights"] == 0
    for wrong, message in (
        ("--fsdp 8 --cpu-offload", "leaves no weights, gradients or states there: it needs"),
        ("--fsdp 8 --zero 3", "--zero 3 beside --fsdp; give one"),
        ("--fsdp 1", "--fsdp 1; at least 2 ranks divide weights"),
    ):
        assert main(["estimate", "llama-3-8b", *wrong.split()]) == 2
        assert message in capsys.readouterr().err


def test_the_largest_batch_of_a_rank_is_found():
    devices = Sharding.of(data=8, zero=3, param_dtype="bf16")
    run = Run(tokens=512, checkpoint="block", devices=devices)
    alone = largest_batch(LLAMA, "fp32", run.replace(devices=Sharding()), on="H100")
    assert alone.value == 0 < largest_batch(LLAMA, "fp32", run, on="H100").value


@pytest.mark.parametrize("beside", [{}, {"tensor": 2}, {"pipeline": 2}], ids=str)
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("cpu_offload", "pinned"),
        ("param_dtype", "bf16"),
        ("reduce_dtype", "fp32"),
        ("reshard_after_forward", False),
        ("gradient_sync", "last"),
    ],
)
def test_one_rank_that_divides_nothing_has_no_policy(field, value, beside):
    with pytest.raises(
        ValueError, match=f"{field}={value!r} with data=1: 2 ranks or more divide with ZeRO"
    ):
        Sharding.of(data=1, zero=3, **{field: value}, **beside)


@pytest.mark.parametrize("beside", [{}, {"tensor": 2}, {"pipeline": 2}], ids=str)
@pytest.mark.parametrize("zero", [1, 2, 3])
def test_a_step_of_zero_over_one_rank_is_refused(zero, beside):
    """It was answered as if there were no ZeRO; what stays between steps is the same."""
    model, recipe, run = question("llama", micro_batches=2)
    there = Sharding.of(data=1, zero=zero, **beside)
    with pytest.raises(ValueError, match=f"zero={zero} with data=1: no step is described"):
        estimate(model, recipe, run.replace(devices=there))
    at_rest = [Run(devices=each) for each in (there, Sharding.of(**beside))]
    first, second = (estimate(model, recipe, each).total() for each in at_rest)
    assert first == second
