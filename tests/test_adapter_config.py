"""An adapter_config.json: every field of LoraConfig, and the adapters that peft makes of it."""

import dataclasses
import json

import pytest
import torch
from real_steps import hugging_face, quiet

from memlab import Model, Run, estimate
from memlab.cli import main
from memlab.files import adapter_config
from memlab.files.adapter_config import read
from memlab.step import Lora

SHAPE = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 4, "vocab_size": 61}
SHAPE |= {"max_position_embeddings": 64}
LLAMA = {"model_type": "llama", **SHAPE, "intermediate_size": 80, "num_key_value_heads": 2}
GPT = {"model_type": "gpt2", "n_layer": 2, "n_embd": 32, "n_head": 4, "vocab_size": 61}
OPT = {"model_type": "opt", **SHAPE, "ffn_dim": 80}
NEOX = {"model_type": "gpt_neox", **SHAPE, "intermediate_size": 80, "tie_word_embeddings": False}


@pytest.fixture(scope="module")
def peft():
    with quiet():
        import peft

        return peft


def test_every_field_of_peft_has_its_place(peft):
    known = [*adapter_config.READ, *adapter_config.NO_BYTE, *adapter_config.REFUSED]
    assert sorted(known) == sorted({f.name for f in dataclasses.fields(peft.LoraConfig)})
    defaults = {f.name: f.default for f in dataclasses.fields(peft.LoraConfig)}
    for field, value in adapter_config.REFUSED.items():
        assert defaults[field] == value, field


# A config, what is said to peft, and what of it memlab.Run takes.
SAID = [
    (LLAMA, {}, {"rank": 8, "targets": ("q", "v")}),
    (LLAMA, {"target_modules": "all-linear", "use_rslora": True}, {"rank": 8}),
    (LLAMA, {"r": 3, "target_modules": ["q_proj", "down_proj"], "lora_alpha": 1}, {"rank": 3}),
    (LLAMA, {"target_modules": r".*\.(self_attn\.q|mlp\.up)_proj"}, {"targets": ("q", "up")}),
    (LLAMA, {"target_modules": "all-linear", "exclude_modules": ["o_proj"]}, {"rank": 8}),
    (
        LLAMA,
        {"target_modules": ["q_proj", "o_proj"], "rank_pattern": {"o_proj": 2}, "r": 5},
        {"ranks": (("out", 2),), "rank": 5},
    ),
    (LLAMA, {"layers_to_transform": [0, 1], "layers_pattern": "layers"}, {"targets": ("q", "v")}),
    (
        LLAMA,
        {"modules_to_save": ["embed_tokens", "lm_head"], "lora_dropout": 0.1},
        {"saved": ("embedding", "lm_head"), "dropout": 0.1},
    ),
    (LLAMA, {"target_modules": ["q_proj", "up_proj"], "use_dora": True}, {"dora": True}),
    (GPT, {"use_dora": True}, {"targets": ("qkv",), "dora": True}),
    (GPT, {}, {"targets": ("qkv",)}),
    (GPT, {"target_modules": ["c_proj"]}, {"targets": ("out", "down")}),
    (GPT, {"target_modules": ["mlp.c_proj"]}, {"targets": ("down",)}),
    (OPT, {"target_modules": ["fc1", "out_proj"]}, {"targets": ("out", "up")}),
    (NEOX, {"target_modules": ["dense"]}, {"targets": ("out",)}),
    (NEOX, {"target_modules": "all-linear"}, {"targets": ("qkv", "out", "up", "down")}),
]


@pytest.mark.parametrize("config, said, wanted", SAID, ids=lambda value: str(value)[:50])
def test_what_is_read_is_what_peft_makes(peft, config, said, wanted, tmp_path):
    transformers, model = hugging_face(), Model.from_config(config)
    own = peft.LoraConfig(**said)
    with quiet(), torch.device("meta"):
        settings = transformers.AutoConfig.for_model(**config)
        made = peft.get_peft_model(transformers.AutoModelForCausalLM.from_config(settings), own)
    (tmp_path / "adapter_config.json").write_text(json.dumps(own.to_dict(), default=list))
    # As it is said, and as peft fills it in and saves it.
    for source in (said, tmp_path):
        lora = read(source, model)
        assert {name: getattr(lora, name) for name in wanted} == wanted
        trained = sum(p.numel() for p in made.parameters() if p.requires_grad)
        assert lora.parameter_count(model) + lora.saved_count(model) == trained


REFUSED = [
    ({"use_qalora": True}, "use_qalora=True is not described; known: False"),
    ({"bias": "all"}, "bias='all' is not described; known: 'none'"),
    ({"alpha": 3}, "alpha is no field of a LoraConfig that memlab knows"),
    ({"peft_type": "VERA"}, "peft_type='VERA' is not described; known: LORA"),
    ({"task_type": "SEQ_CLS"}, "task_type='SEQ_CLS' is not described"),
    ({"init_lora_weights": "mica"}, "init_lora_weights='mica'"),
    ({"layers_to_transform": 1}, "q has adapters in 1 of 2 layers"),
    ({"rank_pattern": {r"layers\.0\..*q_proj": 2}}, r"gives q ranks \[2, 8\]"),
    ({"target_modules": ["q_proj", "lm_head"]}, "names the lm_head: no adapter of it is known"),
    ({"target_modules": ["query"]}, "names no linear layer of this llama"),
    ({"target_modules": "("}, r"'\(' is no regular expression"),
    ({"target_modules": ["q" * 999]}, "has 999 characters; at most 200"),
    ({"target_modules": [3]}, r"target_modules=\[3\]; a list of names"),
    ({"modules_to_save": ["norm"]}, "modules_to_save names 'norm'; described are embed_tokens"),
    ({"r": 0}, "rank=0"),
    ({"rank_pattern": ["q"]}, r"rank_pattern=\['q'\]; an object"),
]


@pytest.mark.parametrize("said, words", REFUSED, ids=lambda value: str(value)[:40])
def test_what_is_not_described_is_named(said, words):
    with pytest.raises((ValueError, TypeError), match=words):
        read(said, Model.from_config(LLAMA))


def test_the_shell_reads_it_and_may_say_what_it_does_not(tmp_path, capsys):
    (tmp_path / "adapter_config.json").write_text(
        json.dumps({"r": 4, "target_modules": ["q_proj"]})
    )
    words = [
        "estimate",
        "tiny-llama",
        "--recipe",
        "bf16",
        "--batch",
        "2",
        "--tokens",
        "32",
        "--json",
    ]
    words += ["--adapter", str(tmp_path)]
    for more, dtype in (([], None), (["--lora-dtype", "bf16"], "bf16")):
        assert main([*words, *more]) == 0
        run = Run(batch=2, tokens=32, lora=Lora(4, ("q",), dtype=dtype))
        found = json.loads(capsys.readouterr().out)
        assert found["peak"]["bytes"] == estimate(Model.preset("tiny-llama"), "bf16", run).total()
        assert Run.from_dict(found["run"]) == run
    assert main([*words, "--lora-rank", "8"]) == 2
    assert "--lora-rank beside --adapter, which says it" in capsys.readouterr().err
