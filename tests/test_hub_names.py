"""Names of repositories: a preset of the same sizes, or none."""

import pytest

from memlab.cli import main, parser
from memlab.model import presets
from memlab.model.hub_names import found
from memlab.model.presets import HUB

# Repository: the preset whose layers, widths, heads, vocabulary and tied head its config.json has,
# and how it packs its matrices.
SAME_SHAPE = """
Qwen/Qwen2.5-7B-Instruct qwen2.5-7b
Qwen/Qwen2.5-Coder-32B-Instruct qwen2.5-32b
Qwen/Qwen2.5-7B-Instruct-AWQ qwen2.5-7b awq
Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4 qwen2.5-7b gptq
Qwen/Qwen2.5-7B-Instruct-GPTQ-Int8 qwen2.5-7b gptq-int8
Qwen/Qwen3-32B-FP8 qwen3-32b fp8-block
Qwen/Qwen3-8B-Base qwen3-8b
Qwen/Qwen3-4B-Instruct-2507 qwen3-4b
Qwen/Qwen3-Coder-30B-A3B-Instruct qwen3-30b-a3b
meta-llama/Meta-Llama-3-8B-Instruct llama-3-8b
meta-llama/Meta-Llama-3.1-70B-Instruct llama-3.1-70b
meta-llama/Llama-3.2-1B-Instruct llama-3.2-1b
meta-llama/Llama-2-7b-chat-hf llama-2-7b
TheBloke/Llama-2-7B-Chat-AWQ llama-2-7b awq
NousResearch/Meta-Llama-3.1-8B llama-3.1-8b
unsloth/llama-3-8b-bnb-4bit llama-3-8b nf4-dq
neuralmagic/Meta-Llama-3.1-8B-Instruct-FP8 llama-3.1-8b fp8
mistralai/Mistral-7B-Instruct-v0.3 mistral-7b-v0.3
mistralai/Mixtral-8x7B-Instruct-v0.1 mixtral-8x7b
mistralai/Mistral-Nemo-Instruct-2407 mistral-nemo-12b
google/gemma-2-9b-it gemma-2-9b
google/gemma-3-1b-it gemma-3-1b
deepseek-ai/DeepSeek-R1-Distill-Qwen-7B qwen2.5-7b
deepseek-ai/DeepSeek-R1-Distill-Qwen-32B qwen2.5-32b
deepseek-ai/DeepSeek-R1-Distill-Llama-8B llama-3.1-8b
deepseek-ai/DeepSeek-Coder-V2-Lite-Instruct deepseek-v2-lite
allenai/OLMo-2-1124-7B-Instruct olmo-2-7b
HuggingFaceTB/SmolLM2-1.7B-Instruct smollm2-1.7b
EleutherAI/pythia-1.4b-deduped pythia-1.4b
https://huggingface.co/Qwen/Qwen2.5-7B-Instruct qwen2.5-7b
"""
# Vocabulary, windows, positions by another factor, towers, a head of its own: other sizes.
OTHER = """
mistralai/Mixtral-8x22B-Instruct-v0.1 mistralai/Mistral-7B-Instruct-v0.2 Qwen/Qwen2.5-Math-7B
deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B Qwen/Qwen2.5-VL-7B-Instruct google/gemma-3-4b-it
Qwen/Qwen2.5-7B-Instruct-1M bartowski/Qwen2.5-7B-Instruct-GGUF THUDM/glm-4-9b-chat
microsoft/Phi-3-mini-128k-instruct nvidia/Llama-3.1-Nemotron-70B-Instruct-HF x/y ./Qwen2.5-7B
""".split()


@pytest.mark.parametrize("line", SAME_SHAPE.strip().split("\n"))
def test_a_name_of_the_same_shape(line):
    name, preset, *stored = line.split()
    what = found(name)
    assert (what.preset, what.stored, what.exact) == (preset, *(stored or [""]), False)
    assert what.told(name).startswith(f"{name}: the shape of {preset}")


def test_the_repository_of_a_preset_is_that_preset():
    for repository, preset in HUB.items():
        what = found(repository)
        assert (what.preset, what.exact) == (preset, True) and preset in presets()


@pytest.mark.parametrize("name", OTHER)
def test_another_shape_is_no_preset(name):
    assert found(name) is None


def test_the_mapping_is_printed(capsys):
    assert main(["estimate", "Qwen/Qwen2.5-0.5B-Instruct", "--precision", "bf16"]) == 0
    words, note = capsys.readouterr().out.rstrip().rsplit("\n", 1)
    assert note.startswith("Qwen/Qwen2.5-0.5B-Instruct: the shape of qwen2.5-0.5b;")
    assert main(["estimate", "qwen2.5-0.5b", "--precision", "bf16"]) == 0
    assert capsys.readouterr().out.rstrip() == words
    assert main(["estimate", "Qwen/Qwen2.5-0.5B", "--json"]) == 0
    out, err = capsys.readouterr()
    assert out[0] == "{" and err == "memlab: Qwen/Qwen2.5-0.5B: the preset qwen2.5-0.5b\n"


def test_packed_weights_are_served_and_not_trained(capsys):
    name, serve = "Qwen/Qwen2.5-7B-Instruct-AWQ", ["--on", "H100", "--max-model-len", "2048"]
    assert main(["serve", name, *serve]) == 0
    by_name = capsys.readouterr().out.rstrip().rsplit("\n", 1)[0]
    assert main(["serve", "qwen2.5-7b", *serve, "--quantization", "awq"]) == 0
    assert capsys.readouterr().out.rstrip() == by_name
    for words in (["estimate", name], ["serve", "unsloth/Qwen3-8B-unsloth-bnb-4bit", *serve]):
        with pytest.raises(SystemExit) as end:
            main(words)
        err = capsys.readouterr().err
        assert end.value.code == 2 and err.count("\n") == 1
        assert "`memlab serve" in err if words[0] == "estimate" else "config.json says" in err


@pytest.mark.parametrize(
    ("more", "base"),
    [([], "nf4-dq"), (["--lora-base", "nf4"], "nf4"), (["--lora-base=nf4"], "nf4")],
)
def test_a_packed_base_is_that_of_its_adapters(more, base):
    words = ["estimate", "unsloth/llama-3-8b-bnb-4bit", "--lora-rank", "16", *more]
    options = parser("estimate").parse_args(words)
    assert options.model == "llama-3-8b" and options.lora_base == base
