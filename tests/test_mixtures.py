"""Mixtures of experts: their shape, their term, their steps and calls, each to the byte."""

import time

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from mixtures import LATER, MIXTURES, random_mixtures  # noqa: E402
from real_inference import PHASES, real_call  # noqa: E402
from real_steps import Question, deep, hugging_face, quiet, real_step, simulated  # noqa: E402
from test_calls import differences  # noqa: E402
from test_step_cuda import on_cuda, traced  # noqa: E402

from memlab import Model, Recipe, Run  # noqa: E402
from memlab.base.frozen import replace  # noqa: E402
from memlab.estimate import estimate  # noqa: E402
from memlab.families import NAMES, config_types, record_of, tabled  # noqa: E402
from memlab.page import supported as page_described  # noqa: E402
from memlab.page.answer import answered  # noqa: E402
from memlab.recipe.resident import resident  # noqa: E402
from memlab.sharding import Sharding  # noqa: E402
from memlab.step import simulate  # noqa: E402
from memlab.step.calls import decode, prefill  # noqa: E402
from memlab.terms import experts  # noqa: E402
from memlab.terms.kv_cache import mla_cache  # noqa: E402

BALANCED = [name for name in MIXTURES if record_of(name).reads("output_router_logits")]
SHAPE = {
    "num_hidden_layers": 2,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 61,
    "num_experts_per_tok": 2,
}
OWN = {
    "qwen3_moe": {"num_experts": 8, "moe_intermediate_size": 24, "head_dim": 16},
    "mixtral": {"num_local_experts": 8},
    "olmoe": {"num_experts": 8},
    "qwen2_moe": {
        "num_experts": 8,
        "moe_intermediate_size": 24,
        "shared_expert_intermediate_size": 40,
    },
}
OWN["glm4_moe"] = {
    "n_routed_experts": 8,
    "n_shared_experts": 2,
    "n_group": 4,
    "topk_group": 2,
    "moe_intermediate_size": 24,
    "head_dim": 16,
}
OWN["gpt_oss"] = {"num_local_experts": 8, "head_dim": 16, "sliding_window": 6}
LATENT = {
    "num_key_value_heads": 4,
    "q_lora_rank": 24,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 16,
    "n_routed_experts": 8,
    "n_shared_experts": 2,
    "first_k_dense_replace": 1,
    "n_group": 4,
    "topk_group": 2,
    "moe_intermediate_size": 24,
}
OWN["llama4_text"] = {"num_local_experts": 8, "intermediate_size_mlp": 40, "head_dim": 16}
OWN |= {"deepseek_v3": LATENT, "deepseek_v2": LATENT | {"topk_method": "group_limited_greedy"}}
DRAWS = dict.fromkeys(LATER, 1)  # of the others each test's own number
QWEN3_235B = {
    "model_type": "qwen3_moe",
    "num_hidden_layers": 94,
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "num_attention_heads": 64,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 1536,
    "vocab_size": 151936,
    "norm_topk_prob": True,
}


def config(family, **more):
    return {"model_type": family, **SHAPE, **OWN[family], **more}


def question(family, precision="fp32", run=None, **more):
    return Question(config(family, **more), precision, run or Run.cpu(batch=3, tokens=11))


def in_order(step):
    """Every allocation of the second step and the total after it: simulated, and real."""
    real, found = real_step(step, in_place=False), simulated(step, in_place=False, every_layer=True)
    log = found.log
    events = log.events[log.marks["second.forward"] : log.marks["second.end"]]
    return (
        [(size, total) for _, size, total in events if size > 0],
        [(e.bytes, e.total) for e in real.events[real.second :] if e.kind == "alloc" and e.bytes],
    )


def check(step):
    real, found = real_step(step), simulated(step)
    for name, size in real.resident.items():
        assert found.rows[name] == size, f"{name} of {step}"
    assert found.rows["activations"] == real.activations, step
    assert found.rows["logits"] == real.logits, step
    assert found.held == real.held, step
    assert found.peak.bytes == real.peak.bytes, step
    assert found.peak.first_step_bytes == real.first_peak.bytes, step


def test_the_families_are_those_of_the_package():
    assert sorted(MIXTURES) == [name for name in NAMES if record_of(name).mixture]


