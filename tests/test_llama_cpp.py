"""llama.cpp: weights and cache of a GGUF file, against its own start-up logs and its own sizes."""

import json

import pytest

from memlab import Model
from memlab.cli import main
from memlab.engines.apple import SOURCES, mac, macs
from memlab.engines.llama_cpp import (
    BLOCKS,
    FILES,
    LlamaCpp,
    file_bytes,
    loaded,
    slot_cache,
    type_of,
)
from memlab.lab import gguf
from memlab.units import GiB, MiB

LLAMA = Model.preset("llama-3-8b")
# "CUDA0 buffer size", "CPU buffer size", "KV self size" of Llama 3 8B in MiB, as logs print them.
# Source      logs in public repositories: "llm_load_tensors: CPU buffer size = 281.81 MiB,
#             CUDA0 buffer size = 4403.49 MiB", and 4156.00 (4155.99) with Q4_0
LOGS = [("Q4_K_M", 4403.49, 281.81), ("Q4_0", 4155.99, 281.81)]
# tools/quantize/quantize.cpp, QUANT_OPTIONS: GiB of the file of Llama-3-8B.
SIZES = {"Q4_0": 4.34, "Q4_K_S": 4.37, "Q4_K_M": 4.58, "Q5_K_S": 5.21, "Q5_K_M": 5.33}
SIZES |= {"Q6_K": 6.14, "Q8_0": 7.96}


@pytest.mark.parametrize(("file", "gpu", "cpu"), LOGS)
def test_the_weights_are_those_of_a_start_up_log(file, gpu, cpu):
    mine = [size / MiB for size in file_bytes(LLAMA, file)]
    assert mine == pytest.approx([gpu, cpu], abs=0.01)


@pytest.mark.parametrize("file", SIZES)
def test_a_file_is_as_large_as_llama_quantize_says(file):
    # It counts the tokenizer too, some 7 MiB, and rounds down or up.
    assert sum(file_bytes(LLAMA, file)) / GiB == pytest.approx(SIZES[file], abs=0.015)


def test_the_cache_is_that_of_a_start_up_log():
    assert slot_cache(LLAMA, 8192, "f16") == 1024 * MiB  # KV self size = 1024.00 MiB
    assert slot_cache(LLAMA, 512, "f16") == 64 * MiB  # KV buffer size = 64.00 MiB
    assert slot_cache(LLAMA, 8192, "q8_0") == 544 * MiB
    assert slot_cache(LLAMA, 8100, "f16") == slot_cache(LLAMA, 8192, "f16")  # padded to 256


def test_blocks_are_those_of_the_chapter_on_files():
    for kind, (_, values, parts) in gguf.KINDS.items():
        assert BLOCKS[kind] == (values, sum(parts.values()))
    mixed = gguf.model_bytes(LLAMA, "Q4_K", "Q4_K", more="Q6_K")
    head = LLAMA.vocab * LLAMA.d_model
    mixed += gguf.tensor_bytes(head, "Q6_K") - gguf.tensor_bytes(head, "Q4_K")
    assert sum(file_bytes(LLAMA, "Q4_K_M")) == mixed


def test_a_tied_head_is_on_the_gpu_in_the_type_of_a_head_and_the_input_stays_with_the_cpu():
    small = Model.preset("llama-3.2-1b")
    embedding = next(t for t in small.tensors() if t.name == "embedding")
    assert type_of(small, embedding, 0, "Q4_K_M") == "Q6_K"
    gpu, host = file_bytes(small, "Q4_K_M")
    assert host == embedding.numel // 256 * 210 and gpu > host


def test_rows_that_fill_no_block_fall_back_as_llama_quantize_does():
    narrow = Model.preset("qwen2.5-0.5b")  # D=896 is no multiple of 256
    kinds = {t.name: type_of(narrow, t, 0, "Q4_K_M") for t in narrow.tensors()}
    assert kinds["layers.attention.q"] == "Q5_0" and kinds["layers.attention.v"] == "Q8_0"
    assert kinds["layers.feed_forward.down"] == "Q6_K"  # F=4864 is one
    assert kinds["layers.attention_norm"] == "F32"


