"""Adapters other than plain LoRA, as peft makes them: real steps, simulated to the byte."""

import pytest
import real_steps
from compare import allocates_as_real, is_real
from mixtures import random_mixtures
from real_steps import Question, simulated
from test_step_cuda import on_cuda, traced

from memlab import Model, Run, Sharding
from memlab.adapters import Ia3, Prompt, Vera
from memlab.families import proven, record_of
from memlab.lab.trace_run import trace_run
from memlab.step import Lora, simulate
from memlab.step.adapters.experts_supported import IN_ATTENTION

MIXTURES = tuple(name for name in proven("adapters") if record_of(name).mixture)
SHAPE = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 4, "vocab_size": 61}
LLAMA = {"model_type": "llama", **SHAPE, "intermediate_size": 80, "num_key_value_heads": 2}
BIASED = LLAMA | {"attention_bias": True}
WIDE = LLAMA | {"hidden_size": 64, "intermediate_size": 128}  # rows that fill blocks of 64
GPT = {"model_type": "gpt2", "n_layer": 2, "n_embd": 32, "n_head": 4, "vocab_size": 61}
PAIR = ("q", "down")


def asked(config, precision, **how):
    return Question(config, precision, Run.cpu(batch=2, tokens=16, **how))


BLOCK = {"checkpoint": "block"}
DORA = [
    asked(LLAMA, "bf16", lora=Lora(4, PAIR, dora=True)),
    asked(BIASED, "bf16", lora=Lora(4, PAIR, dora=True, dropout=0.1), **BLOCK),
    asked(BIASED, "autocast-bf16", lora=Lora(4, PAIR, dora=True, dropout=0.1)),
    asked(LLAMA, "bf16", lora=Lora(4, ("gate",), dora=True, dtype="bf16")),
    asked(GPT, "fp32", lora=Lora(4, ("qkv", "down"), dora=True)),
    asked(GPT, "bf16", lora=Lora(4, ("qkv", "down"), dora=True, dropout=0.1), **BLOCK),
    asked(WIDE, "bf16", lora=Lora(4, PAIR, "nf4", dora=True), checkpoint="none"),
    asked(WIDE, "fp32", lora=Lora(4, PAIR, "nf4", dora=True, dropout=0.1), **BLOCK),
]

OTHERS = [
    asked(LLAMA, "fp32", adapter=Ia3()),
    asked(BIASED, "autocast-bf16", adapter=Ia3(), **BLOCK),
    asked(GPT, "bf16", adapter=Ia3(("qkv", "down"))),
    asked(LLAMA, "bf16", adapter=Ia3(("q", "up"), ("up",), dtype="bf16")),
    asked(LLAMA, "fp32", adapter=Vera(8, (*PAIR, "v"))),
    asked(LLAMA, "bf16", adapter=Vera(8, PAIR, dropout=0.1), **BLOCK),
    asked(GPT, "bf16", adapter=Vera(8, ("qkv", "down"))),
    asked(LLAMA, "bf16", adapter=Prompt(5)),
    asked(LLAMA, "bf16", adapter=Prompt(3), micro_batches=2).replace(batch=1),
    asked(BIASED, "autocast-bf16", adapter=Prompt(5)),
    asked(GPT, "fp32", adapter=Prompt(5), **BLOCK),
]


@pytest.mark.sample(10)
@pytest.mark.parametrize("step", DORA + OTHERS, ids=str)
def test_every_figure_is_the_real_one(step):
    real, found = is_real(step)
    adapters = step.run.adapters
    count = adapters.parameter_count(step.model)
    assert found.rows["gradients"] == (2 if getattr(adapters, "dtype", None) else 4) * count
    assert real.parameters == step.model.parameter_count + count or step.run.lora


# A random model of each mixture, with adapters in its attention: of LoRA, DoRA, (IA)³ and VeRA.
KINDS = (
    {"lora": Lora(4, IN_ATTENTION)},
    {"lora": Lora(4, ("q", "out"), dropout=0.1, saved=("lm_head",))},
    {"lora": Lora(4, ("k", "v"), dora=True)},
    {"adapter": Ia3(("k", "v"), ())},
    {"adapter": Vera(8, ("q",))},
)
MIXED = [
    step.replace(**KINDS[i % len(KINDS)])
    for i, step in enumerate(random_mixtures(2 * len(MIXTURES), 23, families=MIXTURES))
]


@pytest.mark.sample(7)
@pytest.mark.parametrize("step", MIXED, ids=str)
def test_a_mixture_with_adapters_in_its_attention_is_the_real_one(step):
    is_real(step)


@pytest.mark.sample(4)
@pytest.mark.parametrize("step", [*on_cuda(MIXED[::2])], ids=str)
def test_the_cuda_graph_of_a_mixture_is_the_traced_one(step):
    run = step.run.replace(backend="cuda", micro_batches=1)
    recipe = "autocast" if step.precision.startswith("autocast") else step.precision
    real, found = trace_run(step.model, recipe, run), simulate(step.model, recipe, run)
    assert found.held == real.held
    assert found.peak.bytes == real.peak


