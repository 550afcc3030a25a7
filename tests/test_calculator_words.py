"""What the calculator says can be said in another language, by the build and by the page alike."""

import json
import pickle
import re
import shutil
import subprocess
from pathlib import Path

import calculator
import catalogue
import peaks
import pytest
from calculator_states import ADAPTED, HOSTILE, LOOPED, RARE, SERVED, SHARDED, TYPED, states
from test_numerals import KEPT, TURNED

from memlab.base.message import PLACE, Listed, Message, parts, rendered
from memlab.devices import devices
from memlab.families import NAMES as FAMILIES
from memlab.model.presets import PRESETS
from memlab.page import serve_words, shared_words
from memlab.page import words as sentences
from memlab.page.answer import outcome
from memlab.page.controls import OPTIMIZERS
from memlab.page.peak_files import reader
from memlab.run.loops import LOOPS
from memlab.run.optimizer_loops import LOOPS as OPTIMIZER_LOOPS

ROOT = Path(__file__).parent.parent
# What a language may write in its own way, and what only looks like it.
NUMBERS = [each for pair in TURNED.items() for each in pair] + list(KEPT)


MANY = 600
STRANGE = ("", "constructor", "__proto__", "{card}", "$& \\1 a: b, c")
STRANGE += (Message("{a}", a="{b}"), Message("{a}", a="constructor"), Listed("{a}", ["$&", "", 3]))
VOWELS = str.maketrans("aeiouAEIOU", "áéíóúÁÉÍÓÚ")
# What no language changes: names, code, letters of formulas, units.
NAMES = {str(each.name) for each in devices()} | set(PRESETS) | set(OPTIMIZERS) | {"a/model"}
NAMES |= set(FAMILIES) | {state["config"]["model_type"] for state in TYPED}
NAMES |= {loop.called for loop in LOOPS.values() if loop.called} | {
    "memlab trace CONFIG",
    "memlab estimate CONFIG",
    "transformers",
    *("sdpa", "eager"),
    *(loop for loops, own in OPTIMIZER_LOOPS.values() for loop in (*loops, *own.values())),
}
CODE = re.compile(
    "|".join(map(re.escape, sorted(NAMES, key=len, reverse=True)))
    + r"|^\w+(?=: \d+ )"  # a layer
    + r"|“[^”]*”|\b[a-z]+(?:_[a-z]+)+\b|\b(?:bf16|fp32|GiB|MiB|KiB|TiB)\b"
)
# What memlab's other functions say of a config's content is theirs.
OF_CONFIG = re.compile(
    r"(\w+'s )?\w+=\S+ is (a|not described; known)|D=\d+ in |N=\d+ is not|"
    r"attention_dropout=|kv_heads=\d+: latent|layer_types |"
    r"(?!quantization)\w+=.+ is not described: "
)


def marked():
    """Words of a language in which every vowel is marked."""
    return {
        text: "".join(p if i % 2 else p.translate(VOWELS) for i, p in enumerate(_split(text)))
        for text in calculator.words()
    }


def _split(text):
    return re.split(r"(\{\w+\})", text)


@pytest.fixture(scope="module")
def answers():
    """Answers to many states, without those about a config's content."""
    lookup = reader(peaks.kept())
    asked = [*states(MANY, 5), *HOSTILE, *RARE, *TYPED, *SERVED, *ADAPTED, *LOOPED, *SHARDED, {}]
    found = [outcome(json.dumps(state), lookup) for state in asked]
    return [a for a in found if not OF_CONFIG.match(a.get("error") or a["why"])]


@pytest.fixture(scope="module")
def texts(answers):
    """Every text that the page shows of them, each once."""
    found = []
    for one in answers:
        if "error" in one:
            found.append(one["error"])
            continue
        found += [one[name] for name in ("verdict", "heading", "advice", "heights", "picture")]
        found += [one["scale"], one["serving"], one["divides"], *one["steps"], *one["leaves_out"]]
        found += [words for words, _, _ in one["over"]]
        found += one.get("own", {}).values()
        found += [row[key] for row in one["rows"] for key in ("term", "formula")]
    return sorted(set(found) - {""})


