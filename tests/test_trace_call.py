"""A call in inference, traced by the model's own code: as real calls and the closed form."""

import json

import causal_types
import pytest
import torch
from real_inference import real_call
from real_steps import Question

import memlab
from memlab import Model, Run
from memlab.base.gc_paused import no_garbage
from memlab.cli import main
from memlab.lab.causal import Causal
from memlab.lab.trace_call import trace_call
from memlab.measure import Tracker
from memlab.step.calls import decode, prefill

CALL = Run(phase="prefill", batch=2, tokens=16)
DESCRIBED = {"prefill": prefill, "decode": decode}


@pytest.mark.sample(6)
@pytest.mark.parametrize("phase", DESCRIBED)
@pytest.mark.parametrize("backend", ["cpu", "cuda"])
@pytest.mark.parametrize("family", ["llama", "gpt2", "gemma"])
def test_it_is_what_the_closed_form_says(family, backend, phase):
    model = Model.from_config(causal_types.small(family))
    run = CALL.replace(phase=phase, backend=backend)
    traced, said = trace_call(model, "bf16", run), DESCRIBED[phase](model, "bf16", run)
    assert (traced.peak, traced.held) == (said.peak.bytes, said.held)
    assert {name: traced.rows[name] for name in traced.rows} == {
        name: said.rows.get(name, 0) for name in traced.rows
    }
    assert traced.growth == (said.per_token if phase == "decode" else None)


@pytest.mark.parametrize("logits", ["all", "last"])
def test_it_is_what_a_real_call_takes(logits):
    config = causal_types.small("qwen3")
    run = Run.cpu(phase="prefill", batch=2, tokens=16, logits=logits)
    model = Model.from_config(config)
    traced, real = trace_call(model, "fp32", run), real_call(Question(config, "fp32", run))
    assert (traced.peak, traced.held["after_call"]) == (real.peak, real.after)


# Bytes of what is kept, bf16: of each layer and sequence, by the tokens that were read.
LAYERS, BATCH, TOKENS = 4, 2, 16
KEPT = {
    # the latent (16) and the rotary part that all heads share (8)
    "deepseek_v3": (LAYERS * BATCH * TOKENS * (16 + 8) * 2, LAYERS * BATCH * (16 + 8) * 2),
    # keys and values of 2 heads x 16
    "qwen3_moe": (LAYERS * BATCH * TOKENS * 2 * 32 * 2, LAYERS * BATCH * 2 * 32 * 2),
}


@pytest.mark.parametrize("family", ["deepseek_v3", "qwen3_moe"])
def test_the_cache_of_a_model_is_what_its_layers_keep(family):
    model = Causal(causal_types.small(family))
    kept, grows = KEPT[family]
    assert trace_call(model, "bf16", CALL).rows["kv_cache"] == kept
    step = trace_call(model, "bf16", CALL.replace(phase="decode"))
    assert (step.rows["kv_cache"], step.growth) == (kept + grows, grows)


def test_the_state_of_a_mamba_layer_does_not_grow():
    model = Causal(causal_types.small("mamba2"))
    sizes = {
        tokens: trace_call(model, "bf16", CALL.replace(tokens=tokens)).rows["kv_cache"]
        for tokens in (16, 64)
    }
    assert sizes[16] == sizes[64] > 0
    assert trace_call(model, "bf16", CALL.replace(phase="decode")).growth == 0


def test_the_state_of_a_mamba_layer_is_that_of_a_real_call():
    model = Causal(causal_types.small("mamba2"))
    run = Run.cpu(phase="prefill", batch=2, tokens=16)
    traced = trace_call(model, "fp32", run)
    with torch.no_grad(), no_garbage():
        module = model.module(run, torch.float32).eval()
        ids = torch.zeros(2, 16, dtype=torch.long)
        with Tracker() as tracker:
            tracker.label(module)
            tracker.label(ids, "inputs")
            out = module(ids, use_cache=True)
            assert out.cache_params is not None
    assert (traced.peak, traced.held["after_call"]) == (tracker.peak, tracker.current)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"phase": "train"}, "phase='train' is a step"),
        ({"tokens": 100_000}, "100,000 is more than its 256 positions"),
        ({"window": 8}, "window=8 cannot be traced in a call"),
    ],
)
def test_a_call_is_refused_by_name(changes, words):
    with pytest.raises(ValueError, match=words):
        trace_call(Causal(causal_types.small("phi")), "bf16", CALL.replace(**changes))


def test_a_model_without_a_cache():
    with pytest.raises(ValueError, match="returns no cache"):
        trace_call(Causal(causal_types.small("openai-gpt")), "fp32", CALL)


def test_the_doors(tmp_path, capsys):
    config = causal_types.small("phi")
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    step = memlab.trace(config, "bf16", CALL)
    asked = ["trace", str(path), "--precision", "bf16", "--batch", "2", "--tokens", "16"]
    assert main([*asked, "--phase", "prefill"]) == 0
    printed = capsys.readouterr().out
    assert "prefill, 2 x 16 tokens" in printed and "after call" in printed
    assert main([*asked, "--phase", "decode", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rows"]["kv_cache"] == step.rows["kv_cache"] * 17 // 16
    assert found["peak"]["first_step_bytes"] is None