@pytest.mark.sample(6)
@pytest.mark.parametrize("family", MIXTURES)
def test_random_steps_are_exact(family):
    for i, step in enumerate(random_mixtures(deep(DRAWS.get(family, 2)), 91, families=(family,))):
        check(step.replace(micro_batches=1 + i % 2))


@pytest.mark.sample(5)
@pytest.mark.parametrize("family", MIXTURES)
def test_every_allocation_is_the_real_one(family):
    for step in random_mixtures(deep(1), 92, families=(family,)):
        ours, theirs = in_order(step)
        assert ours == theirs, step


CORNERS = {
    "one expert": ("qwen3_moe", {"num_experts": 1, "num_experts_per_tok": 1}, {}),
    "all experts": ("mixtral", {"num_experts_per_tok": 8}, {}),
    "one expert a token": ("olmoe", {"num_experts_per_tok": 1, "norm_topk_prob": True}, {}),
    "one token": ("qwen2_moe", {"norm_topk_prob": True}, {"batch": 1, "tokens": 2}),
    "no layer with experts": ("qwen3_moe", {"mlp_only_layers": [0, 1]}, {}),
    "windows": ("qwen3_moe", {"use_sliding_window": True, "sliding_window": 6}, {}),
    "a window beyond": ("mixtral", {"sliding_window": 40}, {}),
    "windows here and there": ("qwen2_moe", {"use_sliding_window": True, "sliding_window": 6}, {}),
    "windows nowhere": (
        "qwen2_moe",
        {"use_sliding_window": True, "sliding_window": 16, "max_window_layers": 0},
        {},
    ),
}
CORNERS |= {
    "groups": ("glm4_moe", {"use_qk_norm": True}, {"checkpoint": "block"}),
    "one group": ("glm4_moe", {"n_group": 1, "topk_group": 1, "norm_topk_prob": False}, {}),
    "all of a head turns": ("glm4_moe", {"partial_rotary_factor": 1.0}, {}),
}
CORNERS |= {
    "sinks": ("gpt_oss", {}, {"attention": "eager", "checkpoint": "block"}),
    "one head, one group": (
        "gpt_oss",
        {"num_attention_heads": 1, "num_key_value_heads": 1, "attention_bias": False},
        {"attention": "eager"},
    ),
    "no window": ("gpt_oss", {"layer_types": ["full_attention"] * 2}, {"attention": "eager"}),
}
CORNERS |= {
    "values as wide as keys": ("deepseek_v3", {"v_head_dim": 24}, {}),
    "no latent of the queries": ("deepseek_v2", {"q_lora_rank": None, "n_group": 8}, {}),
    "one head of a latent": (
        "deepseek_v2",
        {"num_attention_heads": 1, "num_key_value_heads": 1, "topk_method": "greedy"},
        {},
    ),
}
CORNERS |= {
    "chunks": ("llama4_text", {"attention_chunk_size": 4, "no_rope_layer_interval": 2}, {}),
    "own keys without positions": (
        "llama4_text",
        {"num_key_value_heads": 4, "no_rope_layers": [0, 1], "interleave_moe_layer_step": 2},
        {"attention": "eager", "batch": 1},
    ),
}
VARIANTS = [("eager", "autocast-bf16"), ("sdpa", "bf16"), ("sdpa", "fp32")]


@pytest.mark.sample(9)
@pytest.mark.parametrize("corner", CORNERS)
def test_corners_are_exact(corner):
    family, keys, run = CORNERS[corner]
    attention, precision = VARIANTS[list(CORNERS).index(corner) % 3]
    step = question(family, precision, **keys).replace(**({"attention": attention} | run))
    ours, theirs = in_order(step)
    assert ours == theirs


@pytest.mark.sample(5)
@pytest.mark.parametrize("family", MIXTURES)
def test_the_cuda_graph_is_the_traced_one(family):
    drawn = random_mixtures(deep(1), 93, families=(family,))
    for step in on_cuda(step.replace(precision="bf16") for step in drawn):
        real, found = traced(step), simulated(step.replace(backend="cuda"))
        assert found.held == real.held, step
        assert (found.peak.bytes, found.peak.moment) == (real.peak, real.moment), step
        assert found.rows["activations"] == real.rows["activations"], step


def balanced(seed, family, n=2):
    """Random steps whose loss has a part for the routers."""
    drawn = random_mixtures(n, seed, families=(family,))
    kept = [{k: v for k, v in step.config.items() if k != "mlp_only_layers"} for step in drawn]
    told = [config | {"output_router_logits": True} for config in kept]
    return [step.replace(config=config) for step, config in zip(drawn, told, strict=True)]


