"""A chapter's sliders answer in the language of the page, as its stored picture does."""

import json
import re
from pathlib import Path

import catalogue
import pytest
import stage
from test_pages import SITE, Watched, browser, roots  # noqa: F401

from memlab.base.messages import catalogue as messages_of

ROOT = Path(__file__).parent.parent
KEPT = sorted((ROOT / "book" / "_static" / "answers").glob("[0-9]*.json"))
CHAPTER = "notebooks/10_step.html"
WORD = re.compile(r">([^<>]*[^\W\d_]{3}[^<>]*)<")


def stored(name, language):
    """The questions' outputs of a chapter, as its page in a language shows them without scripts."""
    content = json.loads((ROOT / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8"))
    content["cells"] = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
    done = stage.notebook(content, {}, messages_of(language), language)
    outputs = [output for cell in done["cells"] for output in cell["outputs"]]
    pages = ["".join(output.get("data", {}).get("text/html", "")) for output in outputs]
    return [page for page in pages if 'class="memlab-question"' in page]


@pytest.mark.parametrize("language", catalogue.languages())
def test_the_answer_to_the_defaults_is_the_stored_one(language):
    seen = 0
    for path in KEPT:
        pages = stored(path.stem, language)
        kept = stage.answers(json.loads(path.read_text("utf-8")), messages_of(language))
        for question in kept["questions"]:
            at = 0
            for control in question["controls"]:
                at = at * len(control["values"]) + control["default"]
            asked = f"<strong>{stage.html.escape(question['question'], quote=False)}</strong>"
            page = next(p for p in pages if stage.html.unescape(asked) in stage.html.unescape(p))
            for control in question["controls"]:
                assert f"{control['label']}: <strong>" in stage.html.unescape(page)
            words = WORD.findall(question["answers"][at])
            there = "\n".join(WORD.findall(page))  # with the question before it, a hint behind
            assert "\n".join(words) in there, (path.stem, language)
            seen += len(words)
    assert seen >= 150


@pytest.mark.parametrize("language", catalogue.languages())
def test_a_slider_answers_in_the_language_of_the_page(browser, roots, language):  # noqa: F811
    if not (SITE / language / CHAPTER).exists():
        pytest.skip(f"no book in {language}")
    with Watched(browser, roots["http"]) as watched:
        page = watched.page
        page.goto(f"{roots['http']}{language}/{CHAPTER}")
        page.wait_for_selector(".memlab-question[data-live] input", timeout=20_000)
        place = page.locator(".memlab-question[data-live]").first
        text = json.loads((SITE / language / "_static/answers/10_step.json").read_text("utf-8"))
        asked = text["questions"][0]
        before = place.locator(".memlab-answer").inner_text()
        place.locator("input").first.press("ArrowRight")
        after = place.locator(".memlab-answer").inner_text()
        assert after != before and place.locator("strong").first.inner_text() == asked["question"]
        weights = messages_of(language)["weights"]
        assert weights != "weights" and weights in after and "weights" not in after
        assert watched.wrong == []
