"""LoRA beside experts and routers, and NF4 under a mixture: real steps of peft, to the byte."""

import pytest
from compare import allocates_as_real, is_real
from mixtures import random_mixtures
from real_steps import Question, quiet, simulated
from test_step_cuda import on_cuda

from memlab import Model, Recipe, Run
from memlab.adapters.expert_lora import written_out
from memlab.adapters.lora import coded_layers
from memlab.families import proven, record_of
from memlab.lab.trace_run import trace_run
from memlab.lab.trainers import highest
from memlab.lab.with_peft import with_peft
from memlab.step import Lora, simulate

MIXTURES = tuple(name for name in proven("adapters") if record_of(name).mixture)
BOTH = ("experts_up", "experts_down")
# What the same widths have in every family: rows that fill blocks of 64, and no layer without.
FILLED = {"hidden_size": 64, "num_attention_heads": 2, "num_key_value_heads": 1}
DENSE = ("mlp_only_layers", "decoder_sparse_step", "first_k_dense_replace")
WIDTHS = ("intermediate_size", "shared_expert_intermediate_size", "intermediate_size_mlp")


def drawn(seed, families=MIXTURES, **fixed):
    """One random mixture of each family; each has at least two experts and a layer of them."""
    made = []
    for step in random_mixtures(len(families), seed, families=families):
        config = {key: value for key, value in step.config.items() if key not in DENSE} | fixed
        for key in ("num_experts", "num_local_experts"):
            if key in config:
                config[key] = max(2, config[key])
        if step.family == "glm4_moe":
            config["first_k_dense_replace"] = int(config["num_hidden_layers"] > 1)
        made.append(step.replace(config=config))
    return made


def filled(seed, families=MIXTURES):
    """The same where bitsandbytes can make codes; it computes under no autocast here."""
    made = []
    for i, step in enumerate(drawn(seed, families, **FILLED)):
        config = step.config | {key: 64 * (1 + i % 3) for key in WIDTHS if key in step.config}
        config |= {} if step.family == "olmoe" else {"head_dim": 32 if i % 2 else 64}
        if step.family == "glm4_moe":
            config["moe_intermediate_size"] = 64
        step = step.replace(config=config)
        plain = not step.precision.startswith("autocast")
        made.append(step if plain else step.replace(precision="bf16"))
    return made


BESIDE = [
    step.replace(lora=(Lora(3, BOTH), Lora(8, ("q", *BOTH), ranks=(("experts_up", 16),)))[i % 2])
    for i, step in enumerate(drawn(5) + drawn(6)[:3])
]
ONE = [step.replace(lora=Lora(4, (BOTH[i % 2],))) for i, step in enumerate(drawn(7))]
ROUTERS = [
    step.replace(lora=Lora(2, ("router", *BOTH) if i % 2 else ("router", "v")))
    for i, step in enumerate(drawn(8, tuple(name for name in MIXTURES if name != "llama4_text")))
]
SHARED = [
    step.replace(lora=Lora(3, (*record_of(step.family).shared_targets, BOTH[0])))
    for step in drawn(9, ("qwen2_moe", "llama4_text"))
]
NARROW = [
    step.replace(precision="bf16", lora=Lora(3, BOTH, dtype="bf16"))
    for step in drawn(10, ("qwen3_moe", "gpt_oss"))
]
CODED = [
    step.replace(lora=Lora(4, (("q", "v"), BOTH, ("k", *BOTH))[i % 3], "nf4"))
    for i, step in enumerate(filled(11) + filled(12)[:3])
]


@pytest.mark.sample(13)
@pytest.mark.parametrize("step", BESIDE + ONE + ROUTERS + SHARED + NARROW, ids=str)
def test_adapters_beside_experts_are_the_real_ones(step):
    real, _ = is_real(step)
    assert real.parameters == step.model.parameter_count + step.run.lora.parameter_count(step.model)


@pytest.mark.sample(5)
@pytest.mark.parametrize("step", CODED, ids=str)
def test_a_mixture_over_codes_is_the_real_one(step):
    is_real(step)


@pytest.mark.parametrize("step", [BESIDE[0], BESIDE[5], ROUTERS[1], CODED[1]], ids=str)
def test_every_allocation_is_the_real_one(step):
    allocates_as_real(step)


@pytest.mark.sample(3)
@pytest.mark.parametrize("step", [*on_cuda(BESIDE[1::3] + ROUTERS[::3])], ids=str)
def test_the_cuda_graph_is_the_traced_one(step):
    run = step.run.replace(backend="cuda", micro_batches=1)
    recipe = "autocast" if step.precision.startswith("autocast") else step.precision
    real, found = trace_run(step.model, recipe, run), simulate(step.model, recipe, run)
    assert found.held == real.held
    assert found.peak.bytes == real.peak


