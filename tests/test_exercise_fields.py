"""The fields under the exercises of a page: the judge of a notebook's cell, in its engine."""

import json
import subprocess
from fractions import Fraction
from pathlib import Path

import exercise_fields
import pytest
from exercise_fields import kept, known, places
from hypothesis import given
from hypothesis import strategies as st
from test_micropython import missing
from test_pages import SITE, Watched, browser, roots  # noqa: F401

from memlab import exercises, units
from memlab.base import messages
from memlab.exercises import judge
from memlab.exercises.field import answered
from memlab.exercises.number import number_in
from memlab.exercises.question import Exercise

ROOT = Path(__file__).resolve().parent.parent
KEPT = {name: one for fields in kept().values() for name, one in fields.items()}
CHAPTER = {name: chapter for chapter, fields in kept().items() for name in fields}
WORDLESS = ["much", "", "1,5 GiB", "12 gib", "9**9**9", "1 +", "1.0.0", "1/0", "'", "½"]


def stand_in(name):
    """The exercise of a notebook, with the answers that the page has: nothing is computed again."""
    one = KEPT[name]
    wrong = {(lambda slip=slip: int(slip)): sentence for slip, sentence in one["wrong"]}
    return Exercise(name, lambda: int(one["right"]), one["hint"], one["unit"], wrong)


def spellings(name):
    """The right answer as people write it."""
    one = KEPT[name]
    count = int(one["right"])
    yield from (f"{count}", f" {count:,} ", f"{count:_}", f"{count} * 2 / 2", f"({count})")
    yield f"{count} {one['unit']}".strip()
    if one["unit"] == "B":
        yield from (units.exact(count), f"'{units.exact(count)}'", f"{count} bytes")


def wrong_one(name):
    """A number that is neither right nor a slip that anybody thought of."""
    one = KEPT[name]
    known = {int(one["right"]), *(int(slip) for slip, _ in one["wrong"])}
    return next(n for n in range(3 * max(known) + 7, 3 * max(known) + 99) if n not in known)


