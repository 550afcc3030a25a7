"""Dense families beyond the first eight: steps, calls and traces, to the byte."""

import pytest
from compare import is_real
from more_families import MORE, drawn
from real_inference import PHASES, real_call, traced_call
from real_steps import Question, build, deep, hugging_face, quiet, real_step, simulated
from test_calls import differences
from test_calls import simulated as called
from test_step_cuda import on_cuda, traced
from test_transformers import build as meta
from test_transformers import check_against

from memlab import Model, Run, trace
from memlab.step import simulate
from memlab.step.core import engine
from memlab.step.keys import scales_logits

EACH = deep(len(MORE))
BY_LAYER = ("layer_types", "no_rope_layers")
STEPS = drawn(EACH, 91)
CALLS = [
    Question(
        step.config,
        step.precision,
        Run.cpu(
            phase="prefill",
            batch=step.run.batch,
            tokens=step.run.tokens - 1,
            attention=step.run.attention,
        ),
    )
    for step in drawn(EACH, 92, checkpoints=("none",))
]


def allocations(found):
    log = found.log
    events = log.events[log.marks["second.forward"] : log.marks["second.end"]]
    return [(size, total) for _, size, total in events if size > 0]


@pytest.mark.sample(7)
@pytest.mark.parametrize("step", STEPS, ids=str)
def test_every_figure_is_the_real_one(step):
    is_real(step)


@pytest.mark.sample(6)
@pytest.mark.parametrize("step", drawn(EACH, 93), ids=str)
def test_every_allocation_is_the_real_one(step):
    layers = min(step.config["num_hidden_layers"], 3)
    config = step.config | {"num_hidden_layers": layers}
    config |= {key: config[key][:layers] for key in BY_LAYER if key in config}
    step = step.replace(config=config, micro_batches=1)
    real, found = real_step(step, in_place=False), simulated(step, in_place=False)
    assert allocations(found) == [
        (e.bytes, e.total) for e in real.events[real.second :] if e.kind == "alloc" and e.bytes
    ]


@pytest.mark.parametrize("batch, heads", [(1, 4), (2, 1)])
def test_own_keys_that_nothing_turns(batch, heads):
    """Scores give their gradient as columns of whole rows: one text's needs no copy."""
    config = {"model_type": "smollm3", **BASE, "no_rope_layers": [0, 0], "vocab_size": 30}
    config |= {"num_attention_heads": heads, "num_key_value_heads": heads}
    step = Question(config, "fp32", Run.cpu(attention="eager", batch=batch, tokens=40))
    real, found = real_step(step, in_place=False), simulated(step, in_place=False)
    assert allocations(found) == [
        (e.bytes, e.total) for e in real.events[real.second :] if e.kind == "alloc" and e.bytes
    ]


@pytest.mark.sample(4)
@pytest.mark.parametrize("step", [*on_cuda(drawn(EACH, 94))], ids=str)
def test_the_cuda_graph_is_the_traced_one(step):
    step = step.replace(micro_batches=1)
    real, found = traced(step), simulated(step.replace(backend="cuda"))
    assert found.held == real.held
    assert (found.peak.bytes, found.peak.moment) == (real.peak, real.moment)
    assert found.rows["activations"] == real.rows["activations"]
    assert found.rows["logits"] == real.rows["logits"]


def described(call):
    """Calls that are not refused: what a refusal says is asked elsewhere."""
    try:
        return called(call) is not None
    except ValueError:
        return False


@pytest.mark.sample(5)
@pytest.mark.parametrize("step", [*filter(described, CALLS)], ids=str)
def test_calls_are_exact(step):
    with quiet():
        module = build(step)
    for phase in PHASES.values():
        call = step.replace(**phase)
        if not described(call):  # one token more than the window takes
            continue
        # The tracker calls logits what the model returns, memlab what they are made from too.
        named = ("logits at the peak", "the rest at the peak") if scales_logits(step.model) else ()
        assert set(differences(call, real_call(call, module))) <= set(named), call
        if described(call.replace(backend="cuda")):
            call = call.replace(backend="cuda")
            real, found = traced_call(call, module), called(call)
            assert found.held == {"before_call": real.before, "after_call": real.after}
            assert found.peak.bytes == real.peak, call