@pytest.mark.sample(3)
@pytest.mark.parametrize("family", BALANCED)
def test_the_routers_loss_is_exact(family):
    for i, step in enumerate(balanced(96, family)):
        ours, theirs = in_order(step)
        assert ours == theirs, step
        check(step.replace(micro_batches=1 + i))


@pytest.mark.parametrize("family", ["qwen3_moe", "gpt_oss"])
@pytest.mark.parametrize("precision", ["bf16", "autocast-bf16"])
def test_the_routers_loss_on_cuda_is_the_traced_one(family, precision):
    said = question(family, precision, output_router_logits=True)
    if family == "gpt_oss":
        said = said.replace(attention="eager")
    (step,) = on_cuda([said])
    real, found = traced(step), simulated(step.replace(backend="cuda"))
    assert found.held == real.held
    assert (found.peak.bytes, found.peak.moment) == (real.peak, real.moment)
    for name in ("activations", "logits"):
        assert found.rows[name] == real.rows[name]


@pytest.mark.parametrize("first", [0, 1])
def test_the_routers_loss_of_many_layers_is_exact_though_few_are_simulated(first):
    dense = list(range(first))
    more = {"num_hidden_layers": 8, "mlp_only_layers": dense, "output_router_logits": True}
    check(question("qwen3_moe", "autocast-bf16", **more).replace(checkpoint="block"))


def test_the_routers_loss_keeps_every_layers_probabilities():
    told = {"num_hidden_layers": 6, "vocab_size": 7}
    plain, asked = (
        simulated(question("mixtral", output_router_logits=each, **told)) for each in (False, True)
    )
    layer, share = 4 * 3 * 11 * 8, 4 * 8  # fp32, rows, experts; what each expert is chosen for
    assert asked.rows["logits"] - plain.rows["logits"] == 6 * layer + share
    assert asked.rows["activations"] == plain.rows["activations"]
    assert asked.saved == plain.saved


@pytest.mark.parametrize("family", BALANCED)
def test_calls_with_the_routers_loss_are_exact(family):
    for step in balanced(97, family, 1):
        run = {"attention": step.run.attention, "batch": step.run.batch, "tokens": step.run.tokens}
        for phase in PHASES.values():
            call = Question(step.config, step.precision, Run.cpu(**run, **phase))
            assert not differences(call, real_call(call)), call


@pytest.mark.parametrize(
    ("more", "run", "message"),
    [
        ({}, {"loss": "chunked"}, "output_router_logits=True is not described beside loss="),
        ({}, {"loop": "trainer"}, "not described beside loop='trainer'"),
        ({}, {"devices": Sharding(data=2, zero=3)}, "on one device alone"),
        ({"mlp_only_layers": [0, 1]}, {}, "no layer of this model has a router"),
    ],
)
def test_where_the_routers_loss_is_not_described_it_is_refused(more, run, message):
    said = question("qwen3_moe", "bf16", output_router_logits=True, **more)
    with pytest.raises(ValueError, match=message):
        simulate(said.model, said.recipe, said.run.replace(**run))


@pytest.mark.sample(5)
@pytest.mark.parametrize("family", MIXTURES)
def test_calls_are_exact(family):
    for step in random_mixtures(1, 94, families=(family,), dropouts=(0.0,)):
        run = {"attention": step.run.attention, "batch": step.run.batch, "tokens": step.run.tokens}
        for phase in PHASES.values():
            call = Question(step.config, step.precision, Run.cpu(**run, **phase))
            assert not differences(call, real_call(call)), call


def test_the_one_attention_of_a_family_is_taken_where_nothing_is_said():
    said, run = question("gpt_oss"), Run.cpu(batch=1, tokens=9)
    eager = simulate(said.model, "fp32", run.replace(attention="eager"))
    assert simulate(said.model, "fp32", run).held == eager.held
    with pytest.raises(ValueError, match="attention='sdpa' is not described; known: eager"):
        simulate(said.model, "fp32", run.replace(attention="sdpa"))


def test_many_layers_are_exact_though_four_are_simulated():
    check(question("qwen3_moe", "autocast-bf16", num_hidden_layers=7))


