"""The page's calculator answers as the command line does, in CPython and in the page's engine.

Node runs the engine with the files that the page gives it. Without either the tests of the engine
are skipped, or fail where MEMLAB_REQUIRE names node (conftest.py).
"""

import ast
import json
import os
import random
import re
import shutil
import subprocess
from pathlib import Path

import calculator
import peak_compare
import peaks
import pytest
from calculator_states import FIXED_HEADS, HOSTILE, MARKUP, states

from memlab import Run
from memlab.base.message import parts
from memlab.devices import devices
from memlab.engines import Engine, pool
from memlab.estimate import estimate
from memlab.explain.changes import CHANGES
from memlab.explain.last_changes import EVERY, INSIDE, SFT, TORCHS
from memlab.families import NAMES as FAMILIES
from memlab.families import STEP, config_types, has_config, record_of, tabled
from memlab.fit import CannotFit, cheapest_change
from memlab.model import Model
from memlab.model.fields import kinds
from memlab.model.presets import PRESETS
from memlab.page import words
from memlab.page.answer import answered, outcome
from memlab.page.bare import KEPT, OF_PRINTS, of_types
from memlab.page.controls import OWN, PRECISIONS, checked, first
from memlab.page.files import MODULES, TERMS, files, later
from memlab.page.pasted import config_of
from memlab.page.peak_files import reader
from memlab.page.question import card_of, model_of, recipe_of, run_of
from memlab.page.sentences import cache_of
from memlab.page.table_peak import BUCKETS
from memlab.recipe.resident import fullest, resident
from memlab.sharding import Sharding
from memlab.step import simulate
from memlab.step.core.moments import hills
from memlab.units import text as sized
from memlab.verdict import room_on

ROOT = Path(__file__).parent.parent
HERE = Path(__file__).parent / "calculator"
ENGINE = ROOT / "node_modules" / "@micropython" / "micropython-webassembly-pyscript"
DEPTH = int(os.environ.get("MEMLAB_DEPTH", "1"))
MANY = 120 * DEPTH


@pytest.fixture(scope="module")
def folder():
    """The moments, as the repository keeps them."""
    return peaks.kept()


@pytest.fixture(scope="module")
def lookup(folder):
    return reader(folder)


