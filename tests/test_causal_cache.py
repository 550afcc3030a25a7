"""The cache of a model that is not described: its config says what a call of its code keeps."""

import json

import causal_types
import pytest

from memlab import Model, Recipe, Run
from memlab.cli import main
from memlab.lab.causal import Causal
from memlab.lab.causal_cache import after_call, cache
from memlab.lab.trace_call import trace_call
from memlab.terms.kv_cache import kv_cache, shared_cache, windowed_cache
from memlab.terms.weights import latent_attention

BATCH, TOKENS = 2, 16
MIXED = ["sliding_attention", "full_attention"] * 2
# What the small config of a type gets beside it, and how many of its layers have a window.
CASES = {
    "gemma3n_text": ({"num_kv_shared_layers": 2, "sliding_window": 6, "layer_types": MIXED}, 1),
    "gemma3_text": ({"sliding_window": 6, "layer_types": MIXED}, 2),
    "gpt_oss": ({"sliding_window": 6}, 2),
    "llama4_text": ({"attention_chunk_size": 8}, 3),
    "mistral": ({"sliding_window": 6}, 4),
    "deepseek_v3": ({}, 0),
    "minicpm3": ({}, 0),
    "falcon": ({}, 0),
    "mamba2": ({}, 0),
    "qwen3_next": ({}, 0),
    "nemotron_h": ({}, 0),
    "bamba": ({"attn_layer_indices": [1]}, 0),
}


def model(family):
    return Causal(causal_types.small(family) | CASES[family][0])


@pytest.mark.sample(12)
@pytest.mark.parametrize("phase", ["prefill", "decode"])
@pytest.mark.parametrize("family", CASES)
def test_it_is_what_a_call_keeps(family, phase):
    call = Run(phase=phase, batch=BATCH, tokens=TOKENS)
    traced = trace_call(model(family), "bf16", call).rows["kv_cache"]
    counters = 8 * CASES[family][1]  # of the layers with a window
    tokens = TOKENS + (phase == "decode")
    derived = cache(model(family), BATCH, tokens, prompt=phase == "prefill")
    assert derived + counters == traced


def test_layers_that_read_anothers_cache_keep_nothing():
    config = model("gemma3n_text").text
    sizes = {"kv_heads": config.num_key_value_heads, "head_dim": config.head_dim}
    sizes |= {"batch": BATCH, "tokens": 17}
    windows = [6, None, 6, None]
    derived = shared_cache(windows, shared=2, **sizes)
    assert derived == cache(model("gemma3n_text"), BATCH, 17)
    assert derived == windowed_cache(windows[:2], **sizes)
    assert shared_cache([None] * 4, shared=1, **sizes) == kv_cache(3, **sizes)
    # Gemma 3n E4B: 35 layers, every fifth without a window, the last 15 own no cache.
    windows = [None if i % 5 == 4 else 512 for i in range(35)]
    whole = {"kv_heads": 2, "head_dim": 256, "batch": 1, "tokens": 32768}
    assert shared_cache(windows, shared=15, **whole) == 2 * 2 * 256 * 2 * (4 * 32768 + 16 * 512)
    for shared in (4, 5):
        with pytest.raises(ValueError, match=f"shared={shared} of L=4 layers"):
            shared_cache([None] * 4, shared=shared, **sizes)


def test_the_projections_of_latent_attention():
    from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3Attention

    for q_latent in (24, None):
        config = Causal(causal_types.small("deepseek_v3") | {"q_lora_rank": q_latent}).settings
        counted = sum(p.numel() for p in DeepseekV3Attention(config, 0).parameters())
        assert counted == latent_attention(
            config.hidden_size,
            heads=config.num_attention_heads,
            q_latent=q_latent or 0,
            kv_latent=config.kv_lora_rank,
            nope_dim=config.qk_nope_head_dim,
            rope_dim=config.qk_rope_head_dim,
            v_dim=config.v_head_dim,
        )


