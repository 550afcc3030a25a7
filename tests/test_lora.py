"""LoRA: the adapter itself, and a step that trains adapters alone, simulated to the byte."""

import pytest
import torch
from compare import allocates_as_real, is_real
from more_families import MORE, drawn
from real_steps import Question, deep, random_configs, simulated
from test_step import LLAMAS
from test_step_cuda import on_cuda, traced

from memlab import Model, Run
from memlab.adapters.lora import linear_layers
from memlab.cli import main
from memlab.families import record_of
from memlab.lab.lora import LoRALinear, adapt, merge
from memlab.lab.models import TinyGPT, TinyLlama
from memlab.step import Lora, simulate

CARRIERS = tuple(family for family in MORE if record_of(family).proves("adapters"))
PEFT = ("llama", "gpt2", "qwen3", "gpt_neox", "gemma", "opt", "mistral", "qwen2")
DRAWN = [
    *random_configs(4, 91, families=LLAMAS, implementations=("memlab",), dropouts=(0.0,)),
    *random_configs(2, 92, families=("gpt2",), implementations=("memlab",)),
    *random_configs(2, 93, families=("llama",), implementations=("memlab",), dropouts=(0.0,)),
    *random_configs(deep(8), 94, families=PEFT, checkpoints=("none", "block")),
    *drawn(len(CARRIERS), 96, CARRIERS),
]


def adapters(i, step):
    """One or a few layers, or all of them; peft's with dropout, and not all in its own format."""
    names = tuple(linear_layers(step.model))
    targets = (names[:1], names, names[1::2])[i % 3]
    if step.run.implementation == "memlab":
        return Lora((1, 8)[i % 2], targets)
    dtype = step.recipe.weights if i % 5 == 4 else None
    return Lora((8, 1)[i % 2], targets, dtype=dtype, dropout=(0.1, 0.0, 0.5)[i // 2 % 3])


STEPS = [
    step.replace(
        lora=adapters(i, step),
        checkpoint="block" if i in (1, 6) else step.run.checkpoint,
        micro_batches=1 + (i % 4 == 3),
        **({"loss": "chunked", "loss_chunks": 3} if i % 5 == 2 else {}),
    )
    for i, step in enumerate(DRAWN)
]


@pytest.mark.sample(18)
@pytest.mark.parametrize("step", STEPS, ids=str)
def test_every_figure_is_the_real_one(step):
    real, found = is_real(step)
    count = step.run.lora.parameter_count(step.model)
    theirs = step.run.implementation == "transformers" and step.run.lora.dtype is None
    width = 2 if step.precision == "bf16" and not theirs else 4
    assert found.rows["gradients"] == width * count
    assert real.parameters == step.model.parameter_count + count


SHAPE = {"num_hidden_layers": 3, "hidden_size": 32, "num_attention_heads": 4, "vocab_size": 61}
SMALL = {"model_type": "llama", **SHAPE, "intermediate_size": 80, "num_key_value_heads": 2}
UNTIED = {"model_type": "gpt2", "n_layer": 3, "n_embd": 32, "n_head": 4, "vocab_size": 61}
UNTIED["tie_word_embeddings"] = False
TIED = SMALL | {"tie_word_embeddings": True}
BOTH = ("embedding", "lm_head")


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    "config, precision, how, lora",
    [
        (SMALL, "bf16", {}, Lora(4, ("q", "down"), saved=BOTH)),
        (SMALL, "bf16", {"checkpoint": "block"}, Lora(4, saved=("embedding",), dropout=0.1)),
        (SMALL, "autocast-bf16", {"loss": "chunked"}, Lora(4, saved=BOTH[1:], ranks=(("v", 9),))),
        (UNTIED, "bf16", {"checkpoint": "block"}, Lora(4, ("qkv",), saved=BOTH)),
        (TIED, "bf16", {}, Lora(4, saved=BOTH[:1])),
        (TIED, "autocast-bf16", {}, Lora(4, saved=BOTH)),
        (UNTIED | {"tie_word_embeddings": True}, "fp32", {}, Lora(4, ("qkv",), saved=BOTH[1:])),
        (UNTIED, "fp32", {}, Lora(4, ("qkv", "down"), saved=BOTH[:1], ranks=(("down", 2),))),
    ],
    ids=str,
)
def test_tables_beside_the_frozen_ones_are_trained_in_full(config, precision, how, lora):
    step = Question(config, precision, Run.cpu(batch=2, tokens=12, lora=lora, **how))
    real, _ = is_real(step)
    more = lora.parameter_count(step.model) + lora.saved_count(step.model)
    assert real.parameters == step.model.parameter_count + more
    seen = traced(step) if not how.get("loss") else None
    assert seen is None or seen.peak == simulated(step.replace(backend="cuda")).peak.bytes


@pytest.mark.sample(5)
@pytest.mark.parametrize("step", STEPS[::3], ids=str)
def test_every_allocation_is_the_real_one(step):
    allocates_as_real(step)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    # A trace runs one micro-batch, with the model's own loss.
    "step",
    [*on_cuda(s.replace(micro_batches=1, loss="plain", loss_chunks=None) for s in STEPS)][::5],
    ids=str,
)
def test_the_cuda_graph_is_the_traced_one(step):
    real, found = traced(step), simulated(step.replace(backend="cuda"))
    assert real.peak == found.peak.bytes
    assert {moment: real.held[moment] for moment in found.held} == found.held