@pytest.mark.parametrize("step", drawn(EACH, 95), ids=str)
def test_layers_left_out_change_nothing(monkeypatch, step):
    """Four layers and a factor give what all of them give, one by one."""
    config = {key: value for key, value in step.config.items() if key not in BY_LAYER}
    model = Model.from_config(config | {"num_hidden_layers": 7})
    short = simulate(model, step.recipe, step.run)
    monkeypatch.setattr(engine.Engine, "shown", 7)
    long = simulate(model, step.recipe, step.run)
    assert (short.rows, short.held) == (long.rows, long.held)
    assert short.peak.bytes == long.peak.bytes


# Shapes of published models, with the number of parameters that each is known by.
PUBLISHED = {
    "phi-3-mini": (
        {
            "model_type": "phi3",
            "hidden_size": 3072,
            "intermediate_size": 8192,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "vocab_size": 32064,
        },
        3_821_079_552,
    ),
    "olmo-7b": (
        {
            "model_type": "olmo",
            "hidden_size": 4096,
            "intermediate_size": 11008,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "vocab_size": 50304,
        },
        6_888_095_744,
    ),
    "olmo-2-7b": (
        {
            "model_type": "olmo2",
            "hidden_size": 4096,
            "intermediate_size": 11008,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "vocab_size": 100352,
        },
        7_298_617_344,
    ),
    "smollm3-3b": (
        {
            "model_type": "smollm3",
            "hidden_size": 2048,
            "intermediate_size": 11008,
            "num_hidden_layers": 36,
            "num_attention_heads": 16,
            "num_key_value_heads": 4,
            "vocab_size": 128256,
        },
        3_075_098_624,
    ),
    "granite-3.0-8b": (
        {
            "model_type": "granite",
            "hidden_size": 4096,
            "intermediate_size": 12800,
            "num_hidden_layers": 40,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "vocab_size": 49155,
            "tie_word_embeddings": True,
        },
        8_170_848_256,
    ),
    "starcoder2-3b": (
        {
            "model_type": "starcoder2",
            "hidden_size": 3072,
            "intermediate_size": 12288,
            "num_hidden_layers": 30,
            "num_attention_heads": 24,
            "num_key_value_heads": 2,
            "vocab_size": 49152,
        },
        3_030_371_328,
    ),
    "glm-4-9b": (
        {
            "model_type": "glm4",
            "hidden_size": 4096,
            "intermediate_size": 13696,
            "num_hidden_layers": 40,
            "num_attention_heads": 32,
            "num_key_value_heads": 2,
            "vocab_size": 151552,
        },
        9_400_279_040,
    ),
    "gemma-2-2b": (
        {
            "model_type": "gemma2",
            "hidden_size": 2304,
            "intermediate_size": 9216,
            "num_hidden_layers": 26,
            "num_attention_heads": 8,
            "num_key_value_heads": 4,
            "vocab_size": 256000,
        },
        2_614_341_888,
    ),
    "gemma-3-1b": (
        {
            "model_type": "gemma3_text",
            "hidden_size": 1152,
            "intermediate_size": 6912,
            "num_hidden_layers": 26,
            "num_attention_heads": 4,
            "num_key_value_heads": 1,
            "vocab_size": 262144,
        },
        999_885_952,
    ),
    "command-r7b": (
        {
            "model_type": "cohere2",
            "hidden_size": 4096,
            "intermediate_size": 14336,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "vocab_size": 256000,
        },
        8_028_033_024,
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_configs(name):
    config, count = PUBLISHED[name]
    model = Model.from_config(config)
    check_against(model, meta(hugging_face(), config)[1])
    assert model.parameter_count == count


BASE = {
    "num_hidden_layers": 2,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 61,
    "pad_token_id": None,
}
ROPE = {"rope_type": "longrope", "short_factor": [1.0] * 3}


@pytest.mark.sample(6)
@pytest.mark.parametrize("family", MORE)
def test_a_trace_of_the_config_is_the_simulated_step(family):
    """In the attention that transformers takes where nothing is said: gemma2 has eager alone."""
    model = Model.from_config({"model_type": family, **BASE, "head_dim": 16})
    run = Run(batch=2, tokens=32)
    real, found = trace(model, "bf16", run), simulate(model, "bf16", run)
    assert found.held == real.held
    assert (found.peak.bytes, found.peak.moment) == (real.peak, real.moment)


PARTS = (("attention",), ("feed_forward", "norm"), ("embedding", "attention", "norm"))


@pytest.mark.sample(6)
@pytest.mark.parametrize("step", drawn(EACH, 96), ids=str)
def test_frozen_weights(step):
    config = step.config | {"tie_word_embeddings": False}
    step = step.replace(config=config, frozen=PARTS[MORE.index(step.family) % len(PARTS)])
    is_real(step)


REFUSED = [
    ("seed_oss", {"residual_dropout": 1.0}, "not a probability"),
    ("ministral", {"head_dim": None}, "the ministral config has no 'head_dim'"),
    ("ministral", {"head_dim": 8, "sliding_window": None}, "masks need a number"),
    ("granite", {"rope_scaling": {"full_attention": {}}}, "granite has one for all"),
    ("starcoder2", {"hidden_act": "silu"}, "known: gelu_pytorch_tanh, gelu"),
    ("starcoder2", {"sliding_window": 0}, "at least 1 is needed"),
    ("glm4", {"partial_rotary_factor": None}, "partial_rotary_factor is null"),
    ("glm4", {"num_key_value_heads": None}, "num_key_value_heads is null"),
    ("gemma2", {"attn_implementation": "sdpa"}, "attention='sdpa' is not described; known: eager"),
    ("gemma2", {"sliding_window": None}, "gemma2's masks need a number"),
    ("gemma2", {"final_logit_softcapping": "x"}, "a number is needed"),
    ("gemma2", {"hidden_activation": "relu"}, "hidden_activation='relu' is not described"),
    ("gemma3_text", {"sliding_window_pattern": 0}, "at least 1"),
    ("gemma3_text", {"rope_parameters": {"rope_type": "linear"}}, "known for gemma3_text"),
    ("gemma3_text", {"rope_scaling": {"rope_type": "dynamic"}}, "rope_type='dynamic'"),
    ("gemma3_text", {"use_bidirectional_attention": True}, "known: false"),
    ("cohere2", {"layer_types": ["full_attention"]}, "names 1 layers"),
    ("cohere2", {"head_dim": None}, "head_dim is null"),
    ("cohere2", {"logit_scale": None}, "a number is needed"),
    ("granite", {"attention_multiplier": "x"}, "a number is needed"),
    ("phi3", {"hidden_act": "gelu"}, "hidden_act='gelu' is not described; known: silu"),
    ("phi3", {"rope_scaling": {"type": "linear"}}, "rope_type='linear' is not phi3's"),
    ("phi3", {"rope_scaling": ROPE}, "longrope needs a list of 4 numbers"),
    ("phi3", {"partial_rotary_factor": 2.0}, "not a share"),
    ("phi3", {"pad_token_id": 32000}, "no row of an embedding"),
    ("olmo2", {"hidden_act": "gelu"}, "hidden_act='gelu' is not described; known: silu"),
    ("olmo2", {"sliding_window": 8}, "this family has none"),
    ("olmo", {"clip_qkv": "8"}, "clip_qkv='8'"),
    ("smollm3", {"no_rope_layers": [1, 0, 1]}, "names 3 layers"),
    ("smollm3", {"no_rope_layers": [1, 2]}, "no_rope_layers has 2"),
    ("smollm3", {"no_rope_layer_interval": 0}, "at least 1"),
    ("smollm3", {"layer_types": ["sliding_attention"] * 2}, "use_sliding_window is not true"),
    ("phi3", {"head_dim": None}, "head_dim is null; phi3 needs"),
]


@pytest.mark.parametrize("family", ["granite", "gemma2", "cohere2"])
def test_a_loss_in_chunks_of_scaled_logits_is_refused(family):
    model = Model.from_config({"model_type": family, **BASE})
    run = Run.cpu(batch=1, tokens=8)
    with pytest.raises(ValueError, match=f"{family} scales its logits"):
        simulate(model, "fp32", run.replace(loss="chunked"))
    assert simulate(model, "fp32", run).peak.bytes


@pytest.mark.parametrize("family, keys, words", REFUSED)
def test_what_is_not_described_is_named(family, keys, words):
    with pytest.raises((ValueError, TypeError), match=words):
        model = Model.from_config({"model_type": family, **BASE, **keys})
        simulate(model, "fp32", Run.cpu(batch=1, tokens=8))
