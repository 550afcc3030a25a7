"""An adapter_config.json: every field of peft's configs, and the adapters that peft makes of it."""

import dataclasses
import json
import random
import re

import pytest
import torch
from real_steps import hugging_face, quiet

from memlab import Model, Run, estimate
from memlab.adapters import Ia3, Prompt, Vera
from memlab.cli import main
from memlab.families import NAMES, record_of
from memlab.files import adapter_config, adapter_kinds
from memlab.files.adapter_config import read
from memlab.files.patterns import Patterns
from memlab.model.module_names import module_names
from memlab.step import Lora

SHAPE = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 4, "vocab_size": 61}
SHAPE |= {"max_position_embeddings": 64}
LLAMA = {"model_type": "llama", **SHAPE, "intermediate_size": 80, "num_key_value_heads": 2}
GPT = {"model_type": "gpt2", "n_layer": 2, "n_embd": 32, "n_head": 4, "vocab_size": 61}
OPT = {"model_type": "opt", **SHAPE, "ffn_dim": 80}
NEOX = {"model_type": "gpt_neox", **SHAPE, "intermediate_size": 80, "tie_word_embeddings": False}


FAMILIES = {"gpt2": GPT, "opt": OPT, "gpt_neox": NEOX}
CONFIGS = {
    "IA3": lambda peft: peft.IA3Config,
    "VERA": lambda peft: peft.VeraConfig,
    "PROMPT_TUNING": lambda peft: peft.PromptTuningConfig,
}


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


@pytest.mark.parametrize("kind", adapter_kinds.FIELDS)
def test_every_field_of_the_other_kinds_has_its_place(peft, kind):
    fields, same, refused = adapter_kinds.FIELDS[kind]
    defaults = {f.name: f.default for f in dataclasses.fields(CONFIGS[kind](peft))}
    assert sorted([*fields, *same, *refused, *adapter_kinds.EVERYWHERE]) == sorted(defaults)
    for field, value in refused.items():
        assert defaults[field] == value, field


def test_peft_s_own_targets_are_those_that_are_known(peft):
    constants = peft.utils.constants
    own = {"IA3": "ia3_targets", "VERA": "lora_targets", "LORA": "lora_targets"}
    for kind, field in own.items():
        usual = {name: getattr(record_of(name), field) for name in NAMES}
        mapping = getattr(constants, f"TRANSFORMERS_MODELS_TO_{kind}_TARGET_MODULES_MAPPING")
        for family, names in usual.items():
            if not names:
                continue
            model = Model.from_config(FAMILIES.get(family, LLAMA))
            paths = module_names(model, names).values()
            for path, name in zip(paths, mapping[family], strict=True):
                assert path == name or path.endswith(f".{name}"), (kind, family)


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


IA3, VERA, PROMPT = ({"peft_type": kind} for kind in ("IA3", "VERA", "PROMPT_TUNING"))
OTHER_KINDS = [
    (LLAMA, IA3, Ia3(("k", "v", "down"), ("down",))),
    (GPT, IA3, Ia3(("qkv", "down"), ("down",))),
    (OPT, IA3, Ia3(("q", "k", "down"), ("down",))),
    (
        LLAMA,
        IA3 | {"target_modules": ["q_proj", "up_proj"], "feedforward_modules": ["up_proj"]},
        Ia3(("q", "up"), ("up",)),
    ),
    (LLAMA, VERA, Vera(256, ("q", "v"))),
    (GPT, VERA | {"r": 4, "target_modules": ["c_proj"], "vera_dropout": 0.1}, ...),
    (LLAMA, PROMPT | {"num_virtual_tokens": 6}, Prompt(6)),
]