def test_autograd_keeps_the_experts_of_every_layer_once_more():
    """The sum of weight and product, as large as all experts, once a layer."""
    config = {"model_type": "qwen3_moe", "num_hidden_layers": 3, "hidden_size": 32}
    config |= {"num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 61, "head_dim": 8}
    config |= {"num_experts": 16, "num_experts_per_tok": 1, "moe_intermediate_size": 48}
    config |= {"intermediate_size": 64}
    step = Question(config, "fp32", Run.cpu(batch=1, tokens=4, lora=Lora(1, BOTH)))
    attention = step.replace(lora=Lora(1, ("q", "v")))
    experts = 16 * 3 * 48 * 32 * 4
    inputs = 4 * 4 * (32 + 48)  # of 4 rows, which the gradients of weights ask for
    everywhere = step.replace(lora=Lora(1, ("q", "v", *BOTH)))
    more = simulated(everywhere).rows["activations"] - simulated(attention).rows["activations"]
    assert more == 3 * (experts + inputs)
    written = written_out(step.run.lora, step.model, "fp32")
    assert written == 3 * experts
    again = simulated(step.replace(checkpoint="block"))
    assert again.rows["activations"] < experts
    assert again.peak.bytes < simulated(step).peak.bytes - experts


@pytest.mark.parametrize("family", MIXTURES)
def test_transformers_own_loading_leaves_experts_as_they_are(family, tmp_path):
    """from_pretrained with load_in_4bit: what becomes codes, name by name."""
    with quiet():
        pytest.importorskip("bitsandbytes")
        import torch
        import transformers
    (step,) = filled(13, (family,))
    settings = {"pad_token_id": None, **step.config}
    with quiet():
        config = transformers.AutoConfig.for_model(**settings)
        made = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
        made.save_pretrained(tmp_path)
        how = transformers.BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16
        )
        loaded = transformers.AutoModelForCausalLM.from_pretrained(
            tmp_path, quantization_config=how, dtype=torch.bfloat16
        )
    kinds = {name: type(p).__name__ for name, p in loaded.named_parameters()}
    coded = [name for name, kind in kinds.items() if kind == "Params4bit"]
    assert len(coded) == sum(tensor.copies for tensor in coded_layers(step.model).values())
    stacked = {name: p for name, p in loaded.named_parameters() if p.dim() == 3}
    assert len(stacked) == 2 * step.model.mixture_layers
    assert {p.dtype for p in stacked.values()} == {torch.bfloat16}
    with quiet():
        from peft import prepare_model_for_kbit_training

        prepare_model_for_kbit_training(loaded)
    assert {p.dtype for p in stacked.values()} == {torch.float32}


@pytest.mark.parametrize("step", [BESIDE[0], BESIDE[6], ROUTERS[4]], ids=str)
def test_peft_counts_as_many_trained_parameters(step):
    with quiet():
        import transformers

        config = transformers.AutoConfig.for_model(**{"pad_token_id": None, **step.config})
        module = with_peft(
            transformers.AutoModelForCausalLM.from_config(config), step.model, step.run
        )
    trained = [p.numel() for p in module.parameters() if p.requires_grad]
    assert sum(trained) == step.run.lora.parameter_count(step.model)


def test_qlora_of_qwen3_30b_a3b_weighs_its_experts_in_full():
    model, lora = Model.preset("qwen3-30b-a3b"), Lora(16, ("q", "k", "v", "out"), "nf4")
    experts = 48 * 128 * 3 * 768 * 2048
    assert lora.base_bytes(model, "bf16") > 2 * experts
    assert lora.base_bytes(model, "fp32") > 4 * experts
    found = simulate(model, Recipe.named("bf16"), Run(tokens=16, lora=lora))
    assert found.rows["weights"] > 2 * experts


@pytest.mark.parametrize(
    ("precision", "checkpoint", "family"),
    [("bf16", "none", "qwen3_moe"), ("fp32", "block", "mixtral"), ("autocast", "none", "gpt_oss")],
)
def test_trainers_step_is_the_simulated_one(precision, checkpoint, family, tmp_path):
    config = {"model_type": family, "num_hidden_layers": 2, "hidden_size": 32, "vocab_size": 61}
    config |= {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8}
    config |= {"num_experts_per_tok": 2, "intermediate_size": 48, "moe_intermediate_size": 48}
    config["num_experts" if family == "qwen3_moe" else "num_local_experts"] = 6
    how = {"attention": "eager"} if family == "gpt_oss" else {}
    run = Run.cpu(batch=2, tokens=8, loop="trainer", checkpoint=checkpoint, **how)
    run = run.replace(lora=Lora(2, ("q", *BOTH)))
    derived = simulate(Model.from_config(config), precision, run)
    assert highest(precision, run, tmp_path, config) == derived.peak.bytes