def test_what_is_not_described_of_a_mixtures_adapters_is_named():
    model = Model.preset("qwen3-30b-a3b")
    for adapters, words in (
        ({"lora": Lora(4, ("q", "gate"))}, "target 'gate' is not described for qwen3_moe: all exp"),
        ({"lora": Lora(4, ("shared_up",))}, "target 'shared_up' is not described for qwen3_moe"),
        ({"lora": Lora(4, ("router",), dora=True)}, "dora=True with adapters beside router: peft"),
        ({"lora": Lora(4, ("experts_up",), dropout=0.1)}, "dropout=0.1 with adapters beside exp"),
        ({"lora": Lora(4, ("router",), dtype="bf16")}, "adapters beside router in bf16: on a CPU"),
        (
            {"lora": Lora(4, ("experts_up",)), "loop": "sft"},
            "adapters beside experts_up in loop='sft' are not described; known: plain",
        ),
        (
            {"lora": Lora(4, ("experts_up",)), "devices": Sharding(data=2)},
            "adapters beside experts_up are described on one device, not for devices=",
        ),
        (
            {"adapter": Ia3(("k", "down"), ("down",))},
            "target 'down' is not described for qwen3_moe",
        ),
        ({"adapter": Prompt(4)}, "a prompt of 4 trained tokens is not described for qwen3_moe"),
    ):
        with pytest.raises(ValueError, match=words):
            simulate(model, "bf16", Run(tokens=16, **adapters))
    with pytest.raises(ValueError, match="adapters are not described for transformers deepseek_v3"):
        simulate(Model.preset("deepseek-v3"), "bf16", Run(tokens=16, lora=Lora(4)))


@pytest.mark.parametrize("step", [DORA[3], *DORA[6:], *OTHERS[1::5]], ids=str)
def test_every_allocation_is_the_real_one(step):
    allocates_as_real(step)


@pytest.mark.parametrize("step", [DORA[5], OTHERS[1], OTHERS[6]], ids=str)
def test_the_cuda_graph_is_the_traced_one(step):
    real, found = traced(step), simulated(step.replace(backend="cuda"))
    assert real.peak == found.peak.bytes
    assert {moment: real.held[moment] for moment in found.held} == found.held


def test_the_cuda_graph_of_a_prompt_brings_its_numbers_from_the_host():
    """A trace has them on its one device: 8 n bytes all the time, and no copy for each sequence."""
    step = asked(LLAMA, "bf16", adapter=Prompt(5))
    real, found = traced(step), simulated(step.replace(backend="cuda"))
    resident, copied = 8 * 5, 8 * 5 * 2
    apart = {moment: real.held[moment] - found.held[moment] for moment in found.held}
    assert apart.pop("after_forward") == real.peak - found.peak.bytes == resident - copied
    assert set(apart.values()) == {resident}


def test_dora_keeps_two_results_of_each_layer_that_lora_does_not():
    step = asked(LLAMA, "bf16", lora=Lora(4, ("down",)))
    plain, dora = simulated(step), simulated(step.replace(lora=Lora(4, ("down",), dora=True)))
    rows, width, layers = 2 * 16, 32, 2
    # The base's result in bf16, the adapter's in fp32; in fp32 norms, lengths over norms, and the
    # same less one, where the base's result asks for a gradient: not in the first layer.
    kept = layers * (rows * width * (2 + 4) + 3 * 4 * width) - 4 * width
    assert dora.rows["activations"] - plain.rows["activations"] == kept


def test_what_is_not_described_of_dora_is_named():
    step = asked(GPT, "fp32", lora=Lora(4, ("qkv",), dora=True, dropout=0.1))
    with pytest.raises(ValueError, match="peft makes a parameter of each weight there"):
        simulated(step)
    ours = step.replace(implementation="memlab", lora=Lora(4, ("qkv",), dora=True))
    with pytest.raises(ValueError, match="dora=True of adapters: peft has it"):
        simulated(ours)
    with pytest.raises(TypeError, match="dora=1; True or False"):
        Lora(4, dora=1)


RESIZED = [
    asked(LLAMA, "bf16", lora=Lora(4, PAIR, saved=("embedding", "lm_head"))),
    asked(LLAMA | {"tie_word_embeddings": True}, "fp32", lora=Lora(4, PAIR, saved=("embedding",))),
    asked(LLAMA, "fp32"),
]


@pytest.mark.parametrize("step", RESIZED, ids=str)
def test_resized_embeddings_are_those_of_the_larger_vocabulary(step, monkeypatch):
    """New tokens make a longer table; nothing of the old one is left in a step."""
    made = real_steps._theirs

    def resized(asked):
        module = made(asked.replace(config=asked.config | {"vocab_size": 53}))
        module.resize_token_embeddings(LLAMA["vocab_size"])
        return module

    monkeypatch.setattr(real_steps, "_theirs", resized)
    is_real(step)
