"""Every key of a config.json is believed or refused: against transformers' own small models.

tools/config_fields.py walks through all keys and values; here are those that were wrong once, and
what keeps the table complete.
"""

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

import config_fields  # noqa: E402
from config_fields import SMALL, real, told  # noqa: E402
from mixtures import LATENTS, MIXTURES  # noqa: E402
from more_families import MORE  # noqa: E402
from real_steps import FAMILIES as EIGHT  # noqa: E402
from real_steps import hugging_face  # noqa: E402

from memlab import Model, Run  # noqa: E402
from memlab.families import NOTHING, ONLY, SHAPE, STEP, record_of  # noqa: E402
from memlab.model.dropouts import dropouts  # noqa: E402
from memlab.model.fields import kinds, used  # noqa: E402
from memlab.page.answer import answered  # noqa: E402
from memlab.step import simulate  # noqa: E402
from memlab.step.calls import prefill  # noqa: E402

FAMILIES = (*EIGHT, *MORE, *MIXTURES)
WIDE = ("qwen3_moe", "qwen2_moe", "glm4_moe", *LATENTS)  # whose experts have a width of their own
BALANCED = [name for name in MIXTURES if record_of(name).reads("output_router_logits")]
UNBALANCED = [family for family in MIXTURES if family not in BALANCED]
LLAMAS = ("llama", "mistral", "qwen2", "qwen3", "gemma")
# Family, key, value: each changes the bytes of a step, and once memlab did not believe it.
BELIEVED = [
    ("gpt2", "attn_pdrop", 0.0),
    ("gpt2", "resid_pdrop", 0.0),
    ("gpt2", "embd_pdrop", 0.0),
    ("gpt2", "hidden_size", 48),
    ("gpt2", "num_hidden_layers", 1),
    ("gpt2", "dtype", "bfloat16"),
    ("opt", "dropout", 0.0),
    ("opt", "attention_dropout", 0.1),
    ("opt", "torch_dtype", "bfloat16"),
    ("gpt_neox", "attention_dropout", 0.1),
    ("gpt_neox", "hidden_dropout", 0.1),
    ("gpt_neox", "attn_implementation", "eager"),
    ("llama", "attention_dropout", 0.1),
    ("qwen3", "attn_implementation", "eager"),
    ("qwen3_moe", "num_local_experts", 6),
    ("qwen3_moe", "norm_topk_prob", True),
    ("qwen3_moe", "mlp_only_layers", [0]),
    ("mixtral", "num_experts", 6),
    ("olmoe", "norm_topk_prob", True),
    ("glm4_moe", "first_k_dense_replace", 0),
    ("glm4_moe", "n_group", 2),
    ("glm4_moe", "partial_rotary_factor", 0.25),
    ("glm4_moe", "num_local_experts", 6),
    ("deepseek_v3", "q_lora_rank", None),
    ("deepseek_v3", "v_head_dim", 8),
    ("deepseek_v2", "num_experts", 6),
    ("llama4_text", "moe_layers", [0]),
    ("llama4_text", "no_rope_layers", [1, 0]),
    ("llama4_text", "layer_types", ["chunked_attention", "full_attention"]),
    ("deepseek_v2", "topk_method", "group_limited_greedy"),
    ("glm4_moe", "rope_parameters", {"rope_type": "proportional", "rope_theta": 1e4, "factor": 2}),
    ("gpt_oss", "num_experts", 6),
    ("gpt_oss", "attention_bias", False),
    ("gpt_oss", "sliding_window", 4),
    ("llama4_text", "attention_chunk_size", 8),
    ("gpt_oss", "layer_types", ["full_attention"] * 2),
    ("qwen2_moe", "decoder_sparse_step", 2),
    *((family, "output_router_logits", True) for family in BALANCED),
]
# Widths of experts that torch multiplies in groups.
GROUPED = [
    *((f, "moe_intermediate_size") for f in MIXTURES if f in WIDE),
    *((f, "intermediate_size") for f in ("mixtral", "olmoe", "gpt_oss")),
]
NO_LOCAL = ("qwen2_moe", "deepseek_v2")  # whose classes have no second name of the key
REFUSED = [
    *((f, "quantization_config", {"quant_method": "gptq"}, "take the config") for f in FAMILIES),
    *((f, "gradient_checkpointing", True, "say checkpoint='block'") for f in FAMILIES),
    *((f, "gradient_checkpointing", "yes", "true or false") for f in FAMILIES),
    *((f, "add_cross_attention", True, "encoder-decoder") for f in FAMILIES),
    *((f, "output_hidden_states", True, "every layer's output") for f in FAMILIES),
    *((f, "dtype", "float8", "dtype='float8' is not described") for f in FAMILIES),
    *((f, "rope_scaling", 2, "an object is needed") for f in (*LLAMAS, "gpt_neox")),
    *((f, "rope_scaling", [1], "an object is needed") for f in (*LLAMAS, "gpt_neox")),
    *((f, "head_dim", 7, "H=7 .width of a head. is odd") for f in ("llama", "gemma", "mistral")),
    *((f, "attention_dropout", "x", "a number is needed") for f in (*LLAMAS, "opt", "gpt_neox")),
    *((f, "attention_dropout", 1.0, "not a probability") for f in (*LLAMAS, "opt", "gpt_neox")),
    *((f, "pad_token_id", 1000, "no row of an embedding") for f in (*LLAMAS, "opt")),
    *((f, "tie_word_embeddings", None, "tie_word_embeddings is null") for f in FAMILIES),
    *((f, "sliding_window", 8, "its cache would be cut") for f in ("gpt2", "llama", "gemma")),
    ("mistral", "sliding_window", -4, "at least 1 is needed"),
    ("mistral", "sliding_window", 1.5, "a whole number"),
    ("mistral", "sliding_window", True, "a whole number"),
    ("mistral", "layer_types", ["sliding_attention"] * 2, "layers of one kind"),
    ("mistral", "num_key_value_heads", None, "num_key_value_heads is null"),
    ("gemma", "num_key_value_heads", None, "num_key_value_heads is null"),
    ("qwen3", "head_dim", None, "head_dim is null"),
    ("qwen2", "head_dim", None, "head_dim is null"),
    ("llama", "rope_scaling", {"type": "yarn", "partial_rotary_factor": 0.5}, "whole heads"),
    ("llama", "rope_scaling", {"type": "linear"}, "rope_type='linear' needs a value"),
    ("qwen2", "rope_parameters", {"rope_type": "llama3", "factor": 2}, "low_freq_factor=None"),
    ("llama", "hidden_size", 30, "D=30 is not a multiple of N=4"),
    ("gpt2", "use_return_dict", True, "leave it out"),
    ("gpt2", "scale_attn_weights", None, "true or false"),
    ("qwen3", "attention_bias", None, "attention_bias is null"),
    ("qwen2", "use_sliding_window", "yes", "true or false"),
    ("qwen2", "layer_types", "full_attention", "a list is needed"),
    ("gpt_neox", "rotary_pct", -1, "not a share"),
    ("gpt_neox", "rotary_pct", 5, "not a share"),
    ("gpt_neox", "rotary_pct", float("inf"), "not a share"),
    ("gpt_neox", "head_dim", 16, "hidden_size / num_attention_heads"),
    ("opt", "layerdrop", 0.1, "layers would be skipped"),
    *((f, "output_router_logits", True, "makes no loss of them") for f in UNBALANCED),
    *((f, "output_router_logits", "yes", "true or false is needed") for f in BALANCED),
    ("qwen3_moe", "output_router_logits", None, "true or false is needed"),
    *((f, "experts_implementation", "eager", "known: grouped_mm") for f in MIXTURES),
    *((f, "num_experts_per_tok", 9, "experts_per_token=9; X=4 experts") for f in MIXTURES),
    *((f, "num_experts_per_tok", 0, "experts_per_token=0; at least 1") for f in MIXTURES),
    *((f, "num_local_experts", 0, "experts=0; at least 1") for f in MIXTURES if f not in NO_LOCAL),
    *(
        (f, "head_dim", None, "head_dim is null")
        for f in MIXTURES
        if f not in ("mixtral", "gpt_oss", "llama4_text", *LATENTS)
    ),
    *((f, "head_dim", 16, f"{f} has qk_rope_head_dim there") for f in LATENTS),
    *((f, "num_key_value_heads", 2, "kv_heads=2: latent attention makes keys") for f in LATENTS),
    *((f, "qk_rope_head_dim", 7, "qk_rope_head_dim=7 is odd") for f in LATENTS),
    *((f, "kv_lora_rank", None, f"the {f} config has no 'kv_lora_rank'") for f in LATENTS),
    ("deepseek_v2", "kv_lora_rank", 17, "kv_lora_rank=17 is odd"),
    ("deepseek_v2", "mlp_bias", True, "biases of shared experts"),
    ("deepseek_v2", "topk_method", "noaux_tc", "known: greedy, group_limited_greedy"),
    ("llama4_text", "head_dim", None, "head_dim is null"),
    ("llama4_text", "attention_chunk_size", None, "a whole number is needed"),
    ("llama4_text", "interleave_moe_layer_step", 0, "at least 1 is needed"),
    ("llama4_text", "moe_layers", ["0"], "a list of whole numbers"),
    ("llama4_text", "layer_types", ["sliding_attention"] * 2, "full_attention, chunked_attention"),
    ("llama4_text", "num_key_value_heads", None, "num_key_value_heads is null"),
    ("deepseek_v3", "rope_interleave", "yes", "true or false"),
    ("deepseek_v3", "v_head_dim", 0, "v_head_dim=0; at least 1"),
    ("glm4_moe", "n_shared_experts", 0, "n_shared_experts=0; at least 1"),
    ("glm4_moe", "n_group", 4, "n_group=4 does not divide X=4 experts into groups of 2"),
    ("glm4_moe", "n_group", 3, "n_group=3 does not divide X=4"),
    ("glm4_moe", "topk_group", 2, "topk_group=2; n_group=1"),
    ("glm4_moe", "topk_group", 0, "topk_group=0; at least 1"),
    ("glm4_moe", "first_k_dense_replace", None, "first_k_dense_replace=None; int"),
    ("qwen3_moe", "decoder_sparse_step", 0, "decoder_sparse_step=0; at least 1"),
    ("qwen3_moe", "mlp_only_layers", [1.5], "a list of whole numbers"),
    ("qwen2_moe", "mlp_only_layers", 1, "a list of whole numbers"),
    ("qwen2_moe", "layer_types", ["sliding_attention"] * 2, "use_sliding_window is not true"),
    ("mixtral", "router_jitter_noise", 0.1, "by noise"),
    *(
        ("mixtral", key, {"rope_type": kind, "factor": 2.0}, f"'{kind}' reads head_dim, which is")
        for key in ("rope_parameters", "rope_scaling")
        for kind in ("yarn", "dynamic")
    ),
    *((f, key, 30, "[DM]=30 in fp32: .* a multiple of 4 is needed") for f, key in GROUPED),
    ("olmoe", "clip_qkv", 1.0, "in place"),
    ("qwen2_moe", "num_key_value_heads", None, "num_key_value_heads is null"),
    ("gpt_oss", "sliding_window", None, "sliding_window is null; gpt_oss.s masks"),
    ("gpt_oss", "attn_implementation", "sdpa", "attention='sdpa' is not described; known: eager"),
    ("gpt_oss", "layer_types", ["full_attention"], "names 1 layers; the model has 2"),
    ("olmoe", "head_dim", 16, "hidden_size / num_attention_heads"),
    ("gpt2", "n_positions", 8, "tokens=12; gpt2 has 8 learned positions"),
    ("opt", "max_position_embeddings", 8, "tokens=12; opt has 8 learned positions"),
]


