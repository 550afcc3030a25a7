"""An adapter_config.json pasted into the page: what it sets, and what the page sends to a shell.

The answer that the page then has is that of `memlab.estimate` with the same file.
"""

import json
import re
import shlex
import shutil
import subprocess

import calculator
import catalogue
import pytest
from calculator_states import MARKUP
from test_calculator import ENGINE, HERE, folder, lookup  # noqa: F401  fixtures

from memlab.base.frozen import replace
from memlab.base.message import Message, parts, rendered
from memlab.cli import main
from memlab.estimate import estimate
from memlab.files import adapter_config
from memlab.files.adapter_fields import NO_BYTE, READ, REFUSED
from memlab.model import Model
from memlab.page import adapter_file, simulated, words
from memlab.page.answer import answered
from memlab.page.controls import checked, first
from memlab.page.files import files, later
from memlab.page.question import model_of, run_of
from memlab.run import Run

Q_V = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": 8}
Q_V |= {"target_modules": ["q_proj", "v_proj"]}
BASE = "base_model_name_or_path"
SEVEN = [f"{name}_proj" for name in ("q", "k", "v", "o", "gate", "up", "down")]
EVERY = Q_V | {"target_modules": SEVEN, "r": 64}
# As peft 0.21 writes one: every field, most at its default.
WHOLE = dict.fromkeys([*READ, *NO_BYTE]) | REFUSED | EVERY
WHOLE |= {"lora_alpha": 32, "lora_dropout": 0.0, "bias": "none", "use_dora": False}
WHOLE |= {"rank_pattern": {}, "alpha_pattern": {}, "loftq_config": {}, "init_lora_weights": True}
WHOLE |= {BASE: "some/model", "inference_mode": True, "peft_version": "0.21"}
LLAMA = {"model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192}
LLAMA |= {"num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 16}
LLAMA |= {"vocab_size": 128256, "tie_word_embeddings": True, "max_position_embeddings": 131072}

# The file, what was chosen before, and what it sets beside `trained`.
READABLE = [
    (Q_V, {}, {"rank": 8, "targets": "qv"}),
    (Q_V | {"use_rslora": True, "lora_alpha": 16}, {}, {"rank": 8, "targets": "qv"}),
    (EVERY, {}, {"rank": 64, "targets": "all"}),
    (EVERY | {"target_modules": SEVEN[::-1]}, {"trained": "qlora"}, {"targets": "all"}),
    (WHOLE, {}, {"rank": 64, "targets": "all"}),
    (Q_V | {"target_modules": "all-linear"}, {"model": "qwen3-0.6b"}, {"targets": "all"}),
    ({"peft_type": "LORA", "target_modules": ["q_proj", "v_proj"]}, {}, {"rank": 8}),
    (Q_V | {"target_modules": ["self_attn.q_proj", "v_proj"]}, {}, {"targets": "qv"}),
    (Q_V | {"target_modules": SEVEN[:4]}, {}, {"targets": "attention"}),
    (Q_V | {BASE: "Qwen/Qwen3-4B"}, {}, {"model": "qwen3-4b"}),
    (
        EVERY | {BASE: "meta-llama/Meta-Llama-3-8B"},
        {"model": "qwen3-0.6b"},
        {},
    ),
    (Q_V, {"model": "config", "config": LLAMA}, {"targets": "qv"}),
    (EVERY | {"r": 3}, {"model": "gemma-2-9b", "batch": 2, "checkpoint": "block"}, {"rank": 3}),
    (Q_V | {"peft_type": None, "layers_to_transform": []}, {"use": "serve"}, {"use": "train"}),
]


def pasted(said, state):
    return adapter_file.outcome(json.dumps(said), json.dumps(state))


@pytest.mark.parametrize(("said", "before", "wanted"), READABLE, ids=lambda each: str(each)[:40])
def test_the_answer_is_that_of_the_same_file(said, before, wanted, lookup):  # noqa: F811
    before = first() | {"tokens": 1024} | before
    found = pasted(said, before)
    assert {name: found["sets"][name] for name in wanted} == wanted
    assert f"r={said.get('r', 8)}, target_modules" in found["said"]
    assert ("Its base_model_name_or_path is" in found["said"]) == ("model" in found["sets"])
    assert found["sets"]["trained"] == ("qlora" if before["trained"] == "qlora" else "lora")
    state = checked(before | found["sets"])
    told, run = answered(state, lookup), run_of(state)
    model = model_of(state)
    theirs = replace(adapter_config.read(said, model), base=run.lora.base)
    if run.lora.targets == ("q", "k", "v", "out"):  # in no table: the button's answer
        assert told["why"] == words.NO_TABLE_OF_THESE and told["counts"]
        told = json.loads(simulated.answer(json.dumps(state)))
    assert told["peak"]
    wanted = estimate(model, None, replace(run, lora=theirs)).total()
    assert told["total"] == wanted
    assert wanted != estimate(model, None, replace(run, lora=None)).total()


REFUSALS = [
    ("use_dora", Q_V | {"use_dora": True}),
    ("modules_to_save", Q_V | {"modules_to_save": ["lm_head"]}),
    ("rank_pattern", Q_V | {"rank_pattern": {"q_proj": 4}}),
    ("lora_dropout", Q_V | {"lora_dropout": 0.055}),
    ("lora_dropout", Q_V | {"lora_dropout": 1}),
    ("exclude_modules", Q_V | {"exclude_modules": ["o_proj"]}),
    ("layers_to_transform", Q_V | {"layers_to_transform": [0, 1]}),
    ("layers_to_transform", Q_V | {"layers_to_transform": 0}),
    ("target_modules", Q_V | {"target_modules": ["q_proj"]}),
    ("target_modules", Q_V | {"target_modules": r".*\.(q|v)_proj"}),
    ("target_modules", Q_V | {"target_modules": ["q_proj", "v_proj", "lm_head"]}),
    ("target_modules", Q_V | {"target_modules": []}),
    ("target_modules", {"peft_type": "LORA"}),
    ("peft_type", {"peft_type": "IA3", "target_modules": ["k_proj", "v_proj", "down_proj"]}),
    ("bias", Q_V | {"bias": "all"}),
    ("task_type", Q_V | {"task_type": "SEQ_CLS"}),
    ("init_lora_weights", Q_V | {"init_lora_weights": "mica"}),
    ("a_new_one", Q_V | {"a_new_one": None}),
    *((field, Q_V | {field: {"x": 1}}) for field in REFUSED if field != "bias"),
]


@pytest.mark.parametrize(("field", "said"), REFUSALS, ids=lambda each: str(each)[:40])
def test_what_the_page_has_no_figures_for_is_named_in_one_line(field, said):
    found = pasted(said, first())
    assert list(found) == ["error"]
    assert found["error"].startswith(f"“{field}” in this adapter_config.json is not supported")
    assert "\n" not in found["error"]


OF_LORA = ("use_dora", "modules_to_save", "rank_pattern", "lora_dropout")
ANSWERED = [(field, trained) for field in OF_LORA for trained in ("lora", "qlora")]
ANSWERED.append(("peft_type", "lora"))  # (IA)³, which has no base of its own


@pytest.mark.parametrize(("field", "trained"), ANSWERED)
def test_the_command_line_that_it_names_answers(field, trained, tmp_path, capsys, monkeypatch):
    said = next(said for name, said in REFUSALS if name == field)
    small = first() | {"model": "smollm2-135m", "tokens": 32, "trained": trained}
    words = re.search("“(memlab [^”]*)”", pasted(said, small)["error"])[1]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "adapter_config.json").write_text(json.dumps(said))
    assert main([*shlex.split(words)[1:], "--json"]) == 0
    run = Run.from_dict(json.loads(capsys.readouterr().out)["run"])
    theirs = adapter_config.read(said, Model.preset("smollm2-135m"))
    if run.lora is not None:
        assert run.lora.base == ("nf4" if trained == "qlora" else None)
        theirs = replace(theirs, base=run.lora.base)
    assert run.adapters == theirs


@pytest.mark.parametrize(
    ("said", "state", "line"),
    [
        (Q_V | {"r": 0}, {}, "LoRA rank: “0” is no whole number from 1 to 4,096"),
        (Q_V | {"r": "8"}, {}, "LoRA rank: “8” is no whole number from 1 to 4,096"),
        (Q_V, {"model": "mixtral-8x7b"}, words.NO_ADAPTERS.format(family="mixtral")),
        (
            Q_V,
            {"model": "config", "config": {"model_type": "bloom"}},
            words.NO_ADAPTERS.format(family="bloom"),
        ),
        (Q_V, {"batch": None}, "Batch size per GPU: a whole number from 1 to 65,536 is needed"),
    ],
)
def test_what_cannot_be_is_said_as_everywhere(said, state, line):
    assert pasted(said, first() | state) == {"error": line}


@pytest.mark.parametrize("share", [0.05, 0.1, 0.07, 0.0, 0, None, 0.99])
def test_dropout_in_whole_percent_is_a_control(share):
    found = pasted(Q_V | {"lora_dropout": share}, first())
    assert found["sets"]["lora_dropout"] == round(100 * (share or 0))
    assert ("lora_dropout=" in found["said"]) == bool(share)
    state = checked(first() | found["sets"])
    assert run_of(state).lora.dropout == (share or 0)


def test_a_projected_embedding_is_one_of_all_linear_layers():
    model = Model.preset("opt-1.3b").replace(embed_dim=512)
    assert adapter_file.every(Model.preset("opt-1.3b")) and not adapter_file.every(model)


def test_strange_words_come_back_as_one_short_line():
    for said in (Q_V | {MARKUP * 99: 1}, Q_V | {"\u202e": 1}, Q_V | {"r": 10**40}):
        found = pasted(said, first())["error"]
        assert "\n" not in found and "\u202e" not in found and len(found) < 300


@pytest.mark.parametrize("language", catalogue.languages())
def test_each_sentence_is_said_in_the_language_of_the_page(language):
    known = catalogue.translations(language, "calculator-words")
    spoken = {text: known[text] for text in calculator.words()}  # whole, and in their order
    asked = [READABLE[0][0], READABLE[8][0], REFUSALS[0][1]]
    found = [pasted(said, first()) for said in asked]
    config = "The config: {problem}."
    texts = [x.get("said") or Message(config, problem=x["error"]) for x in found]
    for text, said in zip(texts, [rendered(text, spoken, language) for text in texts], strict=True):
        assert said != text
        for english in re.findall(r"\b(?:stays|chosen|supported|computes|tell|stored)\b", text):
            assert english not in said


def test_every_field_of_the_shell_has_its_place_here():
    assert set(adapter_file.PLAIN) - set(REFUSED) < set(READ)
    free = set(READ) - set(adapter_file.PLAIN)
    assert free == {"r", "target_modules", "layers_pattern", "lora_dropout"}


def test_the_pages_engine_reads_the_same():
    if shutil.which("node") is None:
        pytest.skip("no node")
    if not (ENGINE / "micropython.mjs").exists():
        pytest.skip("no node package with MicroPython: npm ci installs it")
    asked = [(said, first() | state) for said, state, _ in READABLE]
    asked += [(said, first()) for _, said in REFUSALS]
    given = {"states": [], "files": files(), "moments": "", "later": later()}
    given["pasted"] = [(json.dumps(said), state) for said, state in asked]
    done = subprocess.run(
        ["node", str(HERE / "run.mjs")],
        input=json.dumps(given),
        capture_output=True,
        encoding="utf8",
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["adapters"] == parts([pasted(*each) for each in asked])
