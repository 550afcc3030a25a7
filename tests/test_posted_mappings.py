"""Mappings of posted readings: LitGPT's own sums, what was traced, and a record of our own."""

import json
import warnings
from pathlib import Path
from random import Random

import code_key
import pytest
import torch
from posted import (
    litgpt,
    litgpt_adapter,
    litgpt_fsdp,
    litgpt_peak,
    own,
    peft_methods,
    readings,
    stored,
    traced,
)
from posted.answers import answers
from test_posted import is_whole

from memlab import Model
from memlab.files.records import FOLDER, records
from memlab.terms.lora import Lora


def test_a_record_of_memlab_is_a_file_of_this_very_form(tmp_path, monkeypatch):
    (record,) = records("cpu")
    found = json.loads(own.text(FOLDER / "cpu-x86_64.json"))
    for row in found["readings"]:
        is_whole(found, row)
    kept = [row for row in record.rows if row.predicted and row.found]
    assert len(found["readings"]) == len(kept) > 100
    (tmp_path / "memlab.json").write_text(own.text(FOLDER / "cpu-x86_64.json"), encoding="utf-8")
    monkeypatch.setattr(readings, "FOLDER", tmp_path)
    said = answers()
    assert [a.bytes for a in said] == [row.predicted for row in kept]
    assert [a.reading.bytes for a in said] == [row.found for row in kept]