def test_slots_share_what_is_left_and_each_is_as_large():
    found = loaded(LLAMA, LlamaCpp(context=8192, slots=4), on="RTX 4090")
    rows = {row.term: row.derived for row in found.ledger.rows}
    assert rows["kv_cache"] == 4 * found.slot == 4096 * MiB
    assert found.starts and found.most == found.available // found.slot
    assert not loaded(LLAMA, LlamaCpp(context=8192, slots=found.most + 1), on="RTX 4090").starts


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["deepseek-v3"], "latent"),
        (["gpt-oss-20b"], "MXFP4"),
        (["gemma-2-9b"], "windows"),
        (["llama-3-8b", "--quantization", "IQ2_XS"], "IQ2_XS"),
        (["llama-3-8b", "--quantization", "awq"], "Q4_K_M"),
        (["llama-3-8b", "--kv-dtype", "fp8"], "q8_0"),
        (["llama-3-8b", "--max-model-len", "9000"], "8192"),
        (["llama-3-8b", "--gpu-memory-utilization", "0.9"], "--gpu-memory-utilization"),
        (["llama-3-8b", "--tensor-parallel", "2"], "--tensor-parallel"),
        (["llama-3-8b", "--precision", "fp16"], "--precision"),
        (["llama-3-8b", "--max-num-seqs", "4"], "--max-num-seqs"),
        (["llama-3-8b", "--shared-prefix", "4"], "--shared-prefix"),
    ],
)
def test_what_is_not_counted_or_not_used_is_refused_by_name(words, says, capsys):
    assert main(["serve", *words, "--engine", "llama.cpp", "--on", "RTX 4090"]) == 2
    assert says in capsys.readouterr().err


def test_parallel_is_of_llama_cpp_alone(capsys):
    assert main(["serve", "llama-3-8b", "--on", "RTX 4090", "--parallel", "4"]) == 2
    assert "--parallel 4" in capsys.readouterr().err


def test_the_shell_answers(capsys):
    words = ["serve", "llama-3-8b", "--engine", "llama.cpp", "--on", "RTX 4090", "--parallel", "4"]
    assert main(words) == 0
    told = capsys.readouterr().out
    assert "4,617,396" in told and "compute buffer" in told and "281.8 MiB" in told
    assert main([*words, "--json"]) == 0
    read = json.loads(capsys.readouterr().out)
    assert read["rows"]["kv_cache"] == 4096 * MiB and read["engine"]["file"] == "Q4_K_M"
    assert read["sequences"] == loaded(LLAMA, LlamaCpp(slots=4), on="RTX 4090").most
    assert main([*words[:-1], "40"]) == 1
    assert "does not start" in capsys.readouterr().out
    assert sorted(FILES) == sorted(
        ["Q4_0", "Q4_K_S", "Q4_K_M", "Q5_K_S", "Q5_K_M", "Q6_K", "Q8_0", "F16", "BF16"]
    )


def test_apples_memory_is_what_a_log_of_metal_says_and_has_no_context_of_cuda(capsys):
    assert [card.usable / MiB for card in macs()] == pytest.approx(
        [5461.34, 10922.67, 21845.34, 49152.0, 73728.0], abs=0.01
    )
    assert {card.marketed for card in macs()} == set(SOURCES)
    for card in macs():  # two thirds, or three quarters
        assert card.usable / (card.marketed * GiB) == pytest.approx(0.7, abs=0.051)
    there = loaded(LLAMA, LlamaCpp(), on="apple 16GB")
    weights = file_bytes(LLAMA, "Q4_K_M")[0]
    assert (there.device, there.available) == ("Apple 16GB", mac("Apple 16GB").usable - weights)
    words = ["serve", "llama-3-8b", "--engine", "llama.cpp", "--on", "Apple 16GB"]
    assert main(words) == 0
    assert main(["fit", "gpt2", "--tokens", "16", "--on", "Apple 16GB"]) == 2
    assert "Apple 16GB" in capsys.readouterr().err