def in_engine(asked, chapters=None):
    if missing():
        pytest.skip(missing())
    chapters = chapters or {name: {"exercises": fields} for name, fields in kept().items()}
    done = subprocess.run(
        ["node", str(ROOT / "tests" / "calculator" / "fields.mjs")],
        input=json.dumps({"files": exercise_fields.files(), "chapters": chapters, "asked": asked}),
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [f"{told['mark']} {told['told']}" for told in json.loads(done.stdout)]


def test_a_page_has_the_exercises_of_its_notebook():
    assert {name: (CHAPTER[name], one["kind"]) for name, one in KEPT.items()} == places()
    assert sorted(KEPT) == exercises.ids()
    for name, sentences in exercises.hints().items():
        assert [KEPT[name]["hint"], *(told for _, told in KEPT[name]["wrong"])] == sentences


@pytest.mark.sample(61)
@pytest.mark.parametrize("name", sorted(KEPT))
def test_a_page_has_the_answers_that_the_notebook_computes(name):
    again = known(exercises._exercise(name))
    assert {"kind": KEPT[name]["kind"]} | again == KEPT[name], "run python tools/exercise_fields.py"


def test_every_exercise_of_every_chapter_is_judged_as_in_its_notebook():
    asked = []
    for name, one in KEPT.items():
        asked += [(name, text) for text in spellings(name)]
        asked += [(name, slip) for slip, _ in one["wrong"]]
        asked += [(name, text) for text in (str(wrong_one(name)), *WORDLESS)]
    told = in_engine([(CHAPTER[name], name, text) for name, text in asked])
    found = dict(zip(asked, told, strict=True))
    for name, one in KEPT.items():
        whole = stand_in(name)
        right = whole.judge(int(one["right"]))
        assert right.startswith("✓ ") and f"{int(one['right']):,}" in right
        assert {found[name, text] for text in spellings(name)} == {right}
        for slip, sentence in one["wrong"]:
            assert found[name, slip] == f"✗ {sentence}" == whole.judge(int(slip))
        assert found[name, str(wrong_one(name))] == f"✗ {one['hint']}"
        for text in (*(slip for slip, _ in one["wrong"]), str(wrong_one(name)), *WORDLESS):
            assert found[name, text] == whole.judge(text), text
    assert len(KEPT) == 137 and len(told) > 3000


@pytest.mark.parametrize("language", messages.languages()[1:])
def test_a_page_speaks_the_language_of_its_notebook(language, tmp_path, monkeypatch):
    monkeypatch.setattr(messages, "_chosen", [language])
    words = messages.catalogue(language)
    exercise_fields.stage(tmp_path, words, language)
    chapters = {
        path.stem: json.loads(path.read_text(encoding="utf-8"))
        for path in (tmp_path / exercise_fields.PLACE).glob("*_*.json")
    }
    assert sorted(chapters) == sorted(kept())
    asked = [(name, one["right"]) for name, one in KEPT.items()]
    asked += [(name, slip) for name, one in KEPT.items() for slip, _ in one["wrong"]]
    asked += [(name, str(wrong_one(name))) for name in KEPT]
    told = in_engine([(CHAPTER[name], name, text) for name, text in asked], chapters)
    for (name, text), said in zip(asked, told, strict=True):
        assert said == stand_in(name).judge(int(text))
    english = [one["hint"] for one in KEPT.values()]
    assert not [said for said in told if said[2:] in english], "a hint that nobody translated"


def test_a_number_is_read_as_its_language_writes_it():
    chapter = {
        "exercises": {"ex": {"right": "1610612736", "unit": "B", "hint": "No.", "wrong": []}}
    }
    texts = ["1,5 GiB", "1.5 GiB", "1.610.612.736", "1,610,612,736", "1.536 MiB", "1536 MiB"]
    portuguese = {
        "pt": chapter | {"language": "pt-BR"},
        "zh": chapter | {"language": "zh-TW"},
    }
    told = in_engine([("pt", "ex", text) for text in texts], portuguese)
    assert told == ["✓ 1.610.612.736 B, 1,5 GiB"] * 6
    told = in_engine([("zh", "ex", text) for text in texts], portuguese)
    assert [said[0] for said in told] == ["✗", "✓", "✗", "✓", "✗", "✓"]
    assert "“1,5 GiB” cannot be read" in told[0] and "did you mean 1.5 GiB?" in told[0]


def test_the_reading_that_is_a_number_is_judged():
    """Of two ways to read a text none may be right: then a number is told what is wrong with it."""
    one = {"right": "1000", "unit": "tokens", "hint": "No.", "wrong": [["1500", "Too many."]]}
    asked = {"readings": ["1.5.00", "1500"], **one}
    assert json.loads(answered(json.dumps(asked))) == ["✗", "Too many."]
    asked["readings"] = ["many", "lots"]
    assert json.loads(answered(json.dumps(asked))) == ["✗", judge.NOT_A_NUMBER]
    with pytest.raises(ValueError, match="'a lot' is no number of an exercise"):
        answered(json.dumps(asked | {"right": "a lot"}))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8_192", 8192),
        ("8,192", 8192),
        ("3 * 2**29", 3 * 2**29),
        ("2·4096·32", 2 * 4096 * 32),
        ("-2**2", -4),
        ("2**-1", Fraction(1, 2)),
        ("7 // 2 - 1", 2),
        ("-7//2", -4),
        ("(1 + 2) * (3 - .5)", Fraction(15, 2)),
        ("1e3", 1000),
        ("2.5E-1", Fraction(1, 4)),
        ("2**3**2", 512),
        ("1_000.000_1", Fraction(10000001, 10000)),
    ],
)
def test_a_calculation_is_a_number(text, value):
    assert Fraction(*number_in(text)) == value


