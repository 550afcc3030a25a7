"""Every parameter tensor of a Model against what transformers builds from the same config."""

import random
import warnings
from collections import Counter

import pytest
import torch
from mixtures import MIXTURES, experts

from memlab.families import REQUIRED, config_types, record_of
from memlab.model import Model, latent, mixtures, presets

HF_FAMILIES = config_types()
# Shapes of published models, with the number of parameters that each is known by.
PUBLISHED = {
    "gpt2-xl": (
        {"model_type": "gpt2", "n_layer": 48, "n_embd": 1600, "n_head": 25, "vocab_size": 50257},
        1_557_611_200,
    ),
    "opt-350m": (  # embeddings narrower than the model, norms after the blocks
        {
            "model_type": "opt",
            "num_hidden_layers": 24,
            "hidden_size": 1024,
            "num_attention_heads": 16,
            "ffn_dim": 4096,
            "vocab_size": 50272,
            "word_embed_proj_dim": 512,
            "do_layer_norm_before": False,
        },
        331_196_416,
    ),
    "pythia-70m": (
        {
            "model_type": "gpt_neox",
            "num_hidden_layers": 6,
            "hidden_size": 512,
            "num_attention_heads": 8,
            "intermediate_size": 2048,
            "vocab_size": 50304,
        },
        70_426_624,
    ),
    "gemma-2b": (  # one key/value head
        {
            "model_type": "gemma",
            "num_hidden_layers": 18,
            "hidden_size": 2048,
            "num_attention_heads": 8,
            "num_key_value_heads": 1,
            "head_dim": 256,
            "intermediate_size": 16384,
            "vocab_size": 256000,
        },
        2_506_172_416,
    ),
    "mistral-7b": (
        {
            "model_type": "mistral",
            "num_hidden_layers": 32,
            "hidden_size": 4096,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "intermediate_size": 14336,
            "vocab_size": 32000,
        },
        7_241_732_096,
    ),
    "qwen3-235b-a22b": (
        {
            "model_type": "qwen3_moe",
            "num_hidden_layers": 94,
            "hidden_size": 4096,
            "num_attention_heads": 64,
            "num_key_value_heads": 4,
            "head_dim": 128,
            "intermediate_size": 12288,
            "moe_intermediate_size": 1536,
            "num_experts": 128,
            "num_experts_per_tok": 8,
            "vocab_size": 151936,
        },
        235_093_634_560,
    ),
    "mixtral-8x7b": (
        {
            "model_type": "mixtral",
            "num_hidden_layers": 32,
            "hidden_size": 4096,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "intermediate_size": 14336,
            "num_local_experts": 8,
            "num_experts_per_tok": 2,
            "vocab_size": 32000,
        },
        46_702_792_704,
    ),
    "olmoe-1b-7b": (
        {
            "model_type": "olmoe",
            "num_hidden_layers": 16,
            "hidden_size": 2048,
            "num_attention_heads": 16,
            "num_key_value_heads": 16,
            "intermediate_size": 1024,
            "num_experts": 64,
            "num_experts_per_tok": 8,
            "vocab_size": 50304,
        },
        6_919_161_856,
    ),
    "qwen1.5-moe-a2.7b": (
        {
            "model_type": "qwen2_moe",
            "num_hidden_layers": 24,
            "hidden_size": 2048,
            "num_attention_heads": 16,
            "num_key_value_heads": 16,
            "intermediate_size": 5632,
            "moe_intermediate_size": 1408,
            "shared_expert_intermediate_size": 5632,
            "num_experts": 60,
            "num_experts_per_tok": 4,
            "vocab_size": 151936,
        },
        14_315_784_192,
    ),
    "deepseek-v2-lite": (  # latent attention
        {
            "model_type": "deepseek_v2",
            "num_hidden_layers": 27,
            "hidden_size": 2048,
            "num_attention_heads": 16,
            "q_lora_rank": None,
            "kv_lora_rank": 512,
            "qk_nope_head_dim": 128,
            "qk_rope_head_dim": 64,
            "v_head_dim": 128,
            "intermediate_size": 10944,
            "moe_intermediate_size": 1408,
            "n_routed_experts": 64,
            "n_shared_experts": 2,
            "num_experts_per_tok": 6,
            "first_k_dense_replace": 1,
            "vocab_size": 102400,
        },
        15_706_484_224,
    ),
    "deepseek-v3": (  # the corrections of its routers, 58 · 256 numbers more, are buffers
        {
            "model_type": "deepseek_v3",
            "num_hidden_layers": 61,
            "hidden_size": 7168,
            "num_attention_heads": 128,
            "num_key_value_heads": 128,
            "q_lora_rank": 1536,
            "kv_lora_rank": 512,
            "qk_nope_head_dim": 128,
            "qk_rope_head_dim": 64,
            "v_head_dim": 128,
            "intermediate_size": 18432,
            "moe_intermediate_size": 2048,
            "n_routed_experts": 256,
            "n_shared_experts": 1,
            "num_experts_per_tok": 8,
            "first_k_dense_replace": 3,
            "vocab_size": 129280,
        },
        671_026_419_200 - 58 * 256,
    ),
    "glm-4.5-air": (
        {
            "model_type": "glm4_moe",
            "num_hidden_layers": 46,
            "hidden_size": 4096,
            "num_attention_heads": 96,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "attention_bias": True,
            "intermediate_size": 10944,
            "moe_intermediate_size": 1408,
            "n_routed_experts": 128,
            "n_shared_experts": 1,
            "num_experts_per_tok": 8,
            "vocab_size": 151552,
        },
        106_852_245_504,
    ),
    "gpt-oss-20b": (
        {
            "model_type": "gpt_oss",
            "num_hidden_layers": 24,
            "hidden_size": 2880,
            "num_attention_heads": 64,
            "num_key_value_heads": 8,
            "head_dim": 64,
            "intermediate_size": 2880,
            "num_local_experts": 32,
            "num_experts_per_tok": 4,
            "vocab_size": 201088,
        },
        20_914_757_184,
    ),
    "qwen2.5-0.5b": (
        {
            "model_type": "qwen2",
            "num_hidden_layers": 24,
            "hidden_size": 896,
            "num_attention_heads": 14,
            "num_key_value_heads": 2,
            "intermediate_size": 4864,
            "vocab_size": 151936,
            "tie_word_embeddings": True,
        },
        494_032_768,
    ),
}