@pytest.mark.parametrize("family", ["qwen3_moe", "glm4_moe", "deepseek_v3"])
@pytest.mark.parametrize("dense", [1, 2])
def test_what_stays_counts_the_layers_without_experts(family, dense):
    more = {"first_k_dense_replace": dense, "mlp_only_layers": list(range(dense))}
    model = Model.from_config(config(family, num_hidden_layers=5, **more))
    assert len(model.dense_layers) == dense
    assert estimate(model, "bf16")["weights"].derived == 2 * model.parameter_count


@pytest.mark.parametrize("loss", ["chunked", "fused_head"])
def test_a_loss_from_a_body_that_is_not_named_is_refused(loss):
    said = question("llama4_text", run=Run.cpu(batch=2, tokens=9, loss=loss))
    with pytest.raises(ValueError, match="Llama4ForCausalLM does not name its body"):
        simulate(said.model, said.recipe, said.run)
    with quiet():
        settings = hugging_face().AutoConfig.for_model(**said.config)
        module = hugging_face().AutoModelForCausalLM.from_config(settings)
    assert not hasattr(module, module.base_model_prefix)


def test_a_latent_cache_is_the_terms():
    began = time.perf_counter()
    model, run = Model.preset("DeepSeek-V3"), Run(batch=3, tokens=4096, phase="decode")
    call = decode(model, "bf16", run)
    assert time.perf_counter() - began < 1
    sizes = {"latent": 512, "rope": 64, "batch": 3}
    assert call.rows["kv_cache"] == mla_cache(61, **sizes, tokens=4097)
    assert call.per_token == mla_cache(61, **sizes, tokens=1)


@pytest.mark.parametrize("phase", ["train", "prefill", "decode"])
def test_first_layers_of_another_kind_are_exact_though_few_others_are_simulated(phase):
    said = question("deepseek_v3", "autocast-bf16", num_hidden_layers=9, first_k_dense_replace=2)
    ask = {"train": simulate, "prefill": prefill, "decode": decode}[phase]
    run = said.run.replace(phase=phase)
    short, long = (ask(said.model, said.recipe, run, every_layer=each) for each in (False, True))
    assert (short.rows, short.held) == (long.rows, long.held)
    assert short.peak.bytes == long.peak.bytes
    assert len(short.log.events) < len(long.log.events)


@pytest.mark.parametrize("family", MIXTURES)
def test_frozen_experts_are_exact(family):
    run = Run.cpu(batch=2, tokens=9, frozen=("feed_forward",))
    check(question(family, run=run.replace(attention="eager" if family == "gpt_oss" else "sdpa")))


def test_the_largest_published_shape_is_answered_at_once():
    began = time.perf_counter()
    model = Model.from_config(QWEN3_235B)
    step = simulate(model, "bf16", Run(batch=1, tokens=4096))
    assert time.perf_counter() - began < 1
    assert model.parameter_count == 235_093_634_560
    assert model.active_parameter_count == 22_190_763_520
    assert step.rows["weights"] == 2 * model.parameter_count


@pytest.mark.parametrize("family", MIXTURES)
def test_the_active_parameters_are_those_of_a_model_with_as_many_experts(family):
    """A token meets as much as there is where all experts are its own, less the larger router."""
    model = Model.from_config(config(family))
    few = model.replace(experts=2)
    routers = model.mixture_layers * 6 * (model.d_model + model.expert_bias)
    assert model.active_parameter_count == few.parameter_count + routers
    assert few.active_parameter_count == few.parameter_count
    dense = Model(layers=2, d_model=32, d_ff=48, heads=4, vocab=61)
    assert dense.active_parameter_count == dense.parameter_count and dense.mixture_layers == 0


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"experts": 0}, ValueError, "experts=0; at least 1"),
        ({"experts_per_token": 9}, ValueError, "experts_per_token=9; X=8"),
        ({"expert_ff": 1.5}, TypeError, "expert_ff=1.5 is a float"),
        ({"dense_layers": [0]}, TypeError, "a tuple is needed"),
        ({"dense_layers": (2,)}, ValueError, "below L=2"),
        ({"dense_layers": (1, 0)}, ValueError, "upwards"),
    ],
)
def test_impossible_experts_are_named(changes, error, message):
    with pytest.raises(error, match=message):
        Model.from_config(config("qwen3_moe")).replace(**changes)


def test_only_mixtures_have_experts():
    with pytest.raises(ValueError, match="experts=4: llama has no experts"):
        Model(layers=2, d_model=32, d_ff=48, heads=4, vocab=61, experts=4)