NONE = "|1,5|1,23,456|,5|1__0|_1|1_|2 3|1..2|*|2 *|(1|1)|()|GiB|0x10|1e|1e999|9**9**9|9**999999999"
NONE += "|0**-1|1/0|1//0|2**.5|import os|__import__|١|½|" + "1" * 201


@pytest.mark.parametrize("text", NONE.split("|"))
def test_what_is_no_number_is_none(text):
    assert number_in(text) is None


LEAVES = st.integers(0, 10**6).map(str)


@given(
    st.recursive(
        LEAVES,
        lambda inner: st.tuples(inner, st.sampled_from("+-*/"), inner).map(
            lambda three: f"({three[0]} {three[1]} {three[2]})"
        ),
        max_leaves=6,
    )
)
def test_any_calculation_is_python_s(text):
    try:
        wanted = eval(text, {}, {})
    except ZeroDivisionError:
        assert number_in(text) is None
        return
    found = number_in(text)
    assert float(Fraction(*found)) == pytest.approx(wanted, rel=1e-9, abs=1e-9)


PAGES = [
    path
    for name in sorted(kept())
    for path in sorted(SITE.glob(f"*/notebooks/{name}.html"))
    if (path.parents[1] / "_static" / "calculator" / "micropython.mjs").exists()
]
CHAPTERS = ("02_weights", "17_small_optimizers")


@pytest.fixture(scope="module")
def window(browser, roots):  # noqa: F811
    with Watched(browser, roots["http"]) as watched:
        yield watched


def address(name, language="en"):
    if SITE / language / "notebooks" / f"{name}.html" not in PAGES:
        pytest.skip("no book with an engine: `npm ci` and `make book` make it")
    return f"{language}/notebooks/{name}.html"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(SITE).as_posix())
def test_each_exercise_of_a_page_has_its_field_and_its_solution(path):
    text = path.read_text(encoding="utf-8")
    assert [name.split('"')[0] for name in text.split('data-exercise="')[1:]] == [
        *kept()[path.stem]
    ]
    for name in kept()[path.stem]:
        assert text.count(f'id="title-{name}"') == text.count(f'id="answer-{name}"') == 1
    folds = text.split('tag_solution tag_hide-cell docutils container">')[1:]
    assert len(folds) >= len(kept()[path.stem])
    heads = {fold.split("</summary>")[0].split("title")[-1].split(">")[1] for fold in folds}
    english = path.parts[-3] == "en"
    assert len(heads) == 1 and (heads == {"Solution</p"}) == english
    how_to = path.stem != "one_sheet"  # which says nothing of its cell
    assert text.count('<p class="memlab-by-field">') == how_to
    assert (exercise_words()[0] in text) == (english and how_to), "words that nobody translated"


def exercise_words():
    import memlab_exercises

    return [memlab_exercises.IN_FIELDS, memlab_exercises.BUILT, memlab_exercises.FAILED]


def test_what_stands_around_a_field_is_listed_for_translators():
    import interface
    import memlab_exercises

    field = memlab_exercises.FIELD
    assert {*exercise_words(), "Solution", "Your answer", "Check"} <= {*interface.WORDS}
    page = field.format(name="ex-a-1", page="a", unit="B", build="", failed=exercise_words()[2])
    done = interface.translate(page, {word: "…" for word in interface.WORDS})
    assert not [word for word in interface.WORDS if f'"{word}"' in done or f">{word}<" in done]