# Parameters as the hub's page of each repository counts them in its safetensors files.
PRESET_COUNTS = {
    "gpt2": 124_439_808,
    "tinyllama-1.1b": 1_100_048_384,
    "llama-2-7b": 6_738_415_616,
    "llama-2-13b": 13_015_864_320,
    "llama-2-70b": 68_976_648_192,
    "llama-3-8b": 8_030_261_248,
    "llama-3-70b": 70_553_706_496,
    "llama-3.1-405b": 405_853_388_800,
    "llama-3.2-1b": 1_235_814_400,
    "llama-3.2-3b": 3_212_749_824,
    "mistral-7b-v0.1": 7_241_732_096,
    "mistral-7b-v0.3": 7_248_023_552,
    "mistral-nemo-12b": 12_247_782_400,
    "mistral-small-24b": 23_572_403_200,
    "qwen2.5-0.5b": 494_032_768,
    "qwen2.5-1.5b": 1_543_714_304,
    "qwen2.5-3b": 3_085_938_688,
    "qwen2.5-7b": 7_615_616_512,
    "qwen2.5-14b": 14_770_033_664,
    "qwen2.5-32b": 32_763_876_352,
    "qwen2.5-72b": 72_706_203_648,
    "qwen3-0.6b": 596_049_920,
    "qwen3-1.7b": 1_720_574_976,
    "qwen3-4b": 4_022_468_096,
    "qwen3-8b": 8_190_735_360,
    "qwen3-14b": 14_768_307_200,
    "qwen3-32b": 32_762_123_264,
    "gemma-2b": 2_506_172_416,
    "gemma-7b": 8_537_680_896,
    "smollm2-135m": 134_515_008,
    "smollm2-360m": 361_821_120,
    "smollm2-1.7b": 1_711_376_384,
    "pythia-160m": 162_322_944,
    "pythia-1.4b": 1_414_647_808,
    "pythia-6.9b": 6_857_302_016,
    "pythia-12b": 11_846_072_320,
    "opt-125m": 125_239_296,
    "opt-1.3b": 1_315_758_080,
    "opt-6.7b": 6_658_473_984,
    "gpt2-medium": 354_823_168,
    "gpt2-large": 774_030_080,
    "gpt2-xl": 1_557_611_200,
    "phi-3-mini-4k": 3_821_079_552,
    "phi-4": 14_659_507_200,
    "olmo-2-1b": 1_484_916_736,
    "olmo-2-7b": 7_298_617_344,
    "olmo-2-13b": 13_716_198_400,
    "smollm3-3b": 3_075_098_624,
    "glm-4-9b": 9_400_279_040,
    "starcoder2-3b": 3_030_371_328,
    "gemma-2-2b": 2_614_341_888,
    "gemma-2-9b": 9_241_705_984,
    "gemma-2-27b": 27_227_128_320,
    "gemma-3-1b": 999_885_952,
    "command-r7b": 8_028_033_024,
    "mixtral-8x7b": 46_702_792_704,
    "mixtral-8x22b": 140_620_634_112,
    "qwen1.5-moe-a2.7b": 14_315_784_192,
    "qwen3-30b-a3b": 30_532_122_624,
    "qwen3-235b-a22b": 235_093_634_560,
    "olmoe-1b-7b": 6_919_161_856,
    "gpt-oss-20b": 20_914_757_184,
    "gpt-oss-120b": 116_829_156_672,
    "deepseek-v2-lite": 15_706_484_224,
    "deepseek-v2": 235_741_434_880,
    # Of the text alone: the published 109B and 400B count what sees pictures, too.
    "llama-4-scout": 107_769_861_120,
    "llama-4-maverick": 400_711_848_960,
    # The hub counts 685B: with the module that predicts one token more and the scales of fp8.
    "deepseek-v3": 671_026_419_200 - 58 * 256,
}


