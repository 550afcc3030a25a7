"""A chapter's sliders answer in the language of the page, as its stored picture does."""

import json

import catalogue
import pytest
from test_pages import SITE, Watched, browser, roots  # noqa: F401

from memlab.base.messages import catalogue as messages_of

CHAPTER = "notebooks/27_divide_text.html"  # one that is whole in every language


@pytest.mark.parametrize("language", catalogue.languages())
def test_a_slider_answers_in_the_language_of_the_page(browser, roots, language):  # noqa: F811
    if not (SITE / language / CHAPTER).exists():
        pytest.skip(f"no book in {language}")
    with Watched(browser, roots["http"]) as watched:
        page = watched.page
        page.goto(f"{roots['http']}{language}/{CHAPTER}")
        page.wait_for_selector(".memlab-question[data-live] input", timeout=20_000)
        place = page.locator(".memlab-question[data-live]").first
        told = SITE / language / "_static" / "answers" / "27_divide_text.json"
        text = json.loads(told.read_text("utf-8"))
        asked = text["questions"][0]
        before = place.locator(".memlab-answer").inner_text()
        place.locator("input").first.press("ArrowRight")
        after = place.locator(".memlab-answer").inner_text()
        assert after != before and place.locator("strong").first.inner_text() == asked["question"]
        weights = messages_of(language)["weights"]
        assert weights != "weights" and weights in after and "weights" not in after
        assert watched.wrong == []
