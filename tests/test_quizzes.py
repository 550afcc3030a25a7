"""Quizzes: six questions a chapter, every number computed, the same on page, sheet and widget."""

import html
import json
import re
import tomllib
from pathlib import Path

import pytest
import quizzes as pages
from test_pages import SITE, Watched, browser, roots  # noqa: F401

from memlab import Model, quizzes, text
from memlab.base.message import is_message
from memlab.base.messages import use_language
from memlab.quizzes import expression, quiz
from memlab.quizzes.questions import ABC, EXPRESSION, FOLDER, marked, plain

ROOT = Path(__file__).resolve().parent.parent
CHAPTERS = sorted(path.stem for path in (ROOT / "notebooks").glob("[0-9]*.ipynb"))
LABELS = quizzes.labels()
# A number by itself; bf16, Llama-3-8B and 8-bit are names, and so is the pattern of two in four.
TYPED = re.compile(r"(?<![\w.-])\d[\d,.]*(?![\w-])")
NAMED = re.compile(r"\{[^{}]+\}|`[^`]+`|2:4|H100 80GB")
BUILT = SITE / "en" / "notebooks"
built = pytest.mark.skipif(not BUILT.is_dir(), reason="no book: `make book` builds it")


def read(label):
    return tomllib.loads((FOLDER / f"{label}.toml").read_text(encoding="utf-8"))["question"]


def texts(question):
    return [question[part] for part in ("ask", "right", "because")] + sum(question["wrong"], [])


@pytest.fixture(scope="module")
def shown():
    """label -> questions, computed once."""
    use_language("en")
    return {label: quiz(label).questions for label in LABELS}


def test_every_chapter_has_a_quiz_and_every_quiz_a_chapter():
    found = [(path.stem, label) for path, label in pages.chapters(ROOT)]
    assert [name for name, _ in found] == CHAPTERS and len(CHAPTERS) == 34
    assert sorted(label for _, label in found) == LABELS


@pytest.mark.parametrize("label", LABELS)
def test_a_quiz_has_six_questions_each_with_one_right_choice(label, shown):
    assert len(shown[label]) == 6
    assert len({each.ask for each in shown[label]}) == 6
    for each in shown[label]:
        assert [right for _, right, _ in each.choices].count(True) == 1
        assert len(each.choices) in (3, 4)
        said = [words for words, _, _ in each.choices]
        assert len(set(said)) == len(said), "two choices are alike"
        assert all(why.strip().endswith((".", "?", ":")) for _, _, why in each.choices)
        assert ABC.index(each.answer) == [right for _, right, _ in each.choices].index(True)


@pytest.mark.parametrize("label", LABELS)
def test_no_number_is_typed_and_every_question_computes(label):
    for question in read(label):
        for words in texts(question):
            assert TYPED.findall(NAMED.sub("X", words)) == [], words
        assert "holds" in question or any(map(EXPRESSION.search, texts(question))), question["ask"]
        # Of a choice without a value, something must prove it or explain it with one.
        assert set(question) <= {"ask", "right", "because", "wrong", "holds"}


def test_a_typed_number_would_be_seen():
    assert TYPED.findall(NAMED.sub("X", "It takes 14.96 GiB, in bf16, {1 + 1} of Llama-3-8B")) == [
        "14.96"
    ]


def test_the_right_choice_is_not_always_in_the_same_place(shown):
    letters = [each.answer for questions in shown.values() for each in questions]
    assert all(len(letters) / 5 < letters.count(letter) for letter in "ABC")


def test_a_quiz_says_what_its_chapter_says(shown):
    """A few answers by the functions that the chapters call, and not by the expressions."""
    llama = Model.preset("llama-3-8b")
    right = {
        label: [next(w for w, ok, _ in q.choices if ok) for q in questions]
        for label, questions in shown.items()
    }
    assert right["kv-cache"][0] == text(2**30)
    assert right["gradients"][0] == text(4 * llama.parameter_count)
    assert right["step"][2] == "31.11 GiB" and right["small-model"][1] == "3.801 GiB"
    assert right["serving"][1] == "55" and right["free-memory"][2] == "127,904,896"


