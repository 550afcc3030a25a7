"""Packed weights: the formula against the modules of real libraries, and against files' sizes."""

import json

import pytest
import torch

from memlab.cli import main
from memlab.engines import Engine, checkpoint, pool, start_up
from memlab.engines.kept import kept_tensors, kept_weights, rotary_table
from memlab.engines.quantized import ONLY_EXPERTS, Quantized, kernel_on, published
from memlab.files import quantization_config
from memlab.model import Model
from memlab.terms.packed import FORMATS, LAYOUTS, packed, parts
from memlab.units import GiB


def held(tensors):
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


@pytest.mark.parametrize(("outputs", "inputs"), [(256, 384), (200, 130), (128, 64), (64, 8192)])
@pytest.mark.parametrize("double", [False, True])
def test_nf4_is_what_bitsandbytes_keeps(outputs, inputs, double):
    import bitsandbytes

    layer = bitsandbytes.nn.Linear4bit(
        inputs, outputs, bias=False, quant_type="nf4", compress_statistics=double
    ).to("cpu")
    layer.weight.data.numel()
    state = layer.weight.quant_state
    kept = [layer.weight.data, state.absmax, state.code]
    if double:
        kept += [state.offset, state.state2.absmax, state.state2.code]
    format = "nf4-dq" if double else "nf4"
    assert packed(outputs, inputs=inputs, format=format) == held(kept)


def test_eight_bits_are_what_bitsandbytes_keeps():
    import bitsandbytes

    layer = bitsandbytes.nn.Linear8bitLt(384, 256, bias=False, has_fp16_weights=False).to("cpu")
    layer(torch.zeros(2, 384, dtype=torch.float16))
    kept = layer.state.CB, layer.state.SCB
    assert packed(256, inputs=384, format="int8-channel") == held(kept)


@pytest.mark.parametrize(("outputs", "inputs"), [(256, 384), (576, 7168), (100, 130)])
@pytest.mark.parametrize("block", [(128, 128), None])
def test_fp8_is_what_transformers_keeps(outputs, inputs, block):
    from transformers.integrations.finegrained_fp8 import FP8Linear

    layer = FP8Linear(inputs, outputs, block_size=block)
    format = "fp8" if block is None else "fp8-block"
    assert packed(outputs, inputs=inputs, format=format) == held(layer.parameters())


def test_experts_in_mxfp4_are_what_transformers_keeps():
    from transformers import GptOssConfig
    from transformers.integrations.mxfp4 import Mxfp4GptOssExperts

    config = GptOssConfig(num_local_experts=4, intermediate_size=96, hidden_size=64)
    experts = Mxfp4GptOssExperts(config)
    codes = held([experts.gate_up_proj, experts.down_proj])
    made = 8 * packed(96, inputs=64, format="mxfp4") + 4 * packed(64, inputs=96, format="mxfp4")
    assert made == codes + codes // 16  # a scale of one byte for 32 values of half a byte


# metadata.total_size of model.safetensors.index.json: in openai's repositories, and in an index
# that names 80 layers of qweight in nine files.
FILES = [
    ("gpt-oss-20b", "mxfp4", 13_761_264_768),
    ("gpt-oss-120b", "mxfp4", 65_248_815_744),
    ("llama-3.1-70b", "awq", 39_767_785_472),
]


@pytest.mark.parametrize(("name", "format", "size"), FILES)
def test_a_checkpoint_is_as_large_as_its_files(name, format, size):
    model = Model.preset(name)
    how = published(model) or Quantized(format=format)
    assert how.format == format
    assert checkpoint(model, how) == size