@pytest.mark.parametrize("config, said, wanted", OTHER_KINDS, ids=lambda value: str(value)[:50])
def test_another_kind_is_read_as_peft_makes_it(peft, config, said, wanted, tmp_path):
    transformers, model = hugging_face(), Model.from_config(config)
    own = CONFIGS[said["peft_type"]](peft)(
        task_type="CAUSAL_LM",
        **{name: value for name, value in said.items() if name != "peft_type"},
    )
    with quiet(), torch.device("meta"):
        settings = transformers.AutoConfig.for_model(**config)
        made = peft.get_peft_model(transformers.AutoModelForCausalLM.from_config(settings), own)
    words = json.dumps(own.to_dict(), default=list)
    (tmp_path / "adapter_config.json").write_text(words)
    wanted = Vera(4, ("out", "down"), dropout=0.1) if wanted is ... else wanted
    for source in (said | {"task_type": "CAUSAL_LM"}, tmp_path):
        found = read(source, model)
        assert found == wanted
        trained = sum(p.numel() for p in made.parameters() if p.requires_grad)
        assert found.parameter_count(model) == trained


REFUSED = [
    (IA3 | {"modules_to_save": ["lm_head"]}, r"modules_to_save=\['lm_head'\] is not described"),
    (IA3 | {"r": 4}, "r is no field of a config of IA3 that memlab knows"),
    (
        IA3 | {"feedforward_modules": r"model\.layers\.0\..*", "target_modules": ["q_proj"]},
        "names q in some of the layers alone",
    ),
    (VERA | {"bias": "all"}, "bias='all' is not described; known: 'none'"),
    (VERA | {"layers_to_transform": [0]}, "q has adapters in 1 of 2 layers"),
    (PROMPT | {"num_virtual_tokens": 4}, "task_type=None is not described; known: CAUSAL_LM"),
    (PROMPT | {"task_type": "CAUSAL_LM"}, "num_virtual_tokens is missing"),
    (
        PROMPT | {"task_type": "CAUSAL_LM", "num_virtual_tokens": 4, "token_dim": 7},
        "token_dim=7 is not described; known: 32",
    ),
    ({"use_qalora": True}, "use_qalora=True is not described; known: False"),
    ({"bias": "all"}, "bias='all' is not described; known: 'none'"),
    ({"alpha": 3}, "alpha is no field of a LoraConfig that memlab knows"),
    ({"peft_type": "BOFT"}, "peft_type='BOFT' is not described; known: LORA, IA3, VERA, PROMPT"),
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


@pytest.mark.parametrize(
    "flags, adapter",
    [
        ("--ia3 k,v,down --lora-dtype bf16", Ia3(dtype="bf16")),
        ("--vera-rank 8 --lora-targets q,up", Vera(8, ("q", "up"))),
        ("--prompt-tokens 20", Prompt(20)),
    ],
)
def test_the_shell_has_flags_of_the_other_kinds(flags, adapter, capsys):
    words = "estimate tiny-llama --recipe bf16 --batch 2 --tokens 32 --json".split()
    assert main([*words, *flags.split()]) == 0
    found, run = json.loads(capsys.readouterr().out), Run(batch=2, tokens=32, adapter=adapter)
    assert found["peak"]["bytes"] == estimate(Model.preset("tiny-llama"), "bf16", run).total()
    assert Run.from_dict(found["run"]) == run


@pytest.mark.parametrize(
    "flags, words",
    [
        ("--ia3 q --lora-rank 4", "--lora-rank beside --ia3; one kind of adapters is trained"),
        ("--prompt-tokens 4 --lora-dtype bf16", "--lora-dtype is not of --prompt-tokens"),
        ("--ia3 q,x", "target 'x' is not described"),
        ("--prompt-tokens 4 --loop trainer", "--loop trainer with a prompt of 4 trained tokens"),
        ("--vera-rank 4 --implementation memlab", "VeRA r=4 on q,v is not described for memlab"),
    ],
)
def test_the_shell_refuses_what_no_kind_has(flags, words, capsys):
    assert main("estimate tiny-llama --batch 2 --tokens 32".split() + flags.split()) == 2
    assert words in capsys.readouterr().err


MIXED = {"model_type": "qwen3_moe", **SHAPE, "intermediate_size": 80, "num_key_value_heads": 2}
MIXED |= {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "head_dim": 8}
MIXTURES = {
    "qwen3_moe": MIXED,
    "mixtral": {**MIXED, "model_type": "mixtral", "num_local_experts": 4},
    "gpt_oss": {**MIXED, "model_type": "gpt_oss", "num_local_experts": 4},
    "qwen2_moe": {**MIXED, "model_type": "qwen2_moe", "shared_expert_intermediate_size": 24},
}
BOTH_NAMES = ["experts.gate_up_proj", "experts.down_proj"]
OF_MIXTURES = [
    ("qwen3_moe", {"target_modules": "all-linear"}),
    ("qwen3_moe", {"target_modules": "all-linear", "r": 3, "rank_pattern": {"down_proj": 5}}),
    ("qwen3_moe", {"target_modules": ["q_proj"], "target_parameters": BOTH_NAMES}),
    ("qwen3_moe", {"target_parameters": ["experts.down_proj"]}),
    ("qwen3_moe", {"target_modules": [], "target_parameters": ["gate.weight"]}),
    ("qwen3_moe", {"target_modules": ["q_proj", "gate_proj", "up_proj", "down_proj"]}),
    ("qwen3_moe", {"target_modules": r".*self_attn\.(q|v)_proj"}),
    ("qwen3_moe", {"target_modules": r".*\.(v|gate|up|down)_proj"}),
    ("mixtral", {"target_modules": ["w1", "w3", "v_proj"]}),
    ("mixtral", {"target_modules": ["gate", "w2"]}),
    ("gpt_oss", {"target_modules": "all-linear"}),
    ("gpt_oss", {"target_modules": [], "target_parameters": ["experts.gate_up_proj"], "r": 2}),
    ("gpt_oss", {"target_modules": ["k_proj"], "target_parameters": ["router.weight"]}),
    ("qwen2_moe", {"target_modules": "all-linear"}),
    ("qwen2_moe", {"target_modules": ["q_proj", "gate_proj"], "target_parameters": BOTH_NAMES}),
]


@pytest.mark.parametrize(("family", "said"), OF_MIXTURES, ids=str)
def test_of_a_mixture_the_file_says_what_peft_trains(peft, family, said):
    """As a user gives it, and as peft writes it down after it has rewritten it."""
    model = Model.from_config(MIXTURES[family])
    found = read({"peft_type": "LORA", **said}, model)
    with quiet():
        config = hugging_face().AutoConfig.for_model(**MIXTURES[family], pad_token_id=None)
        module = hugging_face().AutoModelForCausalLM.from_config(config)
        made = peft.get_peft_model(module, peft.LoraConfig(task_type="CAUSAL_LM", **said))
    trained = [p.numel() for p in made.parameters() if p.requires_grad]
    assert found.parameter_count(model) == sum(trained)
    written = made.peft_config["default"].to_dict()
    kept = {k: sorted(v) if isinstance(v, set) else v for k, v in written.items()}
    kept |= {"peft_type": "LORA", "task_type": "CAUSAL_LM"}
    assert read(json.loads(json.dumps(kept, default=str)), model) == found


@pytest.mark.parametrize(
    ("family", "said", "words"),
    [
        ("qwen3_moe", {"target_modules": ["gate_proj", "q_proj"]}, "gate_proj without up_proj: bo"),
        ("qwen3_moe", {"target_modules": r".*\.mlp"}, "names mlp, which is no linear layer"),
        ("qwen3_moe", {"target_parameters": ["q_proj.weight"]}, "target_parameters names 'q_proj."),
        ("qwen3_moe", {"target_parameters": ["weight"]}, "target_parameters names 'weight'; desc"),
        ("qwen3_moe", {"target_parameters": "gate"}, "target_parameters names 'gate'; described"),
        (
            "gpt_oss",
            {"target_parameters": ["model.layers.1.mlp.experts.down_proj"]},
            "experts_down has adapters in 1 of 2 layers",
        ),
    ],
    ids=str,
)
def test_what_is_not_described_of_a_mixtures_file_is_named(family, said, words):
    with pytest.raises(ValueError, match=words):
        read({"peft_type": "LORA", **said}, Model.from_config(MIXTURES[family]))


def test_the_command_line_reads_target_parameters(tmp_path, capsys):
    path = tmp_path / "adapter_config.json"
    path.write_text(json.dumps({"peft_type": "LORA", "target_parameters": BOTH_NAMES, "r": 2}))
    asked = ["estimate", "qwen3-30b-a3b", "--tokens", "64", "--recipe", "bf16", "--json"]
    asked += ["--checkpoint", "none"]
    assert main([*asked, "--adapter", str(path), "--lora-base", "nf4"]) == 0
    whole = json.loads(capsys.readouterr().out)
    assert main([*asked, "--lora-rank", "2", "--lora-base", "nf4"]) == 0
    attention = json.loads(capsys.readouterr().out)
    experts = 48 * 128 * 3 * 768 * 2048 * 2
    assert whole["peak"]["bytes"] - attention["peak"]["bytes"] > experts


def test_a_family_without_described_adapters_is_named():
    with pytest.raises(ValueError, match="adapters are not described for deepseek_v3"):
        read({"peft_type": "LORA", "target_modules": ["q_a_proj"]}, Model.preset("deepseek-v3"))


SLOW = ["(.*)*_projX", "(a+)+$", "(" * 30 + ".*" + ")*" * 30 + "x", ".*" * 99 + "x"]


@pytest.mark.parametrize("pattern", SLOW)
@pytest.mark.parametrize("field", ["target_modules", "exclude_modules", "rank_pattern"])
def test_no_pattern_takes_longer_than_its_letters(field, pattern):
    """Each ran for ever: Python's `re` tries all ways through it. Thirty stars are given up on."""
    said = {"r": 8, "target_modules": ["q_proj", "v_proj"]}
    said |= {field: {pattern: 4} if field == "rank_pattern" else pattern}
    try:
        found = adapter_config.read(said, Model.preset("llama-3-8b"))
    except ValueError as error:
        assert re.search("names no linear layer|take too long to follow", str(error))
    else:
        assert found.rank == 8 and found.targets == ("q", "v")


def test_what_many_patterns_take_together_is_counted():
    model = Model.preset("llama-3-8b")
    said = {"target_modules": ["q_proj"], "rank_pattern": {f"(.*)*{n}": 2 for n in range(10**5)}}
    with pytest.raises(ValueError, match="the patterns of this file take too long to follow"):
        adapter_config.read(said, model)
    names = [f"n{n}" for n in range(10**6)]
    found = adapter_config.read({"target_modules": [*names, "q_proj"]}, model)
    assert found.targets == ("q",)


def test_a_pattern_means_what_it_means_to_python():
    """2,000 drawn ones, on short names of the same letters."""
    draw = random.Random(7)
    atoms = r"a b ab . \. [ab] [^a] \d \w (a|b) (a|ab|) (?:b) (?i:A) A 1".split()
    borders = r"^ $ \b \B (?=a) (?!b) (?<=a) (?<!b)".split()
    often = ["", "", "", "*", "+", "?", "*?", "+?", "{2}", "{0,2}", "{1,}"]

    def pattern(depth=0):
        parts = ""
        for _ in range(draw.randint(1, 4)):
            inside = depth < 3 and draw.random() < 0.3
            parts += (
                draw.choice(borders)
                if draw.random() < 0.2
                else (
                    (f"({pattern(depth + 1)})" if inside else draw.choice(atoms))
                    + draw.choice(often)
                )
            )
            parts += "|" if draw.random() < 0.1 else ""
        return parts

    seen = [0, 0]
    for _ in range(2000):
        said, name = pattern(), "".join(draw.choices("abA1.x", k=draw.randint(0, 6)))
        found = Patterns().full(said, name)
        assert found == (re.fullmatch(said, name) is not None), (said, name)
        seen[found] += 1
    assert min(seen) > 100
    for said, words in ((r"(a)\1", "groupref is not read"), ("(", "is no regular expression")):
        with pytest.raises(ValueError, match=words):
            Patterns().full(said, "aa")


@pytest.mark.parametrize(
    "said",
    [{"r": 10**12}, {"rank_pattern": {"q_proj": 10**12}}, {"peft_type": "VERA", "r": 10**9}]
    + [{"peft_type": "PROMPT_TUNING", "task_type": "CAUSAL_LM", "num_virtual_tokens": 10**9}],
)
def test_a_rank_has_a_bound(said):
    said = {"target_modules": ["q_proj", "v_proj"]} | said
    if said.get("peft_type") == "PROMPT_TUNING":
        del said["target_modules"]
    with pytest.raises(ValueError, match="at most 1,000,000 are taken"):
        adapter_config.read(said, Model.preset("tiny-llama"))
