"""*Serve* on the page answers as `memlab serve` does, in both engines of the page."""

import contextlib
import io
import json
import re
import shlex

import calculator
import catalogue
import pytest
from calculator_states import SERVED
from test_calculator import agree, folder, lookup  # noqa: F401  fixtures

from memlab import Recipe, Run
from memlab.base.message import Message, rendered
from memlab.cli import main
from memlab.estimate import estimate
from memlab.families import has_config
from memlab.page import serve_words, shared_words
from memlab.page.answer import outcome
from memlab.page.controls import checked
from memlab.page.question import model_of
from memlab.page.serve_answer import recipe_of
from memlab.page.serve_command import packs
from memlab.page.serve_controls import NO_ENGINE
from memlab.step import calls
from memlab.units import text
from memlab.verdict import FITS, room_on


@pytest.fixture(scope="module")
def asked(lookup):  # noqa: F811
    """(state, the page's answer in CPython)."""
    return [(state, outcome(json.dumps(state), lookup)) for state in SERVED]


def described(asked):
    """The states that have an answer and a model that memlab describes, whole."""
    for state, told in asked:
        whole = checked(state)
        if "error" not in told and has_config(
            whole.get("config", {"model_type": "llama"})["model_type"]
        ):
            yield whole, told


def test_the_pages_engine_answers_the_same(asked, folder, lookup):  # noqa: F811
    agree(folder, lookup, [state for state, _ in asked], advised=12)


def test_an_engine_is_what_the_command_line_says(asked, tmp_path, capsys):
    """The line that the page shows is run: the same parts, the same room for conversations."""
    seen = set()
    for state, told in described(asked):
        if state["engine"] == NO_ENGINE:
            continue
        words = shlex.split(told["command"])
        if "config" in state:
            words[2] = str(tmp_path / "config.json")
            (tmp_path / "config.json").write_text(json.dumps(state["config"]))
        status = main([*words[1:], "--json"])
        pool = json.loads(capsys.readouterr().out)
        rows = {row["term"]: row["bytes"] for row in told["rows"]}
        assert {name: pool["rows"].get(name, 0) for name in rows if name != "KV cache"} == {
            name: size for name, size in rows.items() if name != "KV cache"
        }
        room = pool["blocks"] // pool["request_blocks"]
        room = room if pool["sequences"] is None else pool["sequences"]
        assert told["fits"] == (state["users"] <= room) and (status == 0) == pool["starts"]
        assert told["fits"] == (told["total"] <= told["limit"])
        count = "one conversation" if room == 1 else f"{room:,} concurrent conversations"
        each = f"which is {count} of {state['context']:,} tokens"
        assert (each if room else f"{state['context']:,} tokens needs more") in told["serving"]
        assert text(max(0, pool["available"])) in told["serving"]
        assert told["limit"] == sum(pool["rows"].values()) + min(0, pool["available"])
        found: dict = {}
        lines = told["script"].replace("print(found.ledger, found.sequences)", "")
        if "config" not in state:
            exec(compile(lines, "script", "exec"), found)
            assert found["found"].blocks == pool["blocks"]
        seen.add((state["engine"], told["fits"], pool["starts"]))
    assert seen >= {("vllm", True, True), ("vllm", False, True), ("vllm", False, False)}
    assert seen >= {("sglang", False, True)}


def test_without_an_engine_it_is_what_stays_before_a_token_is_read(asked):
    seen = 0
    for state, told in described(asked):
        if state["engine"] != NO_ENGINE:
            continue
        model, rows = model_of(state), {row["term"]: row["bytes"] for row in told["rows"]}
        if packs(state):
            assert told["command"] == ""
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(told["script"], {})
            assert rows["weights"] == int(printed.getvalue())
            continue
        assert rows["weights"] == estimate(model, recipe_of(state))["weights"].derived
        run = Run(phase="decode", batch=state["users"], tokens=state["context"])
        if model.family == "llama" and state["dtype"] in ("auto", "bf16"):
            call = calls.decode(model, Recipe.named("bf16"), run)
            assert rows["KV cache"] == call.rows["kv_cache"] - call.per_token
        assert told["total"] == rows["weights"] + rows["KV cache"]
        word = room_on(told["card"], threads=1).verdict(told["total"]).word
        assert told["fits"] == (word == FITS)
        seen += 1
    assert seen >= 2


def test_a_change_makes_the_room_that_it_promises(asked, lookup):  # noqa: F811
    seen = 0
    for state, told in asked:
        for sets, words in zip(told.get("sets", []), told.get("steps", []), strict=True):
            changed = outcome(json.dumps(state | sets), lookup)
            assert changed["fits"]
            assert f"which is {words.split()[-1]} concurrent conversations" in changed["serving"]
            seen += 1
        if "error" not in told and not told["fits"] and "memlab serve" in told["command"]:
            assert bool(told["steps"]) == (told["advice"] == serve_words.EACH_MAKES_ROOM)
    assert seen > 5


@pytest.mark.parametrize("language", catalogue.languages())
def test_it_can_be_said_in_every_language(asked, language):
    """No small English word is left, and every sentence about serving is met."""
    words = catalogue.translations(language, "calculator-words")
    words = {english: words[english] for english in calculator.words()}
    met = set()
    for _, told in asked:
        texts = [told[name] for name in ("error",) if name in told]
        if not texts:
            texts = [told[name] for name in ("verdict", "heading", "advice", "scale", "serving")]
            texts += [*told["steps"], *told["leaves_out"][:3], told["picture"], told["divides"]]
            texts += [row[key] for row in told["rows"] for key in ("term", "formula")]
        for one in filter(None, texts):
            met.add(one.pattern if isinstance(one, Message) else one)
            assert rendered(one, words) != one or not re.search(r"\b[a-z]{4,}\b", one), one
            left = set(
                re.findall(r"\b(?:the|of|are|need|there|room|tokens that)\b", rendered(one, words))
            )
            assert not left, (one, rendered(one, words))
    serving = vars(serve_words)
    wanted = [n for n in serving if n.isupper()]
    assert len(wanted) > 20
    unmet = {name for name in wanted if serving[name] not in met}
    assert unmet <= {
        "IN_FP8",
        "WEIGHTS_IN_FP8",
        "MORE_SHARE",
        "MORE_CARDS",
    }  # which stand inside of MAKES_ROOM
    assert set(shared_words.OF_ENGINES) <= met