def test_fewer_layers_leave_fewer_dense_ones():
    model = Model.from_config(config("qwen3_moe", mlp_only_layers=[0, 1]))
    assert model.dense_layers == (0, 1) and model.replace(layers=1).dense_layers == (0,)


def kept_by(saved):
    """What the experts of a simulated layer keep: all from the router's probabilities on."""
    ops = ("topk", "div_", "index", "grouped_mm", "silu", "softmax", "mul")
    names = [row.name for row in saved.rows]
    start = max(i for i, name in enumerate(names) if name == "softmax")
    return sum(
        row.bytes for row in saved.rows[start:] if row.kept_by.split()[0].split(".")[0] in ops
    )


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize(("precision", "format"), [("fp32", "fp32"), ("bf16", "bf16")])
def test_the_term_is_what_a_layer_keeps(normalized, precision, format):
    step = question("qwen3_moe", precision, norm_topk_prob=normalized)
    model, tokens = step.model, step.run.rows
    told = {"d_model": model.d_model, "experts_per_token": model.experts_per_token}
    shape = told | {"experts": model.experts, "expert_ff": model.expert_ff}
    kept = experts.kept(tokens, **shape, format=format, normalized=normalized)
    assert kept == kept_by(simulated(step).saved)
    assert kept > experts.permuted(tokens, **told, format=format)


def test_mixtrals_weights_of_experts_are_in_fp32():
    step = question("mixtral", "bf16")
    model = step.model
    kept = experts.kept(
        step.run.rows,
        d_model=model.d_model,
        experts=model.experts,
        experts_per_token=model.experts_per_token,
        expert_ff=model.expert_ff,
        scores="fp32",
        normalized=True,
    )
    assert kept == kept_by(simulated(step).saved)


def test_the_terms_count_parameters():
    sizes = {"experts": 128, "expert_ff": 1536}
    whole = experts.mixture(4096, **sizes)
    assert whole == 128 * experts.expert(4096, expert_ff=1536) + 128 * 4096
    assert experts.active(4096, **sizes, experts_per_token=8) == whole - 120 * 3 * 4096 * 1536
    shared = experts.mixture(64, experts=4, expert_ff=8, shared_ff=16, shared_gated=True)
    assert shared == 4 * 3 * 64 * 8 + 4 * 64 + 3 * 64 * 16 + 64
    assert experts.expert(64, expert_ff=8, bias=True) == 3 * 64 * 8 + 2 * 8 + 64
    with pytest.raises(ValueError, match="experts_per_token=5; there are X=4"):
        experts.active(64, experts=4, experts_per_token=5, expert_ff=8)
    with pytest.raises(ValueError, match="d_model=-1 is negative"):
        experts.kept(1, d_model=-1, experts=1, experts_per_token=1, expert_ff=1)


def test_experts_are_divided_among_data_ranks_and_by_one_plan():
    model = Model.from_config(config("mixtral"))
    recipe = Recipe.named("bf16")
    whole, part = (resident(model, recipe, Sharding(data=n, zero=3)) for n in (1, 2))
    assert whole["weights"] // 2 <= part["weights"] < whole["weights"]
    with pytest.raises(
        ValueError, match="tensor=2: the experts of a mixture are cut by plan='transformers' alone"
    ):
        Sharding(tensor=2).check(model)


def test_the_page_says_which_it_has_no_steps_of(monkeypatch):
    """A family may be described before its tables are made."""
    assert set(tabled()) <= set(config_types())
    for name, family in (("deepseek-v3", "deepseek_v3"), ("llama-4-scout", "llama4_text")):
        bare = replace(record_of(family), tables=None)
        monkeypatch.setattr(page_described, "record_of", lambda name, bare=bare: bare)
        found = answered({"model": name, "tokens": 64}, lambda name, kind: "")
        assert found["why"] == f"steps of {family} are not supported on this page"


def test_grouped_products_are_what_transformers_takes():
    """Unless it is told otherwise, on the CPU too: routing changes no byte then."""
    with quiet():
        for family in [f for f in MIXTURES if f != "llama4_text"]:  # whose experts see every token
            said = hugging_face().AutoConfig.for_model(**config(family, pad_token_id=None))
            module = hugging_face().AutoModelForCausalLM.from_config(said)
            assert module.config._experts_implementation == "grouped_mm"