def config(family, key, value):
    return {"model_type": family, **SMALL[family], key: value}


@pytest.mark.parametrize(("family", "key", "value"), BELIEVED)
def test_what_changes_a_step_is_believed(family, key, value):
    said = config(family, key, value)
    assert told(said) == real(said)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_config_that_says_nothing_has_its_classs_values(family):
    said = {"model_type": family, **SMALL[family]}
    assert told(said) == real(said)


@pytest.mark.parametrize(("family", "key", "value", "message"), REFUSED)
def test_what_is_not_described_is_refused_by_name(family, key, value, message):
    with pytest.raises((ValueError, TypeError), match=message):
        told(config(family, key, value))


@pytest.mark.parametrize(("family", "key"), GROUPED)
def test_torch_refuses_the_widths_that_are_refused(family, key):
    """And those of llama4_text, which multiplies the rows of all experts at once, are exact."""
    with pytest.raises(RuntimeError, match="multiple of 16 bytes"):
        real(config(family, key, 30))


def test_all_experts_at_once_have_any_width():
    said = config("llama4_text", "intermediate_size", 30)
    assert told(said) == real(said)


def test_the_width_that_torch_takes_depends_on_the_format():
    model = Model.from_config(config("qwen3_moe", "moe_intermediate_size", 28))
    run = Run.cpu(batch=2, tokens=12)
    for recipe in ("fp32", "autocast"):  # grouped products are in the format of the weights
        assert simulate(model, recipe, run).peak.bytes
    for ask in (simulate, prefill):
        with pytest.raises(ValueError, match="M=28 in bf16: .* a multiple of 8 is needed"):
            ask(model, "bf16", run)
    state = {"model": "config", "config": dict(model.config), "precision": "bf16", "tokens": 64}
    found = answered(state, lambda *_: "")
    assert "a multiple of 8 is needed" in found["why"]


