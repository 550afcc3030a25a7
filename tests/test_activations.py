"""What a layer keeps, in closed form: against real layers, the simulated step, and CUDA's graph."""

import random

import pytest
import torch
from real_steps import Question, real_step

from memlab import Model, Run
from memlab.lab.models import TinyGPT, TinyLlama
from memlab.measure import trace
from memlab.run.recipe_choice import PRECISIONS
from memlab.step import simulate
from memlab.terms import activations

RECIPES = {name: PRECISIONS[name] for name in ("fp32", "bf16", "autocast-bf16")}


def shape(seed, family, widths=(2, 8, 10)):
    """A random model of two layers, a batch, and the sizes that the formula takes."""
    rng = random.Random(seed)
    K, H = rng.choice([1, 2, 3]), rng.choice(widths)
    N = K * rng.choice([1, 2, 3])
    if family == "gpt2":
        K = N
    D = rng.randint(3, 20) * 4 if family == "llama" else N * H
    F, B, T = rng.randint(10, 90), rng.randint(1, 3), rng.randint(2, 40)
    sizes = dict(d_model=D, d_ff=F, heads=N, kv_heads=K, head_dim=H)
    model = Model(family=family, layers=2, vocab=101, positions=64, **sizes)
    if family == "gpt2":
        del sizes["kv_heads"]
    return model, dict(batch=B, tokens=T), sizes


def derived(family, batch, sizes, precision, backend="cpu"):
    layer = activations.llama_layer if family == "llama" else activations.gpt_layer
    return layer(**batch, **sizes, precision=precision, backend=backend)


@pytest.mark.parametrize("precision", RECIPES)
@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_a_layer_of_a_simulated_step(family, precision):
    for seed in range(25):
        model, batch, sizes = shape(seed, family)
        step = simulate(model, RECIPES[precision], Run.cpu(**batch, implementation="memlab"))
        assert step.saved.bytes == derived(family, batch, sizes, precision), (model, batch)


@pytest.mark.parametrize("precision", RECIPES)
@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_one_more_real_layer(family, precision):
    model, batch, sizes = shape(7, family)
    config = {"model_type": family, "vocab_size": 101, "max_position_embeddings": 64}
    if family == "llama":
        config |= {"hidden_size": model.d_model, "intermediate_size": model.d_ff}
        config |= {"num_attention_heads": model.heads, "num_key_value_heads": model.kv_heads}
        config |= {"head_dim": model.head_dim}
    else:
        config |= {"n_embd": model.d_model, "n_inner": model.d_ff, "n_head": model.heads}
        config |= {"n_positions": 64}
    key = "n_layer" if family == "gpt2" else "num_hidden_layers"
    step = Question({}, precision, Run.cpu(implementation="memlab", **batch))
    kept = [real_step(step.replace(config=config | {key: n})).activations for n in (1, 2)]
    assert kept[1] - kept[0] == derived(family, batch, sizes, precision)


@pytest.mark.parametrize("precision", RECIPES)
@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_one_more_layer_of_the_cuda_graph(family, precision):
    for seed in (1, 2):
        model, batch, sizes = shape(seed, family, widths=(8, 16, 40))
        kept = []
        for layers in (1, 2):
            deeper = model.replace(layers=layers)
            with torch.device("meta"):
                module = (TinyGPT if family == "gpt2" else TinyLlama)(deeper)
                ids = torch.zeros(batch["batch"], batch["tokens"], dtype=torch.long)
            cast = "bf16" if precision == "autocast-bf16" else None
            module = module.bfloat16() if precision == "bf16" else module
            found = trace(module, (ids, ids), Run(kernel="flash"), autocast=cast, optimizer=None)
            kept.append(found.contents("after_forward")["activations"])
        assert kept[1] - kept[0] == derived(family, batch, sizes, precision, "cuda")


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_eager_attention_of_transformers(precision):
    """The weights are what eager attention adds; the rest of the layer stays as it was."""
    model = Model(layers=2, d_model=48, d_ff=80, heads=6, kv_heads=2, head_dim=10, vocab=30)
    kept = {
        kind: simulate(
            model, RECIPES[precision], Run.cpu(batch=3, tokens=20, attention=kind)
        ).saved.bytes
        for kind in ("eager", "sdpa")
    }
    kernel = activations.attention(
        3, tokens=20, heads=6, kv_heads=2, head_dim=10, precision=precision
    )
    spelled = activations.eager_attention(3, tokens=20, heads=6, head_dim=10, precision=precision)
    assert kept["eager"] - kept["sdpa"] == spelled - kernel