@pytest.mark.parametrize(
    ("family", "words"),
    [
        ("deepseek_v32", "indexed_attention layers of a deepseek_v32: their cache"),
        ("mamba", "linear_attention layers of a mamba: their state"),
        ("mimo_v2_flash", "the cache of a mimo_v2_flash is not described"),
    ],
)
def test_what_the_config_does_not_say_is_refused_by_name(family, words):
    with pytest.raises(ValueError, match=words):
        cache(Causal(causal_types.small(family)), 1, 8)


def test_the_shell_is_asked_for_a_call(tmp_path, capsys):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(causal_types.small("minicpm3")), encoding="utf-8")
    asked = ["estimate", str(path), "--precision", "bf16", "--phase", "decode", "--tokens", "32"]
    assert main([*asked, "--batch", "2"]) == 0
    printed = capsys.readouterr().out
    assert "after a call of decode, 33 tokens read" in printed
    given = "--precision bf16 --batch 2 --tokens 32 --phase decode"
    assert f"memlab trace {path} {given}" in printed
    assert main([*asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    read = Causal(path)
    assert found["rows"]["kv_cache"] == cache(read, 1, 33) and found["rows"]["gradients"] is None
    assert found["rows"]["weights"] == 2 * read.parameter_count


def test_a_cache_has_a_plain_format():
    call = Run(phase="decode", tokens=8)
    with pytest.raises(ValueError, match="weights in int8/128: a cache is described in bf16"):
        after_call(model("deepseek_v3"), Recipe(weights="int8/128"), call)


def test_a_described_type_gives_what_the_closed_form_gives():
    qwen = Model.from_config(causal_types.small("qwen3"))
    derived = kv_cache(
        qwen.layers, kv_heads=qwen.kv_heads, head_dim=qwen.head_dim, batch=3, tokens=9
    )
    assert cache(Causal(causal_types.small("qwen3")), 3, 9) == derived


@pytest.mark.parametrize(
    ("name", "more", "windows"),
    [
        ("gpt-oss-20b", [], [128, None] * 12),
        ("gemma-2-2b", [], [4096, None] * 13),
        ("mistral-7b-v0.1", [], [4096] * 32),
        ("mistral-7b-v0.1", ["--window", "1000"], [1000] * 32),
    ],
)
def test_a_described_model_beyond_its_windows(name, more, windows, capsys):
    known = Model.preset(name)
    asked = ["estimate", name, "--precision", "bf16", "--phase", "decode", "--tokens", "8000"]
    assert main([*asked, *more, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    shape = {"kv_heads": known.kv_heads, "head_dim": known.head_dim}
    lengths = 8 * sum(window is not None for window in windows)  # each such layer counts in one
    held = windowed_cache(windows, **shape, batch=1, tokens=8001) + lengths
    assert rows["kv_cache"] == held
    assert rows["weights"] == 2 * known.parameter_count
    assert rows["activations"] > 0


def test_a_described_model_whose_call_is_not(tmp_path, capsys):
    config = causal_types.small("phi3")
    turned = Model.from_config(config).head_dim // 2
    rope = {"rope_type": "longrope", "rope_theta": 10000.0, "factor": 2.0}
    rope |= {"original_max_position_embeddings": 32, "short_factor": [1.0] * turned}
    config |= {"rope_parameters": rope | {"long_factor": [2.0] * turned}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    asked = ["estimate", str(tmp_path), "--precision", "bf16", "--phase", "decode", "--json"]
    assert main([*asked, "--tokens", "8"]) == 0
    rows, known = json.loads(capsys.readouterr().out)["rows"], Model.from_config(config)
    shape = {"kv_heads": known.kv_heads, "head_dim": known.head_dim}
    assert rows["kv_cache"] == kv_cache(known.layers, **shape, batch=1, tokens=9)
    assert rows["activations"] is None