@pytest.fixture(scope="module")
def transformers():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its imports, not ours
        import transformers
    transformers.logging.set_verbosity_error()
    return transformers


def build(transformers, config):
    """The real configuration and the real model, without memory."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        real = transformers.AutoConfig.for_model(**config)
        with torch.device("meta"):
            return real, transformers.AutoModelForCausalLM.from_config(real)


def component(name: str) -> str:
    """The component that a parameter of transformers belongs to, by its name."""
    for part, marks in {
        "norm": ["norm", ".ln_"],
        "other": ["project_in", "project_out"],
        "positions": ["wpe", "embed_positions"],
        "attention": ["attn.", "attention."],
        "feed_forward": ["mlp.", "fc1.", "fc2.", "feed_forward."],
        "lm_head": ["lm_head"],
        "embedding": ["wte", "embed_tokens", "embed_in"],
    }.items():
        if any(mark in name for mark in marks):
            return part
    raise AssertionError(f"no component for {name}")


def real_tensors(model: torch.nn.Module) -> Counter:
    """(component, shape, is it a matmul layer's weight) of each parameter, tied ones once."""
    matmuls = {
        id(module.weight)
        for module in model.modules()
        if {base.__name__ for base in type(module).__mro__} & {"Linear", "Conv1D"}
    }
    tables = {id(m.weight) for m in model.modules() if isinstance(m, torch.nn.Embedding)}
    return Counter(
        (component(name), tuple(p.shape), id(p) in matmuls - tables)
        for name, p in model.named_parameters()
    )


def our_tensors(model: Model) -> Counter:
    tensors: Counter = Counter()
    for t in model.tensors():
        tensors[(t.component, t.shape, t.linear)] += t.copies
    return tensors


def check_against(model: Model, real: torch.nn.Module) -> None:
    assert our_tensors(model) == real_tensors(real)
    by_component: Counter = Counter(dict.fromkeys(model.parameters(), 0))
    for name, p in real.named_parameters():
        by_component[component(name)] += p.numel()
    assert model.parameters() == dict(by_component)
    assert model.parameter_count == sum(p.numel() for p in real.parameters())


def random_config(family: str, seed: int) -> dict:
    """A small config with some of the optional keys, the same for the same seed."""
    rng = random.Random(f"{family} {seed}")
    some = rng.random
    known = record_of(family)
    shape = known.shape
    # Where num_key_value_heads is left out, transformers has one number for models of all sizes.
    unsaid_kv = shape["kv_heads"][1] if "kv_heads" in shape else None
    leave_out_kv = some() < 0.3
    heads = 2 * unsaid_kv if unsaid_kv and leave_out_kv else rng.choice([1, 2, 4, 6, 8])
    width = heads * rng.choice([2, 4, 6, 10])
    sizes = {"layers": rng.randint(1, 4), "d_model": width, "heads": heads}
    sizes |= {"vocab": rng.randint(8, 70)}
    wide = rng.choice([3 * width, 4 * width, rng.randint(5, 90)])
    if not leave_out_kv:
        sizes["kv_heads"] = rng.choice([k for k in range(1, heads + 1) if heads % k == 0])
    # Each optional key is there or not, and then either value.
    optional = {key: [True, False] for key, usual in shape.values() if isinstance(usual, bool)}
    for field, values in (
        ("d_ff", [wide]),
        ("head_dim", [2, 6, 16]),
        ("positions", [7, 33]),
        ("embed_dim", [width // 2, width + 3]),
    ):
        if field in shape and shape[field][1] is REQUIRED:
            sizes[field] = rng.choice(values)
        elif field in shape and (field != "head_dim" or not known.mixture):
            optional[shape[field][0]] = values
    optional |= {
        "opt": {"_remove_final_layer_norm": [True, False]},
        "gpt_neox": {"use_parallel_residual": [True, False]},
    }.get(family, {})
    config = known.config(sizes)
    config |= {key: rng.choice(those) for key, those in optional.items() if some() < 0.6}
    if family in MIXTURES:
        config |= experts(rng, config | {"model_type": family}, unit=3)
    # Padding tokens beyond a small vocabulary are refused by torch.
    return {"model_type": family, **config, "pad_token_id": None}


SEEDS = range(4)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("family", HF_FAMILIES)
def test_random_configs_of_every_family(transformers, tmp_path, family, seed):
    config = random_config(family, seed)
    real_config, real = build(transformers, config)
    check_against(Model.from_config(config), real)
    # What transformers itself writes to disk says the same.
    real_config.save_pretrained(tmp_path / "saved")
    check_against(Model.from_config(tmp_path / "saved"), real)


def test_the_random_configs_reach_the_corners():
    drawn = [Model.from_config(random_config(f, s)) for f in HF_FAMILIES for s in SEEDS]
    assert {m.tied for m in drawn} == {m.qkv_bias for m in drawn} == {True, False}
    assert any(1 < m.kv_heads < m.heads for m in drawn), "GQA"
    assert any(1 == m.kv_heads < m.heads for m in drawn), "MQA"
    assert any(m.head_dim * m.heads != m.d_model for m in drawn), "head width of its own"
    assert any(m.embed_dim != m.d_model for m in drawn), "projected embeddings"
    assert any(not m.norm_affine for m in drawn) and any(not m.final_norm for m in drawn)


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_configs(transformers, name):
    config, count = PUBLISHED[name]
    model = Model.from_config(config)
    check_against(model, build(transformers, config)[1])
    assert model.parameter_count == count


@pytest.mark.sample(36)
@pytest.mark.parametrize("name", [n for n in presets() if n != "nanochat-d26"])
def test_presets(transformers, name):
    model = Model.preset(name)
    config = {"model_type": model.family, "pad_token_id": None}
    for field, (key, _) in record_of(model.family).shape.items():
        config[key] = getattr(model, field)
    config |= mixtures.settings(model) | latent.settings(model)
    check_against(model, build(transformers, config)[1])
    assert model.parameter_count == PRESET_COUNTS.get(name, model.parameter_count)
    made = Model.from_config(config)
    named = {"name": name, "config": model.config, "published": model.published}
    assert model == made.replace(**named)