def test_an_expression_computes_with_memlabs_formulas():
    names = {"layers": 32}
    asked = "text(8192 * kv_cache.per_token(layers, kv_heads=8, head_dim=128))"
    assert expression.value(asked, names) == "1 GiB"
    assert expression.value("1 if layers > 8 and not layers == 9 else [2, 3][0]", names) == 1


@pytest.mark.parametrize(
    "words, why",
    [
        ("(lambda: 1)()", "Lambda"),
        ("[x for x in (1, 2)]", "ListComp"),
        ("{'a': 1}", "Dict"),
        ("f'{1}'", "JoinedStr"),
        ("(x := 1)", "NamedExpr"),
        ("text.__globals__", "__globals__"),
        ("'{0.__class__}'.format(text)", "format"),
        ("__import__('os')", "__import__"),
        ("open('/etc/passwd')", "open"),
        ("kv_cache.os", "os"),
        ("1 +", "no expression"),
        ("1 / 0", "ZeroDivisionError"),
    ],
)
def test_an_expression_can_do_nothing_else(words, why):
    with pytest.raises(ValueError, match=re.escape(why)):
        expression.value(words, {})


QUESTION = """
[[question]]
ask = "How many?"
right = "{%s}"
because = "Because."
wrong = [["one", "No."], ["two", "No."]]
holds = "%s"
"""


@pytest.mark.parametrize(
    "right, holds, why",
    [
        ("1 / 2", "True", "make it text"),
        ("1 < 2", "True", "make it text"),
        ("3", "1 > 2", "does not hold"),
        ("3", "1", "does not hold"),
        ("nothing", "True", "nothing"),
    ],
)
def test_a_question_that_is_not_true_is_refused(tmp_path, monkeypatch, right, holds, why):
    monkeypatch.setattr("memlab.quizzes.questions.FOLDER", tmp_path)
    (tmp_path / "broken.toml").write_text(QUESTION % (right, holds), encoding="utf-8")
    with pytest.raises((ValueError, TypeError), match=why):
        quiz("broken").questions  # noqa: B018


def test_an_unknown_label_names_the_closest():
    with pytest.raises(ValueError, match="'weight'; closest: weights"):
        quiz("weight")


def test_every_sentence_is_one_that_a_translator_gets():
    import sources

    asked = set(sources.messages())
    for label in LABELS:
        assert {words for words in quizzes.sentences(label) if is_message(words)} <= asked
    assert {pages.HEADING, pages.HOW} <= asked


def test_a_page_in_another_language_has_its_words():
    words = {
        "How much KV cache does one conversation of {1} tokens with Llama-3-8B take in bf16?": ""
    }
    words = dict.fromkeys(words, "Quanto ocupa {1}?")
    page = quiz("kv-cache").html(lambda told: pages.rendered(told, words, "pt-BR"))
    assert "Quanto ocupa 8.192?" in page


def test_the_widget_answers_each_choice(shown):
    pytest.importorskip("ipywidgets")
    form = quiz("weights").widget()
    *forms, score = form.children
    assert len(forms) == 6
    for each, one in zip(shown["weights"], forms, strict=True):
        head, choice, answer = one.children
        assert marked(each.ask) in head.value
        assert [words for words, _ in choice.options] == [plain(w) for w, _, _ in each.choices]
        assert choice.value is None and answer.value == ""
        for at, (_, right, why) in enumerate(each.choices):
            choice.value = at
            assert ("✓" if right else "✗") in answer.value and marked(why) in answer.value
    firsts = sum(each.choices[0][1] for each in shown["weights"])
    assert score.value == f"Right at the first try: {firsts} of 6"


def test_without_a_kernel_the_widget_is_the_pages_html():
    bundle = quiz("weights")._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    assert bundle["text/html"] == quiz("weights").html()
    assert "1. Which part of Llama-3-8B" in bundle["text/plain"]


def plain_text(markup):
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", markup)).split())


@built
@pytest.mark.parametrize("name", CHAPTERS)
def test_every_chapter_of_the_book_has_its_quiz(name, shown):
    label = {path.stem: label for path, label in pages.chapters(ROOT)}[name]
    page = (BUILT / f"{name}.html").read_text(encoding="utf-8")
    assert page.count('<div class="memlab-quiz">') == 1 and page.count("<fieldset>") == 6
    assert 'src="../_static/quiz.js' in page
    said = plain_text(page[page.index('<div class="memlab-quiz">') :])
    assert said.startswith(plain_text(quiz(label).html()))
    at = page.index(f'id="quiz-{label}"')
    assert at < page.index('id="exercises"')
    downloaded = SITE / "en" / "_sources" / "notebooks" / f"{name}.ipynb"
    cells = json.loads(downloaded.read_text(encoding="utf-8"))["cells"]
    assert f'quiz("{label}")' in next(cell["source"] for cell in cells if cell["id"] == "quiz")