# Model, format, ranks, card, "Model loading took" in GiB as printed, its last digit, where.
PLANNER = "llm-d-incubation/llm-d-planner@e50305af, docs/empirical-vllm-memory-results.md"
GUARDKIT = "guardkit/guardkit@703734ee, docs/reviews"
LOGS = [
    ("llama-3.1-70b", "fp8-channel", 1, "H100 80GB", 67.72, 0.01, PLANNER),  # 3.3, of this shape
    ("llama-3.1-70b", "fp8-channel", 2, "H100 80GB", 33.88, 0.01, PLANNER),
    ("gpt-oss-20b", "mxfp4", 1, "H100 80GB", 13.47, 0.01, PLANNER),
    ("gpt-oss-120b", "mxfp4", 1, "H100 80GB", 64.38, 0.03, PLANNER),  # 20 MiB apart
    ("gpt-oss-20b", "mxfp4", 1, "A100 80GB", 13.72, 0.01, "myoceane.fr, ai-vllm-a100-gemma-4"),
    ("gpt-oss-120b", "mxfp4", 1, "marlin", 65.9651, 0.001, "vllm-project/vllm/issues/23278"),
    ("qwen3-30b-a3b", "fp8-block", 1, "GB10", 29.0435, 0.001, GUARDKIT),
]


@pytest.mark.parametrize(("name", "format", "ranks", "card", "seen", "digit", "where"), LOGS)
def test_a_server_loads_what_its_log_said(name, format, ranks, card, seen, digit, where):
    model = Model.preset(name)
    how = published(model) or Quantized(format=format)
    kept = kept_weights(model, ranks, "bf16", how, kernel_on(card))
    assert abs((kept + rotary_table(model, "bf16")) / GiB - seen) <= digit, where


def test_with_expandable_segments_a_block_is_no_larger_than_its_tensor():
    """15.2227 GiB for neuralmagic/Qwen2.5-14B-Instruct-FP8-dynamic on a GB10: the tensors' own sum.

    Blocks with the rests of their segments would be 15.389 GiB. What the log does not say is how
    that image configures the allocator. The checkpoint's config has 32,768 positions.
    """
    model = Model.preset("qwen2.5-14b").replace(positions=32768)
    tensors = kept_tensors(model, 1, "bf16", Quantized(format="fp8-channel"))
    assert (sum(tensors) + rotary_table(model, "bf16")) / GiB == pytest.approx(15.2227, abs=2e-4)


def test_symmetric_gptq_loses_its_zero_points_when_it_is_packed_anew():
    whole = parts(4096, inputs=4096, format="gptq")
    assert Quantized(format="gptq").kept(4096, 4096) == whole[:2]
    assert Quantized(format="gptq", act_order=True).kept(4096, 4096) == (*whole[:2], whole[3])
    assert Quantized(format="gptq", symmetric=False).kept(4096, 4096) == whole


def test_a_group_may_have_another_size_where_its_maker_lets_it():
    narrow = packed(512, inputs=1024, format="awq", group=32)
    assert narrow - packed(512, inputs=1024, format="awq") == 512 * (1024 // 32 - 8) * 5 // 2
    assert packed(512, inputs=1024, format="gptq", group=-1) < packed(
        512, inputs=1024, format="awq"
    )
    with pytest.raises(ValueError, match="group=32 beside fp8-block"):
        packed(512, inputs=1024, format="fp8-block", group=32)
    with pytest.raises(ValueError, match="no packed one; known: gptq"):
        packed(512, inputs=1024, format="q4_k_m")


def test_ranks_cut_between_groups_or_not_at_all():
    model = Model.preset("qwen2.5-7b")  # F = 18,944 is 148 groups of 128
    kept_weights(model, 4, "bf16", Quantized(format="awq"))
    model = Model.preset("qwen3-30b-a3b")  # experts of 768 inputs
    with pytest.raises(ValueError, match="cuts a packed matrix at 192, no multiple of the 128"):
        kept_weights(model, 4, "bf16", Quantized(format="fp8-block"))


CONFIGS = [
    ({"quant_method": "awq", "bits": 4, "group_size": 64}, Quantized(format="awq", group=64)),
    (
        {"quant_method": "gptq", "bits": 8, "group_size": 128, "sym": False, "desc_act": True},
        Quantized(format="gptq-int8", group=128, symmetric=False, act_order=True),
    ),
    (
        {"quant_method": "fp8", "weight_block_size": [128, 128], "modules_to_not_convert": []},
        Quantized(format="fp8-block"),
    ),
    ({"quant_method": "fp8"}, Quantized(format="fp8")),
    (
        {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]},
        Quantized(format="nvfp4"),
    ),
    (
        {
            "quant_method": "mxfp4",
            "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router"],
        },
        Quantized(format="mxfp4", keeps=ONLY_EXPERTS),
    ),
    (
        {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"},
        Quantized(format="nf4"),
    ),
    (
        {
            "quant_method": "compressed-tensors",
            "ignore": ["lm_head"],
            "config_groups": {
                "group_0": {
                    "targets": ["Linear"],
                    "weights": {"type": "float", "num_bits": 8, "strategy": "channel"},
                }
            },
        },
        Quantized(format="fp8-channel"),
    ),
]