def test_figures_of_known_models():
    """Bytes per token, layer and D in bf16 on CUDA: Llama-3-8B 41.03."""
    llama = activations.llama_layer(
        1, tokens=8192, d_model=4096, d_ff=14336, heads=32, kv_heads=8, head_dim=128, backend="cuda"
    )
    assert round(llama / (8192 * 4096), 2) == 41.03
    gpt = activations.gpt_layer(
        1, tokens=1024, d_model=768, d_ff=3072, heads=12, head_dim=64, backend="cuda"
    )
    assert gpt == 1024 * (32 * 768 + 4 * 12 + 16) + 24


def test_a_changed_byte_shows(monkeypatch):
    model, batch, sizes = shape(3, "llama")
    step = simulate(model, RECIPES["bf16"], Run.cpu(**batch, implementation="memlab"))
    right = activations.attention
    monkeypatch.setattr(
        activations, "attention", lambda *first, **sizes: right(*first, **sizes) + 1
    )
    assert derived("llama", batch, sizes, "bf16") == step.saved.bytes + 1


def test_the_table_prints_itself_and_its_formula():
    model = Model(layers=3, d_model=64, d_ff=160, heads=4, kv_heads=2, vocab=100)
    saved = simulate(
        model, RECIPES["bf16"], Run.cpu(batch=2, tokens=16, implementation="memlab")
    ).saved
    assert saved.formula == "4·B·T·N·H + 4·B·T·K·H + 20·B·T·D + 8·B·T·F + 4·B·T·N + 8·B·T"
    B, T, N, K, H, D, F = 2, 16, 4, 2, 16, 64, 160
    terms = [term.split("·") for term in saved.formula.split(" + ")]
    known = dict(B=B, T=T, N=N, K=K, H=H, D=D, F=F)
    total = 0
    for factor, *letters in terms:
        product = int(factor)
        for letter in letters:
            product *= known[letter]
        total += product
    assert total == saved.bytes == sum(row.bytes for row in saved.rows)
    lines = str(saved).splitlines()
    assert lines[0] == "Saved for backward by one layer"
    (shared,) = [line for line in lines if "linear k.input" in line]
    assert "B · T · D" in shared and "linear q.input" in shared and "linear v.input" in shared
    assert saved.formula in lines[-1] and f"{saved.bytes:,}" in lines[-2]
    assert saved._repr_html_().count("<tr>") == len(saved.rows) + 2


@pytest.mark.parametrize(
    "call, words",
    [
        (
            lambda: activations.rms_norm(1, tokens=2, width=3, precision="fp64"),
            "unknown precision 'fp64'; known: autoc",
        ),
        (
            lambda: activations.rms_norm(1, tokens=2, width=3, precision="bf16", backend="tpu"),
            "unknown backend 'tpu'; known: cpu",
        ),
        (lambda: activations.attention(1, tokens=-2, heads=3, kv_heads=1, head_dim=8), "tokens=-2"),
        (
            lambda: activations.eager_attention(
                1, tokens=2, heads=3, head_dim=8, precision="autocast-bf16"
            ),
            "known: bf16, fp32",
        ),
    ],
)
def test_wrong_input_fails_by_name(call, words):
    with pytest.raises(ValueError, match=words):
        call()