@built
def test_the_script_is_loaded_where_a_quiz_is_and_nowhere_else():
    for path in (SITE / "en").rglob("*.html"):
        if "_static" not in path.parts:
            page = path.read_text(encoding="utf-8")
            assert ("_static/quiz.js" in page) == ('class="memlab-quiz"' in page), path


@built
def test_a_choice_brings_its_sentence(browser, roots, shown):  # noqa: F811
    with Watched(browser, roots["file"]) as watched:
        page = watched.page
        page.goto(roots["file"] + "en/notebooks/02_weights.html")
        for at, each in enumerate(shown["weights"]):
            box = page.locator(".memlab-quiz fieldset").nth(at)
            said = box.locator(".memlab-quiz-said")
            assert not said.is_visible() and said.get_attribute("aria-live") == "polite"
            for i, (words, right, why) in enumerate(each.choices):
                box.locator("label").nth(i).click()
                assert said.is_visible() and said.get_attribute("data-kind") == (
                    "right" if right else "wrong"
                )
                assert plain(why) in " ".join(said.inner_text().split())
                assert said.inner_text().startswith("✓ " if right else "✗ "), words
        firsts = sum(each.choices[0][1] for each in shown["weights"])
        score = page.locator(".memlab-quiz-score").inner_text()
        assert score == f"Right at the first try: {firsts} of 6"
        assert watched.wrong == []


@built
def test_the_keyboard_alone_answers(browser, roots):  # noqa: F811
    with Watched(browser, roots["http"]) as watched:
        page = watched.page
        page.goto(roots["http"] + "en/notebooks/07_step.html")
        page.locator(".memlab-quiz input").first.focus()
        page.keyboard.press("Space")
        page.keyboard.press("ArrowDown")
        assert page.locator(".memlab-quiz input:checked").get_attribute("value") == "B"
        assert page.locator(".memlab-quiz-said").first.is_visible()
        assert watched.wrong == []


@built
def test_without_scripts_the_answers_are_in_a_fold(browser, roots, shown):  # noqa: F811
    with Watched(browser, roots["http"], java_script_enabled=False) as watched:
        page = watched.page
        page.goto(roots["http"] + "en/notebooks/02_weights.html")
        fold = page.locator(".memlab-quiz details").first
        assert not fold.locator("li").first.is_visible()
        fold.locator("summary").click()
        assert fold.locator("li").count() == len(shown["weights"][0].choices)
        for i, (_, _, why) in enumerate(shown["weights"][0].choices):
            assert plain(why) in " ".join(fold.locator("li").nth(i).inner_text().split())


@built
def test_each_sheet_is_a_page_of_paper_and_the_answers_are_last(browser, roots, shown):  # noqa: F811
    with Watched(browser, roots["http"]) as watched:
        page = watched.page
        page.goto(roots["http"] + "en/quizzes.html")
        page.emulate_media(media="print")
        sheets = page.locator("section:has(> .memlab-quiz-sheet)")
        assert sheets.count() == len(CHAPTERS)
        high = [sheets.nth(i).evaluate("e => e.getBoundingClientRect().height") for i in (0, 7, 33)]
        assert all(height < 1100 for height in high), "more than a sheet of A4"
        breaks = sheets.evaluate_all("all => all.map(e => getComputedStyle(e).breakBefore)")
        assert set(breaks) == {"page"}
        for path, label in pages.chapters(ROOT):
            row = page.locator(f'tr:has(a[href$="{path.stem}.html#quiz-{label}"]) td')
            letters = "".join(row.all_inner_texts()[1:]).strip()
            assert letters == "".join(each.answer for each in shown[label])
        last = page.locator("#quizzes-to-print > section").last
        assert last.locator("table").count() == 1
        assert last.evaluate("e => getComputedStyle(e).breakBefore") == "page"
        assert watched.wrong == []
