"""The step that is derived for a rank with some of the experts, against real ranks over gloo."""

import json

import compare
import pytest
from compare import holds
from depth import few

from memlab import Model, Recipe, Run, Sharding, estimate, text
from memlab.cli import main
from memlab.fit import largest_batch
from memlab.lab import expert_steps
from memlab.lab.ranks import on_ranks
from memlab.step import simulate

SMALL = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 4, "vocab_size": 101}
SMALL |= {"num_key_value_heads": 2, "max_position_embeddings": 64, "tie_word_embeddings": False}
SMALL |= {"intermediate_size": 72, "num_experts_per_tok": 2}
FOUR, WIDE = {"num_experts": 4}, {"moe_intermediate_size": 24}
GROUPED = {"n_routed_experts": 4, "n_shared_experts": 1, "first_k_dense_replace": 1, **WIDE}
GROUPED |= {"n_group": 1, "topk_group": 1}
LATENT = {"q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8}
LATENT |= {"v_head_dim": 8, "num_key_value_heads": 4}
NARROW = {"intermediate_size": 24}
CONFIGS = {
    "qwen3_moe": SMALL | FOUR | WIDE | {"head_dim": 8, "norm_topk_prob": True},
    "mixtral": SMALL | NARROW | {"num_local_experts": 4},
    "olmoe": SMALL | NARROW | FOUR,
    "qwen2_moe": SMALL | FOUR | WIDE | {"shared_expert_intermediate_size": 48},
    "gpt_oss": SMALL | NARROW | {"num_local_experts": 4, "head_dim": 8, "sliding_window": 8},
    "glm4_moe": SMALL | GROUPED | {"head_dim": 8},
    "deepseek_v2": SMALL | GROUPED | LATENT,
    "deepseek_v3": SMALL | GROUPED | LATENT,
}
MIXED = {"param_dtype": "bf16", "reduce_dtype": "fp32"}
LATER = {"micro_batches": 2, "gradient_sync": "last"}
QWEN = Model.preset("qwen3-30b-a3b")


def question(family, recipe="fp32", ranks=2, *, config=None, **said):
    whole = {"model_type": family} | CONFIGS[family] | (config or {})
    return compare.question(whole, recipe, {"data": ranks, "zero": 3, "expert": 2}, said)


OVER_TWO = few(
    5,
    (
        question("qwen3_moe"),
        question("qwen3_moe", checkpoint="block", routing="fullest", **MIXED),
        question(
            "qwen3_moe",
            routing="fullest",
            config={"num_experts_per_tok": 3},
            optimizer_impl="foreach",
        ),
        question(
            "qwen3_moe", tokens=5, batch=1, config={"mlp_only_layers": [1], "num_hidden_layers": 3}
        ),
        question("mixtral", "bf16"),
        question("olmoe", Recipe(optimizer="sgd"), micro_batches=2),
        question("qwen2_moe", **LATER),
        question("gpt_oss", attention="eager"),
        question("glm4_moe", "bf16"),
        question("deepseek_v2", attention="eager"),
        question("deepseek_v3", checkpoint="block"),
    ),
)
OVER_FOUR = (
    question("qwen3_moe", ranks=4, **MIXED),
    question("mixtral", ranks=4, expert=4, micro_batches=2),
)


@pytest.fixture(scope="module")
def over_two():
    return on_ranks(2, expert_steps.several, OVER_TWO)


@pytest.fixture(scope="module")
def over_four():
    return on_ranks(4, expert_steps.several, OVER_FOUR)


@pytest.mark.parametrize("number", range(len(OVER_TWO)), ids=str)
def test_a_rank_that_alone_has_its_experts_holds_what_is_derived(number, over_two):
    holds(simulate(*OVER_TWO[number]), over_two[0][number])


@pytest.mark.deep
@pytest.mark.parametrize("number", range(len(OVER_FOUR)), ids=str)
def test_ranks_that_share_their_experts_or_do_not_hold_what_is_derived(number, over_four):
    holds(simulate(*OVER_FOUR[number]), over_four[0][number])


@pytest.mark.parametrize("more", [{}, {"checkpoint": "block"}, {"micro_batches": 3}], ids=str)
@pytest.mark.parametrize("expert", [2, 4])
def test_layers_that_are_counted_are_like_those_that_are_simulated(expert, more):
    config = {"num_hidden_layers": 9, "first_k_dense_replace": 2}
    asked = question("glm4_moe", ranks=4, expert=expert, config=config, **more)
    short, whole = simulate(*asked), simulate(*asked, every_layer=True)
    assert short.log.repeats and not whole.log.repeats
    assert short.peak == whole.peak
    assert short.held_contents == whole.held_contents


def spread(**said):
    return Run(tokens=4096, devices=Sharding.of(data=8, zero=3, **said))


def test_divided_experts_are_not_gathered_but_copied_and_their_gradients_stand_three_times():
    """Of qwen3-30b-a3b on 8 ranks: what FSDP2 does with a group of one rank."""

    def top(run):
        log = simulate(QWEN, "bf16", run).log
        return {
            op: max(record.bytes for record, change, _ in log.events if record and record.op == op)
            for op in ("reduce_scatter_copy_in", "reduce_scatter", "div")
        }

    layer = 2 * sum(t.numel for t in QWEN.tensors() if ".experts_" in t.name)
    alone = top(spread(expert=8))
    assert alone["div"] == alone["reduce_scatter"] == layer // 8
    gathered = simulate(QWEN, "bf16", spread()).log.events
    spread_out = simulate(QWEN, "bf16", spread(expert=8)).log.events
    most = [
        max(
            r.bytes
            for r, _, _ in events
            if r and r.category == "gathered weights" and "exp" in r.op
        )
        for events in (gathered, spread_out)
    ]
    assert most[0] == 8 * most[1]


def test_what_stays_is_as_much_as_without_and_the_parts_add_up():
    def figures(ledger):
        return [(row.term, row.derived) for row in ledger.rows]

    without = estimate(QWEN, "bf16", Run(devices=Sharding(data=8, zero=3)))
    for expert in (2, 8):
        devices = Sharding.of(data=8, zero=3, expert=expert)
        resident = estimate(QWEN, "bf16", Run(devices=devices))
        assert figures(resident) == figures(without)
        step = simulate(QWEN, "bf16", spread(expert=expert))
        assert step.rows["weights"] == resident["weights"].derived
        assert step.rows["gradients"] == resident["gradients"].derived
        assert step.rows["optimizer"] == resident["optimizer"].derived


def test_the_fullest_routing_brings_the_rows_of_all_ranks():
    even, fullest = (
        simulate(QWEN, "bf16", spread(expert=8, routing=way)) for way in ("even", "fullest")
    )
    rows = 4096 * QWEN.experts_per_token
    more = fullest.rows["activations"] - even.rows["activations"]
    # Of each row in each layer: two orders, a mask, a weight; what the experts read, gate and up,
    # silu(gate) and the product. What they give is weighed by ones, and not saved.
    row = 2 * 8 + 1 + 2 * (1 + QWEN.d_model + 4 * QWEN.expert_ff)
    assert more == pytest.approx(7 * rows * QWEN.layers * row, rel=0.001)


@pytest.mark.parametrize(
    ("family", "said", "message"),
    [
        ("qwen3_moe", {"expert": 3}, r"expert=3 does not divide data=2 \(ranks\)"),
        (
            "qwen3_moe",
            {"routing": "worst"},
            "routing='worst' is not described; known: even, fullest",
        ),
        ("qwen3_moe", {"expert": 1, "routing": "fullest"}, "routing='fullest' is between expert"),
        ("qwen3_moe", {"ranks": 8, "expert": 8}, r"expert=8 does not divide X=4 \(experts\)"),
        ("qwen3_moe", {"ranks": 4, "replicas": 2}, "expert=2 beside other divisions"),
        ("qwen3_moe", {"library": "deepspeed"}, "expert=2 with library='deepspeed': the rest is"),
        (
            "qwen3_moe",
            {"cpu_offload": "pinned"},
            "cpu_offload='pinned' is not described beside exp",
        ),
        ("qwen3_moe", {"param_dtype": "bf16"}, "fsdp_mixed_precision=True is 'bf16' with 'fp32'"),
        ("qwen3_moe", {"recipe": "autocast-bf16"}, "autocast='bf16' is not described beside exp"),
        ("qwen3_moe", {"loop": "trainer"}, "loop='trainer' is not described beside expert"),
        ("qwen3_moe", {"config": {"tie_word_embeddings": True}}, "stores and gathers it twice"),
        (
            "qwen3_moe",
            {"config": {"output_router_logits": True}},
            "output_router_logits=True is desc",
        ),
    ],
    ids=str,
)
def test_what_is_not_described_is_refused_by_name(family, said, message):
    with pytest.raises(ValueError, match=message):
        estimate(*question(family, **said))


def test_dense_models_and_plans_that_are_not_there_are_refused_by_name():
    devices = Sharding.of(data=2, zero=3, expert=2)
    with pytest.raises(ValueError, match=r"expert=2 does not divide X=0 \(experts\)"):
        estimate(Model.preset("llama-3-8b"), "bf16", Run(devices=devices))
    with pytest.raises(ValueError, match="transformers 'llama' is not described beside expert"):
        estimate(Model.preset("llama-3-8b"), "bf16", Run(tokens=8, devices=devices))
    with pytest.raises(ValueError, match="transformers 'llama4_text' is not described beside exp"):
        estimate(Model.preset("llama-4-scout"), "bf16", Run(tokens=8, devices=devices))
    with pytest.raises(ValueError, match="expert=2 with zero=0: the rest is FSDP2's, zero=3"):
        Sharding.of(data=2, expert=2)


def test_a_run_goes_through_json():
    run = spread(expert=4, routing="fullest")
    assert Run.from_json(run.to_json()) == run


def test_the_shell_answers_with_both_routings(capsys):
    words = "estimate qwen3-30b-a3b --precision bf16 --fsdp 8 --expert 8 --tokens 4096".split()
    assert main(words) == 0
    said = capsys.readouterr().out
    even, fullest = (
        estimate(QWEN, "bf16", spread(expert=8, routing=way)) for way in ("even", "fullest")
    )
    assert str(even) in said and text(fullest.total()) in said
    assert "one rank of 8 (data 8, ZeRO 3, expert=8): the peak" in said
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["sharding"]["expert"] == 8 and told["sharding"]["routing"] == "even"
    assert told["peak"]["bytes"] == even.total()
    assert told["sharding"]["fullest"] == fullest.total()
    for wrong, message in (
        ("--expert 8", "--expert 8 divides experts among ranks of FSDP2; give --fsdp N, too"),
        ("--fsdp 8 --expert 3", "--expert 3 does not divide data=8"),
    ):
        assert main(["estimate", "qwen3-30b-a3b", *wrong.split()]) == 2
        assert message in capsys.readouterr().err


def test_the_largest_batch_of_a_rank_is_found():
    model = question("qwen3_moe")[0]
    far = spread(expert=4, routing="fullest").replace(tokens=64)
    runs = (far, far.replace(devices=Sharding.of(data=8, zero=3, expert=4)))
    found = [largest_batch(model, "bf16", run, on=2**26, spare=0).value for run in runs]
    assert 0 < found[0] < found[1]