@pytest.mark.parametrize("implementation", ["memlab", "transformers"])
def test_layers_left_out_change_nothing(implementation):
    how = dict(batch=2, tokens=16, implementation=implementation, lora=Lora(4))
    model = Model.preset("tiny-llama").replace(layers=9)
    short, whole = (
        simulate(model, "fp32", Run.cpu(**how), every_layer=every) for every in (False, True)
    )
    assert len(whole.log.events) > len(short.log.events)
    assert (short.held, short.rows, short.peak) == (whole.held, whole.rows, whole.peak)


def test_the_base_pays_no_gradients_and_no_states():
    """Llama-3-8B at rank 16 on q and v: 6.8 million trained parameters stand on 8 billion."""
    llama, how = Model.preset("llama-3-8b"), dict(batch=1, tokens=512)
    lora = Lora(16)
    trained = lora.parameter_count(llama)
    # q is [4096, 4096] and v [1024, 4096], in 32 layers.
    assert trained == 32 * 16 * (4096 + 4096 + 4096 + 1024) == 6_815_744
    whole, thin = (simulate(llama, "bf16", Run.cpu(lora=lora, **how)) for lora in (None, lora))
    assert thin.rows["weights"] == whole.rows["weights"] + 4 * trained
    assert thin.rows["gradients"] == 4 * trained
    # Two moments, and a step counter of 4 bytes for each of the 128 matrices.
    assert thin.rows["optimizer"] == 2 * 4 * trained + 4 * 2 * 2 * 32
    assert thin.peak.bytes < whole.peak.bytes / 2
    # What backward passes through is still kept: activations shrink little.
    assert thin.rows["activations"] > whole.rows["activations"] / 2