def test_llama_adapter_keeps_what_litgpts_modules_keep(monkeypatch):
    """Counted at 8641822 on a CPU, saved tensors of four layers: 120 rows, width 64, four heads.

    The CPU attends to the prompts in the math kernel: 288 bytes a row of fp32 copies and scores in
    the place of a log-sum-exp. A norm's statistics are 2 bytes each, two of LayerNorm, one of
    RMSNorm. That commit's RMSNorm keeps 2 · D where it is in bf16 and frozen, 4 · D trained.
    """
    rows, D, F = 3 * 40, 64, 160
    shape = {"model_type": "llama", "hidden_size": D, "intermediate_size": F, "vocab_size": 512}
    shape |= {"num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 4}
    llama = Model.from_config(shape | {"max_position_embeddings": 64})
    monkeypatch.setitem(litgpt.SHAPES, "toy", (4, D, 4 * D, 4, 4, 512, 2, True))
    neox = litgpt.shape("toy")
    kernel = 288 - 4 * 4
    counted = {
        (neox, False): (252_960, kernel + 3 * 4),
        (neox, True): (1_478_880, 2 * kernel + 9 * 4),
        (llama, False): (452_160, kernel + 4 * 2 - 4 * 2 * D),
        (llama, True): (1_937_280, 2 * kernel + 8 * 2 - 8 * 4 * D - 2 * D),
    }
    for (model, second), (total, beside) in counted.items():
        assert rows * (litgpt_adapter.kept(model, False, second) + beside) == total


def test_the_tables_of_2023_want_llamas_norm_in_fp32():
    """In 16 bits, as the named commit has it, each norm keeps 2 · D less, 4 · D where trained."""
    lows = []
    for a in stored.stored():
        what = a.reading.what
        if a.reading.source == "litgpt-tables" and a.counted and "lora/llama-2" in a.reading.id:
            model = litgpt.shape(what["model"])
            less = 2 * 2 * model.d_model * model.layers * what["micro_batch"] * what["longest"]
            lows.append((a.bytes - less) / a.reading.bytes - 1)
    assert len(lows) == 7 and max(lows) < -0.03 and min(lows) > -0.08


def test_a_layer_of_litgpt_is_the_sum_of_what_its_modules_keep():
    """phi-2 with adapters on all: one norm, 2 · D; an input of 3 · D each for fused queries, keys
    and values, the output and the first matrix; 12 · D of attention as wide as D, whose inputs
    and values are one tensor; 2 · F, and 3 · F before the second matrix."""
    lora = {"r": 8, "dropout": 0.05} | dict.fromkeys(("q", "k", "v", "out", "mlp", "head"), True)
    phi = litgpt.shape("phi-2")
    D, F, heads, r = phi.d_model, phi.d_ff, phi.heads, 8
    kept = litgpt_peak.layer(phi, lora, nf4=False, tokens=512)
    assert kept == 23 * D + 5 * F + 4 * heads + 2 * r * (3 + 1 + 2)
    # bitsandbytes 0.42 keeps the fused matrix's input, and that of the second one, in 16 bits.
    assert litgpt_peak.layer(phi, lora, nf4=True, tokens=512) == kept + 2 * D + 2 * F
    assert litgpt_peak.adapters(phi, lora) == lora_count(phi, 8)
    assert litgpt_peak.logits(phi, 512, 512, lora, nf4=False) == 10 * 512 * phi.vocab
    assert litgpt_peak.logits(phi, 512, 512, {}, nf4=False) == 12 * 512 * phi.vocab
    wide = litgpt_peak.logits(phi, 512, 512, lora, nf4=True)
    assert wide == (4 + 2 * 3 / 4) * 512 * phi.vocab + 4 * phi.vocab * phi.d_model


def test_a_rank_of_litgpt_holds_all_gradients_until_the_last_micro_batch():
    """Gemma 2B on four: 2 · P of gradients in the place of a quarter, and the root three times."""
    gemma = litgpt.shape("gemma-2b")
    P, tables = gemma.parameter_count, 2 * gemma.vocab * gemma.d_model + gemma.d_model
    told = {"micro_batch": 1}
    held = dict(litgpt_fsdp.divided(gemma, told, 512, ranks=4, turns=4))
    logits = 4 * 512 * gemma.vocab
    assert held == {
        "gradients not divided": 2 * P - 2 * P // 4,
        "the root": 6 * tables,
        "logits": logits,
    }
    phi = litgpt.shape("phi-2")
    once = dict(litgpt_fsdp.divided(phi, told, 512, ranks=2, turns=1))
    assert once["a copy in AdamW"] == phi.parameter_count and "the root" not in once


def lora_count(model, rank):
    """Of adapters beside every linear layer and the head; queries, keys and values apart."""
    inside = Lora(rank, ("qkv", "out", "up", "down")).parameter_count(model)
    apart = 2 * rank * model.d_model * model.layers  # two more of A beside the fused matrix
    return inside + apart + rank * (model.d_model + model.vocab)


def test_a_recipe_s_own_file_says_how_many_devices_ran():
    """The rows of one recipe on one card and on four have one figure, and so has memlab."""
    found = {a.reading.id: a for a in stored.stored() if a.reading.source == "litgpt"}
    twice = [name for name in found if name.endswith("4xA10G")]
    pairs = [
        (found[name], found[name.replace("4xA10G", "1xA10G")])
        for name in twice
        if name.replace("4xA10G", "1xA10G") in found
    ]
    assert len(pairs) == 9
    assert all(a.bytes == b.bytes and a.reading.bytes == b.reading.bytes for a, b in pairs)


# Another draw for other code, the same one for the same code.
TRACER = Path(traced.ROOT, "src", "memlab", "measure", "trace.py")
QUICK = sorted(name for name in traced.kept() if not name.startswith("boft"))  # 20 s for that one
DRAWN = Random(code_key.key(TRACER)).sample(QUICK, 3)


@pytest.mark.parametrize("name", DRAWN)
def test_a_trace_of_peft_s_own_code_is_what_is_stored(name):
    found, some, host = traced.traced(name, traced.FEW)
    again = "python tools/posted --trace " + name
    assert [found.peak - host, some] == traced.kept()[name][::2], again


def test_a_buffer_of_peft_that_stays_on_the_host_is_no_byte_of_the_device():
    """The base is on the meta device, as it would be on a GPU: its adapters follow, boft_P not."""
    peft = pytest.importorskip("peft")
    transformers = pytest.importorskip("transformers")
    told = {"hidden_size": 64, "intermediate_size": 128, "vocab_size": 64, "num_hidden_layers": 1}
    config = transformers.LlamaConfig(num_attention_heads=4, num_key_value_heads=2, **told)
    with torch.device("meta"):
        base = transformers.LlamaForCausalLM(config)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # there is no CUDA to compile BOFT's kernel for
        model = peft.get_peft_model(base, peft.BOFTConfig())
    buffers = {name: b for name, b in model.named_buffers() if b.device.type == "cpu"}
    assert {name.rpartition(".")[2] for name in buffers} == set(traced.ON_HOST)
    assert all(p.device.type == "meta" for p in model.parameters())
    assert traced.on_host(model) == 2 * 4 * 64**2  # of queries and values, in fp32


def test_what_is_stored_of_traces_is_of_methods_that_are_told():
    assert set(traced.kept()) <= set(peft_methods.METHODS)
    assert set(peft_methods.SAME.values()) <= set(peft_methods.METHODS)
    methods = {r.what["method"] for r in readings.read() if r.source == "peft"}
    assert {*peft_methods.METHODS, *peft_methods.SAME} <= methods
    for few, more, some, others in traced.kept().values():
        assert 6 * 2**30 < few < more and 0 < some <= others