def test_no_word_of_an_answer_escapes(texts):
    words = marked()
    assert len(texts) > 1000
    left = {}
    for text in texts:
        plain = re.findall(r"\b[a-z]{3,}\b", CODE.sub(" ", rendered(text, words)))
        if plain := [word for word in plain if re.search("[aeiou]", word)]:
            left[text] = plain
    assert not left


def patterns(told):
    """The patterns and the plain texts that a text is made of."""
    if isinstance(told, Message):
        if not isinstance(told, Listed):
            yield told.pattern
        for value in told.values if isinstance(told, Listed) else told.values.values():
            yield from patterns(value)
    else:
        yield told


def test_every_pattern_is_in_use(answers, texts):
    """Of the sentences that answers are made of, each is met but for some about rare configs."""
    met = {pattern for text in texts for pattern in patterns(text)}
    listed = vars(sentences) | vars(serve_words)
    known = {name: value for name, value in listed.items() if name.isupper()}
    unmet = {n for n, v in known.items() if isinstance(v, str) and v not in met}
    rare = {"NO_KIND", "SLIDING", "SQUARE", "ROPE", "KEY", "WINDOW", "NO_FAMILY", "LAYERS"}
    assert unmet <= rare | {"NO_FAMILY_STEP", "NO_ORDER"}
    told = {text for text in shared_words.ELSEWHERE if "=" in text}
    assert told <= met


@pytest.mark.parametrize("language", [None, *catalogue.languages()])
def test_build_and_page_say_the_same(texts, language):
    if shutil.which("node") is None:
        pytest.skip("no node")
    words = catalogue.translations(language, "calculator-words") if language else marked()
    words = {text: words[text] for text in calculator.words() if text in words}
    asked = [*texts, *map(str, texts), *STRANGE, *NUMBERS]
    done = subprocess.run(
        ["node", str(ROOT / "tests" / "calculator" / "say.mjs")],
        input=json.dumps({"words": words, "texts": parts(asked), "language": language}),
        capture_output=True,
        encoding="utf8",
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [rendered(text, words, language or "en") for text in asked]


def test_the_scripts_say_what_is_listed():
    scripts = "".join(path.read_text("utf-8") for path in (ROOT / "book/calculator").glob("*.mjs"))
    scripts = re.sub(r'" \+\s+"', "", scripts)
    for text in shared_words.SCRIPTS:
        for part in PLACE.split(text)[::2]:
            assert part in scripts, text


WORDS = {"{size} left": "{size} sobram", "a": "um", "{a}, {b}.": "{b} e {a}."}


@pytest.mark.parametrize(
    ("told", "english", "other"),
    [
        ("weights: 3 B", "weights: 3 B", "weights: 3 B"),
        (Message("{size} left", size="2 GiB"), "2 GiB left", "2 GiB sobram"),
        ("2 GiB left", "2 GiB left", "2 GiB left"),
        (
            Message("{a}, {b}.", a=3, b=Message("{size} left", size="a")),
            "3, a left.",
            "um sobram e 3.",
        ),
        (Listed(": ", ["a", Listed(" + ", ["a", "c"])]), "a: a + c", "um: um + c"),
        ("a: a + c", "a: a + c", "a: a + c"),
    ],
)
def test_only_what_is_told_in_parts_is_said_in_parts(told, english, other):
    """A finished text is looked up whole, and never taken apart."""
    assert told == english and rendered(told, WORDS) == other and rendered(told, {}) == english


def test_a_message_has_a_value_for_each_place():
    with pytest.raises(KeyError):
        Message("{size} left")
    one = pickle.loads(pickle.dumps(Message("{a} {1}", 3, a=Listed(", ", ["x", "y"]))))
    assert (
        one == "x, y 3" and one.values == {"1": 3, "a": "x, y"} and one.values["a"].pattern == ", "
    )


def test_the_english_page_holds_no_words():
    assert '"words"' not in calculator.whole()