@pytest.mark.parametrize(("said", "how"), CONFIGS)
def test_a_quantization_config_is_read(said, how):
    assert quantization_config.read(said, layers=4) == how


REFUSED = [
    ({"quant_method": "hqq"}, "quant_method='hqq' is not described; known: gptq"),
    ({"bits": 4}, "has no quant_method"),
    ({"quant_method": "modelopt", "quant_algo": "MIXED"}, "quant_algo='MIXED' is not described"),
    ({"quant_method": "gptq", "bits": 3}, "bits=3 of gptq"),
    ({"quant_method": "awq", "bits": 4, "group_size": 0}, "group_size=0"),
    ({"quant_method": "fp8", "weight_block_size": [64, 64]}, r"weight_block_size=\[64, 64\]"),
    (
        {"quant_method": "awq", "modules_to_not_convert": ["model.layers.3.self_attn"]},
        "leaves attention in 1 of 4 layers",
    ),
    (
        {"quant_method": "awq", "modules_to_not_convert": ["model.layers.3.mlp.down_proj"]},
        "leaves 'model.layers.3.mlp.down_proj' as it was",
    ),
    ({"quant_method": "awq", "modules_to_not_convert": "lm_head"}, "a list of modules is needed"),
    ({"quant_method": "compressed-tensors", "config_groups": {}}, "config_groups has 0 groups"),
]


@pytest.mark.parametrize(("said", "why"), REFUSED)
def test_what_a_quantization_config_may_not_say_is_refused_by_name(said, why):
    with pytest.raises(ValueError, match=why):
        quantization_config.read(said, layers=4)


def test_every_layout_is_one_of_the_formats():
    assert set(LAYOUTS) < set(FORMATS)


def test_an_engine_loads_a_model_as_it_is_published():
    model = Model.preset("gpt-oss-20b")
    found = pool(model, Engine(max_model_len=8192), on="RTX 4090")
    assert found.starts
    assert start_up(found)[0] == "Model loading took 13.7195 GiB"
    whole = pool(model, Engine(max_model_len=8192, quantization="none"), on="RTX 4090")
    assert not whole.starts
    same = pool(model, Engine(quantization=published(model), max_model_len=8192), on="RTX 4090")
    assert same.ledger["weights"].derived == found.ledger["weights"].derived


def test_the_shell_reads_what_a_config_says_of_its_weights(tmp_path, capsys):
    config = {
        "model_type": "llama",
        "num_hidden_layers": 2,
        "hidden_size": 512,
        "intermediate_size": 1024,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 1024,
        "quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128},
    }
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    words = ["serve", str(path), "--on", "24 GiB"]
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["engine"]["quantization"] == "awq, groups of 128"
    assert main([*words, "--quantization", "fp8"]) == 2
    assert "the config says it already: awq" in capsys.readouterr().err
    assert main(["estimate", str(path), "--tokens", "64"]) == 2
    assert f"memlab serve {path} --on CARD" in capsys.readouterr().err


def test_mxfp4_by_its_name_packs_experts_alone():
    """As the repositories have it; of a dense model it would pack nothing, which is refused."""
    oss = Model.preset("gpt-oss-20b")
    one, other = (
        pool(oss, Engine(quantization=how, max_model_len=8192), on="H100 80GB").ledger["weights"]
        for how in (None, "mxfp4")
    )
    assert one.derived == other.derived
    with pytest.raises(ValueError, match="mxfp4 would pack nothing of qwen3-8b"):
        pool(Model.preset("qwen3-8b"), Engine(quantization="mxfp4"), on="H100 80GB")