def there(folder, states, texts=(), advised=(), further=(), named=()):
    """What the page's engine answers, without advice but to the states of these numbers.

    further     pairs of a state and a question after its verdict
    named       pairs of what names a model and a use
    """
    if shutil.which("node") is None:
        pytest.skip("no node")
    if not (ENGINE / "micropython.mjs").exists():
        pytest.skip("no node package with MicroPython: npm ci installs it")
    asked = {
        "states": states,
        "files": files(),
        "later": later(),
        "moments": str(folder),
        "texts": list(texts),
        "advised": list(advised),
        "asked": list(further),
        "named": list(named),
    }
    done = subprocess.run(
        ["node", str(HERE / "run.mjs")],
        input=json.dumps(asked),
        capture_output=True,
        encoding="utf8",
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def here(states, lookup):
    return [outcome(json.dumps(state), lookup) for state in states]


def agree(folder, lookup, asked, advised=2 * DEPTH):
    """The page's engine answers each of these states as this Python does; returns the answers.

    advised     how many of those that some change would help, and of those that none would, are
                also asked for advice: the search takes the engine fifty times as long as the answer
    """
    ours = [outcome(json.dumps(state), lookup, advise=False) for state in asked]
    picked: dict = {}
    for number in [n for n, found in enumerate(ours) if not found.get("fits", True)]:
        if len(picked) == 2 * advised:
            break
        found = outcome(json.dumps(asked[number]), lookup)
        if list(picked.values()).count(bool(found["changes"])) < advised:
            ours[number], picked[number] = found, bool(found["changes"])
    theirs = there(folder, asked, advised=list(picked))["answers"]
    apart = [(s, a, b) for s, a, b in zip(asked, ours, theirs, strict=True) if parts(a) != b]
    assert not apart, f"{len(apart)} of {len(asked)}, the first as (state, here, there): {apart[0]}"
    return ours


def test_the_engines_agree(folder, lookup):
    ours = agree(folder, lookup, states(MANY, seed=2), advised=3 * DEPTH)
    peaks = sum(found.get("peak", False) for found in ours)
    assert peaks > MANY // 4 and sum("error" in found for found in ours) > MANY // 20
    assert sum(bool(found.get("changes")) for found in ours) == 3 * DEPTH


def with_peaks(count, lookup, seed, **said):
    """Random states whose peak the page gives, and the answers."""
    found = []
    for state in states(20 * count, seed):
        state |= said
        try:
            made = answered(state, lookup, advise=False)
        except (ValueError, TypeError):
            continue
        whole = checked(state)
        if made["peak"] and run_of(whole).devices.data == 1:
            found.append((whole, made))
        if len(found) == count:
            return found
    raise AssertionError("too few states are described")


def step_of(state):
    run = run_of(state)
    if not run.devices.replicated:
        run = run.replace(devices=Sharding())
    return simulate(model_of(state), recipe_of(state), run)


def test_the_peak_is_that_of_the_simulated_step(lookup):
    for state, found in with_peaks(60, lookup, seed=1):
        peak_compare.hold(found, step_of(state), state)


def test_without_a_peak_the_rows_are_those_of_the_estimate(lookup):
    seen = 0
    for state in states(400, seed=2):
        try:
            found = answered(state, lookup)
        except (ValueError, TypeError):
            continue
        whole = checked(state)
        if found["peak"]:
            continue
        ledger = estimate(model_of(whole), recipe_of(whole), Run(devices=run_of(whole).devices))
        rows = {row["term"]: row["bytes"] for row in found["rows"]}
        if run_of(whole).devices.replicated:  # DDP's buckets, which a run without steps has not
            assert rows.pop(BUCKETS) == rows["gradients"]
        assert rows == {row.term: row.derived for row in ledger.rows}
        seen += 1
    assert seen > 20


def test_what_an_engine_makes_of_the_card_is_what_the_package_says(lookup):
    seen = set()
    for state in states(150, seed=8):
        try:
            found = answered(state, lookup)
        except (ValueError, TypeError):
            continue
        whole = checked(state)
        if whole["model"] == "config" and not has_config(whole["config"]["model_type"]):
            continue
        tokens = run_of(whole).tokens
        try:
            there = pool(model_of(whole), Engine(max_model_len=tokens), on=card_of(whole))
        except ValueError:
            assert found["serving"] == words.NO_ENGINE
            seen.add("refused")
            continue
        seen.add(there.starts)
        left = sized(max(0, there.available))
        assert left in found["serving"] and f" {tokens:,} tokens" in found["serving"]
        if there.starts:
            count = f" {int(there.concurrency):,} concurrent conversations of "
            assert count in found["serving"] and f" {there.tokens:,} tokens," in found["serving"]
    assert seen == {"refused", True, False}


def test_an_answer_without_advice_is_the_same_answer(lookup):
    """The first page asks for no changes and no engine: both take longer than the answer."""
    state = {"model": "qwen3-0.6b", "card": "RTX 4060 Laptop"}
    whole = answered(state, lookup)
    short = answered(state, lookup, advise=False)
    advice = ("advice", "changes", "steps", "sets", "flags", "never", "serving")
    assert whole["changes"] and not any(short.get(name) for name in advice)
    assert {n: v for n, v in short.items() if n not in advice} == {
        n: v for n, v in whole.items() if n not in advice
    }


class Untyped(ast.NodeTransformer):
    """Takes annotations out of a tree, but for fields without a default, and a record's words."""

    def visit_arg(self, node):
        node.annotation = None
        return node

    def visit_FunctionDef(self, node):
        node.returns = None
        return self.generic_visit(node)

    def visit_Call(self, node):
        if isinstance(node.func, ast.Name):
            del node.args[KEPT.get(node.func.id, len(node.args)) :]
        return self.generic_visit(node)

    def visit_AnnAssign(self, node):
        if node.value is None:
            return node
        assign = ast.Assign(targets=[node.target], value=self.visit(node.value))
        return ast.fix_missing_locations(ast.copy_location(assign, node))


def test_the_engine_gets_the_same_code_without_its_words():
    """Docstrings, comments, annotations, types' imports, empty lines, prints are gone; no more."""
    names, sent = [f"{name}.py" for name in MODULES.split()], files()
    for name in [*names, *(f"terms/{each}.py" for each in TERMS.split())]:
        code = (ROOT / "src" / "memlab" / name).read_text(encoding="utf-8")
        if name == "families/__init__.py":  # most of them are not there yet to be listed
            code = re.sub("^NAMES = .*", f"NAMES = {FAMILIES}", code, flags=re.M)
            code = re.sub("^RECORDED = .*", "RECORDED = ()", code, flags=re.M)
        tree = ast.parse(code)
        typed = [node for node in tree.body if of_types(node)]
        told = ast.Import | ast.ImportFrom | ast.Assign | ast.ClassDef
        assert all(isinstance(each, told) for x in typed for each in getattr(x, "body", []))
        tree.body = [node for node in tree.body if node not in typed]
        tree = Untyped().visit(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                node.body = [x for x in node.body if getattr(x, "name", "") not in OF_PRINTS]
            kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
            if isinstance(node, kinds) and ast.get_docstring(node, clean=False) is not None:
                node.body[0].value.value = ""
                if len(node.body) > 1:
                    del node.body[0]
        ours, theirs = sent[f"memlab/{name}"], ast.dump(tree)
        assert ast.dump(ast.parse(ours)) == theirs and len(ours) < len(code), name
        filled = [line for line in code.splitlines() if line.strip()]
        assert len(ours.splitlines()) <= len(filled), name
        assert "# " not in re.sub('"[^"]*"', "", ours), name


def test_the_changes_are_those_of_the_package():
    """All but those whose step the page has no moments for, and Trainer's other trainer."""
    names = [change.name for change in calculator.changes()]
    assert names == [c.name for c in EVERY if c.name not in (INSIDE, SFT.name)]


@pytest.mark.parametrize("state", [{"zero": 3}, {"zero": 1, "tensor": 2}, {"zero": 2, "data": 1}])
def test_what_zero_cannot_divide_is_said(lookup, state):
    found, without = answered(state, lookup), answered(state | {"zero": 0}, lookup)
    assert f"ZeRO {state['zero']} shards nothing here" in found["divides"]
    assert without["divides"] == "" and found["rows"] == without["rows"]
    assert answered(state | {"data": 2}, lookup)["divides"] == ""


TINY = {"model_type": "llama", "hidden_size": 256, "intermediate_size": 512}
TINY |= {"num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 1000}
NAMES = {name: name for name in ("臺灣模型-7B", "modèle/ação", "تجربة", "🦙 8B")}
NAMES |= {"a\u202eb\u0007c\u200bd": "a?b?c?d"}  # what cannot be seen, or turns a line


def test_a_name_of_any_script_stays_a_name(lookup, folder):
    asked = [
        {"model": "config", "tokens": 512, "config": TINY | {"_name_or_path": f" {name} "}}
        for name in NAMES
    ]
    found = agree(folder, lookup, asked)
    for one, wanted in zip(found, NAMES.values(), strict=True):
        assert one["heading"].startswith(f"{wanted} · ")


def test_the_limit_is_that_of_the_package(lookup):
    for card in devices():
        assert answered({"card": card.name}, lookup)["limit"] == room_on(card.name).at_most


def test_the_cheapest_change_is_that_of_the_package(lookup):
    chance, seen, refused = random.Random(3), [], 0
    cards = [each for each in devices() if each.marketed <= 48]
    for state, _ in with_peaks(60, lookup, seed=4, optimizer="adamw"):
        run = run_of(state).replace(devices=Sharding())
        if state["model"] == "config" and run.rows < 512:
            continue
        state["card"] = chance.choice(cards).name
        found = answered(state, lookup)
        if found["fits"]:
            continue
        refused += not found["changes"]
        if not found["changes"] and refused > 2:
            continue  # the package tries for long before it gives up
        own = state["precision"] == OWN
        recipe = None if own else PRECISIONS[state["precision"]][1]
        try:
            wanted = cheapest_change(model_of(state), recipe, run, on=state["card"])
        except CannotFit:
            assert found["changes"] == [] and found["never"]
            continue
        names = [name for name, *_ in wanted]
        if (
            set(names)
            - {c.name for c in CHANGES}
            - {name for name in names if name.endswith("micro-batches")}
        ):
            continue  # the page has no control for it
        assert [name for name, _, _ in found["changes"]] == names, state
        seen.append(names)
        if len(seen) >= 4 and any(TORCHS.name in names for names in seen):
            return
    raise AssertionError(f"too few are advised: {seen}")


def test_a_change_of_formats_keeps_the_optimizer(lookup):
    """Advised "pure bf16", a run of Lion was told the peak of AdamW."""
    state = {"model": "qwen3-0.6b", "precision": "fp32", "optimizer": "lion", "tokens": 512}
    for change in (c for c in CHANGES if c.name in ("autocast", "pure bf16")):
        recipe, _ = change.turn(recipe_of(checked(state)), Run())
        assert recipe.optimizer == "lion"


def test_nothing_said_is_the_run_of_the_package():
    said = checked({})
    assert run_of(said) == Run(tokens=said["tokens"])
    shown = first()
    run = run_of(checked(shown))
    assert (run.batch, run.micro_batches, run.devices) == (1, 1, Sharding())
    assert (run.attention, run.optimizer_loop) == (None, Run().optimizer_loop)
    assert "attention" not in said and "optimizer_impl" not in said


def test_the_attention_of_a_config_is_heard(lookup):
    config = {"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257}
    state = {"model": "config", "tokens": 1024, "config": config}
    eager = {"config": {**config, "attn_implementation": "eager"}}
    plain, written = answered(state, lookup), answered(state | eager, lookup)
    assert written["total"] == step_of(checked(state | eager)).peak.bytes > plain["total"]
    assert answered(state | eager | {"attention": "sdpa"}, lookup)["total"] == plain["total"]
    flex = {"config": {**config, "attn_implementation": "flex_attention"}}
    assert "attn_implementation=“flex_attention”" in answered(state | flex, lookup)["why"]


def test_dropout_is_that_of_the_config_else_of_its_class(lookup):
    config = {"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257}
    off = {"attn_pdrop": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0}
    state = {"model": "config", "tokens": 1024, "config": config}
    usual = answered(state, lookup)
    without = answered(state | {"config": {**config, **off}}, lookup)
    assert usual["total"] == step_of(checked(state)).peak.bytes
    assert without["total"] == step_of(checked(state | {"config": {**config, **off}})).peak.bytes
    assert without["total"] < usual["total"]
    some = answered(state | {"config": {**config, "attn_pdrop": 0}}, lookup)
    assert not some["peak"] and some["why"].startswith("attn_pdrop=“0” is not supported")


def test_layers_without_a_window_are_described(lookup):
    """use_sliding_window makes no window where max_window_layers leaves no layer for it."""
    config = {
        "model_type": "qwen2",
        "hidden_size": 256,
        "intermediate_size": 512,
        "num_hidden_layers": 6,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 1000,
        "use_sliding_window": True,
    }
    state = {"model": "config", "tokens": 512, "config": config}
    assert answered(state, lookup)["total"] == step_of(checked(state)).peak.bytes
    state["config"] = {**config, "max_window_layers": 2}
    assert "sliding window" in answered(state, lookup)["why"]


def test_every_key_that_changes_a_step_reaches_the_page(lookup):
    """A config's object may name the share of a head that turns; the page read rotary_pct alone."""
    rotary = {"rope_type": "default", "partial_rotary_factor": 0.5}
    config = {
        "model_type": "gpt_neox",
        "hidden_size": 512,
        "intermediate_size": 2048,
        "num_hidden_layers": 6,
        "num_attention_heads": 8,
        "vocab_size": 50304,
        "rope_parameters": rotary,
    }
    state = {"model": "config", "tokens": 512, "config": config}
    assert "partial_rotary_factor=" in answered(state, lookup)["why"]
    assert checked(state)["config"]["rope_parameters"] == rotary
    for family in config_types():
        step = [key for key, kind in kinds(family).items() if kind == STEP and "rope_" not in key]
        told = dict.fromkeys(step, False)
        assert config_of({"model_type": family} | told) == {"model_type": family} | told


def test_lists_of_a_config_reach_the_page():
    """A number for each pair of values, or a flag for each layer; and that no token pads."""
    rope = {"rope_type": "longrope", "short_factor": [1.0] * 4, "long_factor": [2.0] * 4}
    for config in (
        {"model_type": "phi3", "rope_scaling": rope, "pad_token_id": None},
        {"model_type": "smollm3", "no_rope_layers": [1, 1, 0]},
    ):
        assert config_of(config) == config


@pytest.mark.parametrize("key", ["rope_scaling", "rope_parameters"])
@pytest.mark.parametrize(
    "scaled",
    [
        {
            "rope_type": "llama3",  # as Llama-3.1's config.json has it
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        },
        {"type": "yarn", "factor": 40, "mscale": 1.0, "beta_fast": 32},
        {"type": "linear", "factor": 4.0},
    ],
    ids=lambda each: each.get("rope_type") or each["type"],
)
def test_scaled_positions_of_a_pasted_config_are_whole(lookup, key, scaled):
    """The page dropped what a kind of scaling cannot be without, and refused each such config."""
    config = {
        "model_type": "llama",
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 16,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
        key: scaled,
    }
    state = {"model": "config", "tokens": 512, "precision": "bf16", "config": config}
    found = answered(state, lookup)
    wanted = estimate(Model.from_config(config), "bf16", Run(tokens=512))
    assert found["peak"] and found["total"] == wanted.total()


def test_the_attention_of_a_model_is_its_own(lookup):
    """gemma2 has no SDPA: the page, which says nothing of it, gives what transformers gives."""
    state = {"model": "gemma-2-2b", "tokens": 512}
    own = answered(state, lookup)
    assert own["peak"] and own == answered(state | {"attention": "own"}, lookup)
    assert own["total"] == answered(state | {"attention": "eager"}, lookup)["total"]
    assert "eager attention only" in answered(state | {"attention": "sdpa"}, lookup)["why"]


def test_every_preset_has_its_peak(lookup):
    """All but those of families whose steps were not counted for the page, which it names."""
    without = set()
    for name in sorted(PRESETS):
        found = answered({"model": name, "tokens": 256}, lookup)
        assert found["parameters"] == Model.preset(name).parameter_count
        if not found["peak"]:
            family = Model.preset(name).family
            without.add(family)
            assert found["why"] == f"steps of {family} are not supported on this page"
    assert without == {"nanochat"}


SMALL = {"layers": 5, "d_model": 64, "d_ff": 96, "heads": 4, "kv_heads": 2, "head_dim": 16}
SMALL |= {"vocab": 512, "positions": 512, "tied": True}
EXPERTS = {"experts": 4, "experts_per_token": 2, "expert_ff": 64, "shared_ff": 2}
# Keys that a config of a family needs beside its sizes.
_DEEPSEEK = {"num_key_value_heads": 4, "first_k_dense_replace": 1, "kv_lora_rank": 24}
_DEEPSEEK |= {"qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16}
_DEEPSEEK |= {"tie_word_embeddings": False}
_GROUPED = _DEEPSEEK | {"q_lora_rank": 40, "n_group": 2, "topk_group": 1}
BESIDE = {
    "glm4_moe": {"attention_bias": True},
    "deepseek_v3": _GROUPED,
    "deepseek_v2": _GROUPED | {"topk_method": "group_limited_greedy"},
    "llama4_text": {"num_experts_per_tok": 1, "attention_chunk_size": 32}
    | {"tie_word_embeddings": False},
}


def sized_as(family, sizes):
    """A config of these sizes, by the field of Model."""
    shape = record_of(family).shape
    return {shape[field][0]: size for field, size in sizes.items() if field in shape}


@pytest.mark.sample(29)
@pytest.mark.parametrize("family", tabled())
@pytest.mark.parametrize("checkpoint", ["none", "block"])
def test_each_family_has_the_peak_of_its_step(lookup, family, checkpoint):
    """With a window that the tokens reach, where its layers can have one."""
    sizes = SMALL | ({"kv_heads": 4} if family in FIXED_HEADS else {}) | EXPERTS
    config = sized_as(family, sizes)
    config |= {"model_type": family, "pad_token_id": None}
    config |= BESIDE.get(family, {}) | {"sliding_window_pattern": 3, "no_rope_layer_interval": 3}
    known = record_of(family)
    masked = "windowed" in known.counted("attentions") or known.windows == "both"
    if masked and family != "llama4_text":
        config["sliding_window"] = 32
    state = {"model": "config", "config": config, "tokens": 100, "batch": 3}
    for precision in ("bf16", "autocast"):
        state |= {"precision": precision, "checkpoint": checkpoint}
        found = answered(state, lookup)
        assert found["peak"], found["why"]
        assert found["total"] == step_of(checked(state)).peak.bytes


_ONE_GROUP = _DEEPSEEK | {"n_group": 1, "topk_group": 1, "first_k_dense_replace": 3}
_MAVERICK = {"num_experts_per_tok": 1, "use_qk_norm": False, "interleave_moe_layer_step": 2}
OTHER_FORMS = [
    ("deepseek_v3", _ONE_GROUP | {"q_lora_rank": 40}),
    ("deepseek_v3", _ONE_GROUP | {"q_lora_rank": None}),
    ("deepseek_v2", _ONE_GROUP | {"q_lora_rank": None}),
    ("llama4_text", _MAVERICK | {"num_hidden_layers": 4}),
    ("llama4_text", _MAVERICK | {"num_hidden_layers": 8}),
    ("llama4_text", _MAVERICK | {"num_hidden_layers": 24}),
]


@pytest.mark.parametrize(("family", "keys"), OTHER_FORMS)
def test_other_forms_have_the_peak_of_their_step(lookup, family, keys):
    """And layers of three kinds: without experts, with them, and those that turn nothing."""
    sizes = SMALL | EXPERTS | {"layers": 6}
    config = sized_as(family, sizes)
    config |= {"model_type": family, "pad_token_id": None, "tie_word_embeddings": False} | keys
    state = {"model": "config", "config": config, "tokens": 100, "optimizer": "sgd"}
    for precision, checkpoint, attention in (
        ("bf16", "none", "sdpa"),
        ("bf16", "block", "eager"),
        ("autocast", "block", "sdpa"),
        ("autocast", "none", "eager"),
    ):
        state |= {"precision": precision, "checkpoint": checkpoint, "attention": attention}
        found = answered(state, lookup)
        assert found["peak"], found["why"]
        step = step_of(checked(state))
        assert found["total"] == step.peak.bytes
        tops = {name: ledger.total() for name, ledger in hills(step).items()}
        assert {name: size for name, size, _ in found["hills"]} == tops


def test_the_cache_of_a_latent_is_one_row_a_token():
    model, run = Model.preset("deepseek-v3"), Run(batch=2, tokens=4096)
    assert cache_of(model, run) == 2 * 4096 * 70_272


_TWELVE = {"qk_nope_head_dim": 12, "qk_rope_head_dim": 12}
REFUSED = {
    "output_router_logits=“True”": ("olmoe", {"output_router_logits": True}),
    "K=1": ("mixtral", {"num_key_value_heads": 1}),
    "tie_word_embeddings=“False”": ("gemma2", {"tie_word_embeddings": False}),
    "as many key/value heads": ("gemma3_text", {"num_key_value_heads": 4}),
    "layers of gemma2 in this order": ("gemma2", {"layer_types": ["full_attention"] * 8}),
    "keys of a olmoe config": ("olmoe", {"norm_topk_prob": True}),
    "k=1": ("mixtral", {"num_experts_per_tok": 1}),
    "changes its logits": ("granite", {}),
    "v_head_dim=“24”": ("deepseek_v3", _GROUPED | {"v_head_dim": 24}),
    "qk_nope_head_dim=“12”": ("deepseek_v3", _GROUPED | _TWELVE),
    "keys of a deepseek_v3 config": ("deepseek_v3", _GROUPED | {"rope_interleave": False}),
    "layers of deepseek_v3 in": ("deepseek_v3", _GROUPED | {"first_k_dense_replace": 0}),
    "keys of a llama4_text config": ("llama4_text", {"num_experts_per_tok": 2}),
    "layers of llama4_text in": (
        "llama4_text",
        {"num_experts_per_tok": 1, "interleave_moe_layer_step": 3, "use_qk_norm": False},
    ),
}


@pytest.mark.parametrize("words", sorted(REFUSED))
def test_what_was_not_counted_is_refused_by_name(lookup, words):
    family, keys = REFUSED[words]
    sizes = SMALL | EXPERTS | {"layers": 8}
    config = sized_as(family, sizes)
    config |= {"model_type": family, "pad_token_id": None} | keys
    state = {"model": "config", "config": config, "tokens": 128, "checkpoint": "block"}
    state["loss"] = "chunked" if family == "granite" else "plain"
    found = answered(state, lookup)
    assert not found["peak"] and words in found["why"]


@pytest.mark.parametrize("family", [name for name in tabled() if record_of(name).counted("config")])
def test_the_values_that_were_counted_are_those_of_the_class(family):
    model = Model(family=family, layers=2, d_model=64, d_ff=64, heads=4, vocab=64, positions=64)
    run = Run(tokens=32)
    told = model.replace(config=record_of(family).counted("config"))
    assert simulate(told, "fp32", run).peak.contents == simulate(model, "fp32", run).peak.contents


@pytest.mark.parametrize("family", ["llama", "nanochat", "gpt2"])
def test_the_fullest_stage_is_among_those_that_are_asked(family):
    sizes = {"d_model": 64, "heads": 4, "vocab": 999, "d_ff": 64, "positions": 64}
    if family == "nanochat":  # where a table of every second layer outweighs the embedding
        sizes["head_dim"] = 64
    for layers, stages in [(n, k) for n in range(1, 18) for k in range(1, n + 1)]:
        model, cut = Model(family=family, layers=layers, **sizes), Sharding(pipeline=stages)
        recipe = recipe_of(checked({}))
        every = [sum(resident(model, recipe, cut, at).values()) for at in range(stages)]
        stage, figures = fullest(model, recipe, cut)
        assert sum(figures.values()) == max(every) and stage == every.index(max(every))


@pytest.mark.parametrize("state", HOSTILE, ids=lambda state: str(state)[:60])
def test_a_hostile_state_is_answered_by_one_line(lookup, state):
    found = outcome(json.dumps(state), lookup)
    assert list(found) == ["error"]
    own = found["error"].replace(", ".join(config_types()), "")  # one says what it would know
    assert "\n" not in found["error"] and 0 < len(own) < 300


def test_the_engine_refuses_in_the_same_words(folder, lookup):
    agree(folder, lookup, HOSTILE)


def test_a_pasted_text_is_read_as_data(folder):
    good = json.dumps(
        {"model_type": "llama", "hidden_size": 64, "rope_scaling": {"type": "linear"}}
    )
    texts = [
        good,
        "",
        "{",
        "[1]",
        "null",
        '{"a": NaN}',
        '{"a": 1e999}',
        MARKUP,
        "[" * 100_000,
        '{"a":' * 100 + "1" + "}" * 100,
        "x" * 10_000_000,
        '{"__proto__": {"polluted": 1}, "model_type": "llama"}',
        '{"hidden_size": 123456789012345678901234567890}',
    ]
    found = there(folder, [], texts)["configs"]
    assert found[0]["config"] == json.loads(good)
    for text, made in zip(texts[1:11], found[1:11], strict=True):
        assert set(made) == {"error"} and len(str(made["error"])) < 120, text[:40]
    assert found[11]["config"] == {"model_type": "llama"}
    assert found[12]["config"]["hidden_size"] > 10**9  # Python refuses it by name


def test_a_preset_is_the_preset(lookup):
    for name in ("llama-3-8b", "qwen3-0.6b", "gpt2"):
        found = answered({"model": name, "tokens": 512, "batch": 2}, lookup)
        assert found["parameters"] == Model.preset(name).parameter_count