@pytest.mark.parametrize("name", CHAPTERS)
@pytest.mark.parametrize("width", [390, 1280])
def test_a_field_is_used_by_the_keyboard_and_moves_nothing(window, name, width):
    page, fields = window.page, kept()[name]
    page.set_viewport_size({"width": width, "height": 800})
    window.asked.clear()  # of the page in another width
    page.goto(window.root + address(name), wait_until="networkidle")
    page.evaluate("localStorage.clear()")
    before = {*window.asked}
    page.evaluate(
        """window.moved = 0; new PerformanceObserver((list) => {
            const text = document.querySelector("article"); // not the contents beside it
            for (const each of list.getEntries())
                if (!each.hadRecentInput && each.sources.some(({ node }) => text.contains(node)))
                    window.moved += each.value;
        }).observe({ type: "layout-shift" })"""
    )
    for number, (exercise, one) in enumerate(fields.items()):
        title = page.locator(f"#title-{exercise}").inner_text()
        field = page.get_by_role("textbox", name=f"Your answer {title}", exact=True)
        form = page.locator(f'[data-exercise="{exercise}"]')
        verdict = form.get_by_role("status")
        if not number:
            assert not [each for each in window.asked - before if "exercises" in each]
        assert page.locator(".memlab-cell:visible").count() == 0
        top = page.evaluate("name => document.getElementById(name).offsetTop", f"label-{exercise}")
        for typed, said in [
            (one["wrong"][0][0], f"✗ Not yet: {one['wrong'][0][1]}"),
            (str(wrong_one(exercise)), f"✗ Not yet: {one['hint']}"),
            (one["right"], f"✓ Right: {stand_in(exercise).judge(int(one['right']))[2:]}"),
        ]:
            field.fill(typed)
            assert verdict.text_content() == ""
            field.press("Enter")
            verdict.filter(has_text=said[0]).wait_for()
            assert verdict.text_content() == said
        assert top == page.evaluate(
            "name => document.getElementById(name).offsetTop", f"label-{exercise}"
        )
    fetched = [each for each in window.asked - before if "_static" in each]
    assert sum(f"exercises/{name}.json" in each for each in fetched) == 1
    assert page.evaluate("window.moved") == 0
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.reload()  # the browser keeps what was right
    for exercise, one in fields.items():
        form = page.locator(f'[data-exercise="{exercise}"]')
        assert form.locator("input").input_value() == one["right"]
        assert form.get_by_role("status").text_content() == "✓ Right: "
    assert window.wrong == []


@pytest.mark.parametrize("kept_before", ["[1]", "{", '{"ex-weights-1": 5}', "null"])
def test_what_a_browser_keeps_may_be_anything(window, kept_before):
    page = window.page
    page.goto(window.root + address(CHAPTERS[0]))
    page.evaluate("text => localStorage.setItem('memlab.exercises', text)", kept_before)
    page.reload()
    form = page.locator('[data-exercise="ex-weights-1"]')
    assert form.locator("input").input_value() == ""
    form.locator("input").fill(KEPT["ex-weights-1"]["right"])
    form.get_by_role("button").click()
    form.locator("[data-mark=✓]").wait_for()
    assert json.loads(page.evaluate("localStorage['memlab.exercises']"))["ex-weights-1"]
    page.evaluate("localStorage.clear()")
    assert window.wrong == []


@pytest.mark.parametrize("how", ["file", "without scripts"])
def test_without_a_server_or_scripts_the_cells_stay(browser, roots, how):  # noqa: F811
    options = {} if how == "file" else {"java_script_enabled": False}
    with Watched(browser, roots["file" if how == "file" else "http"], **options) as watched:
        watched.page.goto(watched.root + address(CHAPTERS[0]))
        assert (
            watched.page.locator(".memlab-exercise:visible, .memlab-by-field:visible").count() == 0
        )
        assert watched.page.locator(".memlab-cell pre:visible").count() == 8
        assert "run the cell" in watched.page.locator(".memlab-by-cell p:visible").inner_text()
        assert watched.wrong == []


def test_a_cell_that_says_more_than_the_others_stays(window):
    """Its run is part of the question; the lines that only a notebook runs do not show."""
    window.page.goto(window.root + address("28_choosing"))
    shown = window.page.locator(".memlab-cell:visible")
    assert [text.strip() for text in shown.all_inner_texts()] == [
        'start = Run(batch=8, tokens=2048, loss="chunked")'
    ]
