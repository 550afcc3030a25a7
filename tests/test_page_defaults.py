"""What a training framework takes by itself: shown in the form, in force, and never advised."""

import json
import shlex
from itertools import product

import peaks_seal
import pytest

from memlab.cli import main
from memlab.page.answer import answered, outcome
from memlab.page.controls import OWN, PRECISIONS, checked
from memlab.page.own_values import own_values
from memlab.page.peak_files import reader
from memlab.page.question import label_of, model_of, recipe_of, run_of
from memlab.page.sentences import CHANGES
from memlab.page.simulated import answer as simulated_answer
from memlab.recipe import Recipe
from memlab.run.loops import LOOPS, TAUGHT
from memlab.run.optimizer_loops import loop_of

LOOKUP = reader(peaks_seal.TARGET)
# Each is too much for its card in some of the loops, and as it comes or with something chosen.
STATES = [
    {},
    {"card": "RTX 4090"},
    {"card": "RTX 4090", "trained": "qlora"},
    {"card": "RTX 4090", "trained": "lora", "tokens": 16384},
    {"card": "A100 40GB", "checkpoint": "none", "model": "qwen3-4b"},
    {"card": "A100 40GB", "checkpoint": "block", "model": "qwen3-4b"},
    {"card": "A100 40GB", "optimizer_impl": "foreach", "model": "qwen3-4b", "batch": 4},
    {"card": "A100 40GB", "optimizer_impl": "fused", "model": "qwen3-4b"},
    {"card": "RTX 4090", "precision": "bf16", "model": "qwen3-1.7b", "batch": 8},
    {"card": "RTX 4090", "precision": "fp32", "model": "qwen3-0.6b", "batch": 8},
    {"card": "RTX 4090", "precision": "autocast", "model": "llama-3.2-1b", "batch": 4},
    {"card": "RTX 4090", "optimizer": "bnb_adamw8bit", "model": "qwen3-1.7b", "batch": 8},
    {"card": "RTX 4090", "attention": "eager", "model": "gemma-2-2b", "tokens": 2048},
    {"card": "RTX 4090", "data": 2, "model": "qwen3-1.7b", "batch": 8},
]
# The same for steps that are simulated.
CARD = {"card": "other", "gib": 2, "model": "tiny-llama", "tokens": 2048}
SMALL = [
    CARD | {"batch": 16},
    CARD | {"batch": 64, "checkpoint": "none"},
    CARD | {"batch": 16, "precision": "fp32", "optimizer_impl": "foreach"},
]


def in_force(state):
    """All that a state says or its framework takes: what the controls stand for."""
    whole = checked(state)
    recipe, run = recipe_of(whole), run_of(whole)
    usual = own_values(whole)["attention"].values["value"]
    return {
        "formats": recipe.replace(name=""),
        "loop of the optimizer": loop_of(recipe, run),
        "attention": run.attention or usual,
        "checkpointing": run.checkpointing,
        "rest": run.replace(optimizer_impl=None, attention=None, checkpoint=None),
    }


def advised(state, ask=answered):
    """What an answer advises: (its words, the state before, the state with it)."""
    told = ask(state, LOOKUP)
    before = state
    for words, sets in zip(told["steps"], told["sets"], strict=True):
        yield str(words), before, state | sets
        before = state | sets
    for words, _, sets in told["over"]:
        yield str(words), state, state | sets


def simulated(state, lookup):
    """Of a step with a teacher, which no table has, the answer of the package."""
    return json.loads(simulated_answer(json.dumps(state), advise=True))


@pytest.mark.parametrize("loop", LOOPS)
def test_no_advice_is_in_force_already(loop):
    seen = 0
    ask, states = (simulated, SMALL) if loop in TAUGHT else (answered, STATES)
    for more in states:
        state = {"loop": loop} | more
        for words, before, after in advised(state, ask):
            seen += 1
            was, then = in_force(before), in_force(after)
            assert was != then, (state, words)
            if "gradient checkpointing" in words:
                assert was["checkpointing"] == "none" and then["checkpointing"] == "block"
            if words.startswith("fused AdamW"):
                assert was["loop of the optimizer"] != "fused"
            if words.startswith(CHANGES["autocast"]):
                assert not was["formats"].autocast
    assert seen > len(states) // 2


@pytest.mark.parametrize(("loop", "trained"), [*product(LOOPS, ("all", "qlora"))])
def test_the_form_shows_the_value_that_is_in_force(loop, trained):
    """To choose the value that the default is shown to be changes no byte of the answer."""
    state = {"loop": loop, "trained": trained, "model": "qwen3-4b", "tokens": 2048}
    told = answered(state, LOOKUP, advise=False)
    shown = {name: said.values["value"] for name, said in told["own"].items()}
    labels = {label: name for name, (label, _) in PRECISIONS.items()}
    chosen = {"checkpoint": {"off": "none", "on": "block"}[shown["checkpoint"]]}
    chosen |= {"precision": labels[shown["precision"]], "attention": shown["attention"]}
    chosen |= {"optimizer_impl": shown["optimizer_impl"]}
    again = answered(state | chosen, LOOKUP, advise=False)
    assert again["rows"] == told["rows"] and again["hills"] == told["hills"]
    assert again["own"] == told["own"]  # what a choice replaces is shown beside it
    called = LOOPS[loop].called
    for name in ("checkpoint", "precision"):
        assert told["own"][name].values.get("program", "") == called


@pytest.mark.parametrize("loop", [loop for loop in LOOPS if loop not in TAUGHT])
def test_the_verdict_is_the_shells(loop, capsys):
    """A framework's defaults are the same at both doors, which each needs nothing but its name."""
    told = answered({"loop": loop, "tokens": 2048}, LOOKUP, advise=False)
    main(["estimate", "llama-3-8b", "--tokens", "2048", "--loop", loop, "--json"])
    found = json.loads(capsys.readouterr().out)
    assert told["total"] == found["peak"]["bytes"]
    own = answered({"loop": loop, "tokens": 2048}, LOOKUP, advise=False)["command"]
    assert "--checkpoint" not in own and "--recipe" not in own
    if loop != "plain":
        assert shlex.split(own)[-2:] == ["--loop", loop]


def test_another_optimizers_loop_is_no_frameworks_default():
    state = checked({"loop": "sft", "optimizer": "adamw8bit"})
    assert own_values(state)["optimizer_impl"] == "default: compiled"
    assert own_values(checked({"loop": "sft"}))["optimizer_impl"] == "default of SFTTrainer: fused"


def test_a_config_whose_dtype_no_recipe_has_still_shows_the_other_defaults():
    config = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4}
    config |= {"num_hidden_layers": 2, "intermediate_size": 128, "vocab_size": 512}
    state = {"model": "config", "config": config | {"dtype": "auto"}, "tokens": 64}
    assert "dtype='auto'" in outcome(json.dumps(state), LOOKUP)["error"]
    told = answered(state | {"precision": "bf16"}, LOOKUP)
    assert {*told["own"]} == {"attention", "checkpoint"} and "error" not in told


def test_half_precision_has_a_name_too():
    whole = checked({"model": "pythia-160m", "tokens": 512})
    assert own_values(whole)["precision"] == "default: fp16 weights and states"
    assert recipe_of(whole).weights == "fp16" and whole["precision"] == OWN
    assert label_of(Recipe.named("bf16")) == PRECISIONS["bf16"][0]
    assert model_of(whole).published == "fp16"