def test_a_head_that_is_said_lets_mixtral_scale_its_base():
    said = config("mixtral", "rope_parameters", {"rope_type": "yarn", "factor": 2.0})
    said |= {"head_dim": 8}
    assert told(said) == real(said)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_field_of_the_class_has_a_row(family):
    """A key that transformers adds must be looked at before it is passed over."""
    import dataclasses

    fields = {field.name for field in dataclasses.fields(config_fields.config_class(family))}
    assert not fields - set(kinds(family))
    assert set(kinds(family).values()) <= {SHAPE, STEP, NOTHING, ONLY}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_classs_own_dropouts_are_known(family):
    cls = hugging_face().AutoConfig.for_model(family)
    usual = {key: getattr(cls, key) for key in record_of(family).dropouts}
    assert {key: p for key, (_, p) in record_of(family).dropouts.items()} == usual
    assert set(dropouts(family, {}, 0.3).values()) == {0.3}


def test_what_was_read_is_told():
    said = config("gpt2", "attn_pdrop", 0.0) | {"summary_type": "x", "my_own_key": 1}
    parts = used("gpt2", said)
    assert "attn_pdrop" in parts["read"] and "n_embd" in parts["read"]
    assert parts["no effect"] == ["summary_type"] and parts["not known"] == ["my_own_key"]


def test_checkpoints_that_a_config_asks_for_are_believed_where_the_run_says_them_too():
    model = Model.from_config(config("llama", "gradient_checkpointing", True))
    plain = Model.from_config(config("llama", "gradient_checkpointing", False))
    run = Run.cpu(batch=2, tokens=12, checkpoint="block")
    assert simulate(model, "fp32", run).held == simulate(plain, "fp32", run).held
