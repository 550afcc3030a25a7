"""The story of Part I: one run, whose figures a reader meets again from page to page.

It reads the built pages in the order of their "next" links, as somebody would who reads on.
"""

import posixpath
import re
from functools import cache
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from memlab import Model, Run, text
from memlab.fit import limit_of
from memlab.lab.bill import CHAPTERS, RECIPES, largest
from memlab.step import simulate

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "_build" / "html" / "en"
FIRST, LAST = "intro.html", "notebooks/13_serving.html"
pytestmark = pytest.mark.skipif(not SITE.is_dir(), reason="no book: `make book` builds it")


@cache
def page(name):
    """The words of a page, and the page after it."""
    soup = BeautifulSoup((SITE / name).read_text(encoding="utf-8"), "html.parser")
    following = soup.select_one("a.right-next")
    target = posixpath.join(posixpath.dirname(name), following["href"]) if following else ""
    return words(soup.select_one("article.bd-article")), posixpath.normpath(target)


def words(article):
    return " ".join(article.get_text(" ").split())


@cache
def walk():
    """{label: words} of the pages from the first to the last of Part I, in a reader's order."""
    found, name = {}, FIRST
    while name != LAST:
        said, following = page(name)
        found[Path(name).stem.lstrip("0123456789_")] = said
        name = following
    return found | {"serving": page(LAST)[0]}


@cache
def died(expandable=False):
    step = simulate(Model.preset("llama-3-8b"), "bf16", Run(batch=1, tokens=8192), every_layer=True)
    room, _ = limit_of("H100 80GB")
    oom = step.replay(room, expandable=expandable).out_of_memory
    layer = [layer for at, layer in step.log.entered if at <= oom.event][-1] + 1
    return step, oom, layer


def test_part_one_is_read_in_its_order():
    chapters = (
        "formats weights gradients optimizer activations logits step allocator watching loading "
        "kv_cache experts serving"
    ).split()
    assert [name for name in walk() if name in chapters] == chapters
    assert list(walk())[:1] == ["intro"] and "one_sheet" in walk()


def test_each_chapter_fills_its_row_and_leaves_those_before_it():
    """A bill has a question mark for what is to come, and never another figure than before."""
    columns = [largest(recipe) for recipe in RECIPES.values()]
    filled = list(CHAPTERS.items())
    for at, (chapter, _) in enumerate(filled):
        for name, term in filled[: at + 1]:
            label = {"optimizer": "optimizer states", "step": "temporaries of the optimizer"}
            row = " ".join([label.get(name, name), *(text(column[term]) for column in columns)])
            assert row in walk()[chapter], (chapter, row)
        left = len(filled) - at - 1
        assert walk()[chapter].count("? ?") == left, chapter


@pytest.mark.parametrize("name", ["step", "one_sheet", "cheat-sheet"])
def test_the_peak_is_the_same_wherever_it_is_printed(name):
    peak = text(largest("bf16")["peak"])
    said = walk().get(name) or page(f"{name}.html")[0]
    assert peak == "105.9 GiB" and peak in said


def test_the_message_of_the_first_page_is_replayed_in_the_allocator():
    _, oom, layer = died()
    figures = [text(oom.tried), text(oom.free), text(oom.allocated)]
    assert figures == ["64 MiB", "57.36 MiB", "75.77 GiB"] and layer == 20
    assert all(size in walk()["allocator"] for size in figures)
    said = walk()["intro"]
    assert f"Tried to allocate {oom.tried / 2**20:.2f} MiB" in said
    assert f"{oom.free / 2**20:.2f} MiB is free" in said
    assert f"{oom.allocated / 2**30:.2f} GiB is allocated by PyTorch" in said
    assert f"{(oom.reserved - oom.allocated) / 2**30:.2f} GiB is reserved by PyTorch" in said
    assert f"layer {layer} of 32" in said


def test_the_question_of_the_first_page_is_answered():
    """Would expandable segments have helped? Two layers further, and no more."""
    _, _, layer = died(expandable=True)
    assert layer == 22
    row = re.search(r"expandable segments (\d+) ", walk()["allocator"])
    assert int(row[1]) == layer


def test_the_same_failure_is_watched_loaded_and_served():
    _, oom, _ = died()
    assert text(oom.allocated) in walk()["watching"]
    weights = text(largest("bf16")["weights"])
    for name in ("intro", "loading", "kv_cache", "experts", "serving"):
        assert weights in walk()[name] or name == "serving" and "14.96" in walk()[name], name