def test_an_adapter_starts_as_its_base_and_alone_is_trained():
    model = Model.preset("tiny-llama")
    ids = torch.randint(model.vocab, (2, 8), generator=torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    module = TinyLlama(model)
    before = module(ids)
    weights = {name: p.detach().clone() for name, p in module.named_parameters()}
    assert adapt(module, 4) is module
    assert torch.equal(module(ids), before)
    trained = [name for name, p in module.named_parameters() if p.requires_grad]
    assert len(trained) == 2 * 2 * model.layers and all(".a." in n or ".b." in n for n in trained)
    optimizer = torch.optim.AdamW((p for p in module.parameters() if p.requires_grad), lr=0.1)
    first = module(ids, ids)
    first.backward()
    optimizer.step()
    assert module(ids, ids) < first
    after = {name.replace(".base", ""): p for name, p in module.named_parameters()}
    assert all(torch.equal(after[name], weights[name]) for name in weights)


def test_an_adapter_adds_its_scaled_product():
    base = torch.nn.Linear(6, 5).to(torch.bfloat16)
    layer = LoRALinear(base, 2, alpha=6)
    assert layer.a.weight.dtype == layer.b.weight.dtype == torch.bfloat16
    torch.nn.init.ones_(layer.b.weight)
    x = torch.ones(1, 6, dtype=torch.bfloat16)
    added = 3 * layer.a.weight.float().sum()
    torch.testing.assert_close(
        (layer(x) - base(x)).float(), added.expand(1, 5), rtol=0.05, atol=0.05
    )


def test_what_cannot_be_adapted_is_named():
    with pytest.raises(ValueError, match="no linear layer is named 'q'; known: down, lm_head"):
        adapt(TinyGPT(Model.preset("tiny-gpt")), 4)
    with pytest.raises(ValueError, match="rank=0; at least 1"):
        LoRALinear(torch.nn.Linear(2, 2), 0)


@pytest.mark.parametrize(
    "family, adapters, words",
    [
        ("llama", (0,), "rank=0; at least 1 is needed"),
        ("llama", (4, ("qkv",)), "target 'qkv' is not described; known: down, gate, k, out, q"),
        ("llama", (4, ()), "adapters need at least one layer"),
        ("llama", (4, ("q",), "int4"), "base='int4' is not described for adapters; known: nf4"),
        ("llama", (4, ("q",), None, False, "fp64"), "dtype='fp64' of adapters; known: fp32, bf16"),
        ("llama", (4, ("q",), None, False, "bf16"), "peft makes them in fp32"),
        ("llama", (4, ("q",), None, False, None, 0.0, (("v", 3),)), "which is none of the targets"),
        ("llama", (4, ("q",), None, False, None, 0.0, (("q", 0),)), "rank of q=0"),
        ("llama", (4, ("q",), None, False, None, 0.0, (), ("norm",)), "saved='norm' is not"),
        ("llama", (4, ("q",), None, False, None, 1.0), "dropout=1.0 is not a probability"),
    ],
)
def test_what_is_not_described_is_named(family, adapters, words):
    shape = dict(layers=1, d_model=8, d_ff=8, heads=1, vocab=8, positions=8)
    model = Model(family=family, **shape)
    with pytest.raises(ValueError, match=words):
        simulate(model, "fp32", Run.cpu(batch=1, tokens=8, lora=Lora(*adapters)))


def test_the_shell_says_the_same(capsys):
    words = "estimate tiny-llama --batch 2 --tokens 32 --lora-rank 8 --lora-targets q,up --json"
    assert main(words.split()) == 0
    found = simulate(
        Model.preset("tiny-llama"), "fp32", Run(batch=2, tokens=32, lora=Lora(8, ("q", "up")))
    )
    assert f'"bytes": {found.peak.bytes}' in capsys.readouterr().out
    assert main("estimate tiny-llama --lora-rank 8".split()) != 0
    assert "it needs tokens" in capsys.readouterr().err


def test_the_shell_says_peft_s_default_and_the_other(capsys):
    """Beside weights in 16 bits peft's adapters are fp32, and each casts its input for itself."""
    words = "estimate qwen3-4b --recipe bf16 --batch 1 --tokens 2048 --lora-rank 16".split()
    words += ["--lora-targets", "q,k,v,out,gate,up,down"]
    said = {}
    for more in ((), ("--lora-dtype", "bf16")):
        assert main([*words, *more]) == 0
        said[more] = capsys.readouterr().out
    wide, narrow = said.values()
    assert "26.93 GiB" in wide and "(--lora-dtype bf16) takes less" in wide
    assert "21.46 GiB" in narrow and "takes less" not in narrow


def test_merged_is_the_same_function_in_one_matrix():
    model = Model.preset("tiny-llama")
    ids = torch.randint(model.vocab, (2, 8), generator=torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    module = adapt(TinyLlama(model), 4, ("q", "down"), alpha=8)
    for name, p in module.named_parameters():
        if ".b." in name:
            torch.nn.init.normal_(p, std=0.1)
    with torch.no_grad():
        before = module(ids)
        torch.testing.assert_close(merge(module)(ids), before)
    assert not any(isinstance(part, LoRALinear) for part in module.modules())
    assert sum(p.numel() for p in module.parameters()) == model.parameter_count


def test_a_merged_weight_is_rounded_once():
    base = torch.nn.Linear(6, 5, bias=False).to(torch.bfloat16)
    layer = LoRALinear(base, 2, alpha=1)
    torch.nn.init.normal_(layer.b.weight)
    exact = base.weight.float() + 0.5 * layer.b.weight.float() @ layer.a.weight.float()
    assert torch.equal(layer.merged().weight, exact.bfloat16())
